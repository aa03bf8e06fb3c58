package supervise

import (
	"bytes"
	"os"
	"strconv"
)

// others are the processes that go on when an agent has ended.
type others struct {
	// mark is in the environment of the agent's descendants; empty where no
	// others are spared.
	mark string
	// start are those that were there before the agent: process ids, and when
	// they started.
	start map[int]uint64
}

// findOthers notes who is there before the agent.
func (s *Supervisor) findOthers(mark string) others {
	o := others{mark: mark, start: map[int]uint64{}}
	for _, p := range processes() {
		o.start[p.pid] = p.start
	}
	return o
}

// omit picks those of all that descend from the agent. An orphan of it has become
// our child; so has one of the others, and one of a process that was started in
// the container from outside.
func (o others) omit(self int, all []process) (agents []process) {
	children := make(map[int][]process)
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	for _, p := range children[self] {
		if start, there := o.start[p.pid]; there && start == p.start || !o.marked(p.pid) {
			continue
		}
		agents = append(append(agents, p), descendants(p.pid, all)...)
	}
	return agents
}

// marked tells whether a process has the agent's mark. One that does not let
// itself be looked at is taken for the agent's.
func (o others) marked(pid int) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(env) == 0 {
		return true
	}
	for len(env) > 0 {
		var entry []byte
		entry, env, _ = bytes.Cut(env, []byte{0})
		if string(entry) == o.mark {
			return true
		}
	}
	return false
}

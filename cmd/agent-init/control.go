package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agent-init/internal/boot"
	"agent-init/internal/control"
	"agent-init/internal/gitsetup"
	"agent-init/internal/privilege"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/secret"
	"agent-init/internal/textfile"
)

// Requests on the control socket, the first text of each.
const (
	// askPut hands over secrets: names and values follow in turn.
	askPut = "put"
	// askValues is for the secrets that were handed over and that the agent gets.
	askValues = "values"
	// askCredential is git's question: protocol, host and user follow.
	askCredential = "credential"
)

// The first text of a reply. What was asked for, or the reason, follows.
const (
	replyOK      = "ok"
	replyRefused = "refused"
)

// phase is where a keeper's wait for secrets stands.
type phase int

const (
	// notWaiting: the setting does not ask for it.
	notWaiting phase = iota
	// waiting for secrets to be handed over.
	waiting
	// given: they have been.
	given
	// over: nobody has handed over any in time.
	over
)

// keeper keeps the secrets that were handed over, in memory alone, and answers
// other processes of the workspace.
type keeper struct {
	server *control.Server

	mu    sync.Mutex
	phase phase
	put   map[string]string
	// handed is closed when phase becomes given.
	handed chan struct{}
	// withheld are the names that the agent does not get.
	withheld []string
	// hosts are those whose credentials git may be told; none before boot is over.
	hosts   []gitsetup.Host
	sources secret.Sources
	// masker hides secrets, and rotated those that came after it was made.
	masker  *secret.Masker
	rotated []string
}

// newKeeper opens the socket in a runtime directory that is claimed.
func (s *session) newKeeper(p phase) error {
	path := s.runtime.Join(rundir.Control)
	server, err := control.Listen(path)
	if err != nil {
		return problem.Problem{What: "cannot make the control socket", File: path, Why: textfile.Reason(err),
			Hint: "let AGENTIC_RUNTIME_DIR name a directory that can hold a socket"}
	}
	s.keeper = &keeper{server: server, phase: p, handed: make(chan struct{}), withheld: s.cfg.WithholdEnv}
	go server.Serve(s.keeper.answer)
	return nil
}

// openControl makes what boot has found known to those who ask, and opens the
// socket where that has not been done and a setting needs it.
func (s *session) openControl(plan *boot.Plan) error {
	helper := s.cfg.GitCredentials == "helper"
	if s.keeper == nil {
		if !helper {
			return nil
		}
		if err := s.newKeeper(notWaiting); err != nil {
			return err
		}
	}
	s.keeper.learn(plan, helper)
	return nil
}

// learn takes over what a plan says. Values that were hidden stay so.
func (k *keeper) learn(plan *boot.Plan, helper bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hosts = nil
	if helper {
		k.hosts = slices.DeleteFunc(plan.GitHosts(), func(h gitsetup.Host) bool { return !h.Wanted() })
	}
	k.sources = plan.Sources()
	k.masker = plan.Masker
	k.masker.Add(k.rotated...)
}

// closeControl ends the answering.
func (s *session) closeControl() {
	if s.keeper != nil {
		s.keeper.server.Close()
	}
}

// answer is the reply to a request.
func (k *keeper) answer(request []string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case len(request) == 0:
	case request[0] == askPut && len(request)%2 == 1:
		return k.take(request[1:])
	case request[0] == askValues && len(request) == 1:
		return k.values()
	case request[0] == askCredential && len(request) == 4:
		return k.credential(gitsetup.Query{Protocol: request[1], Host: request[2], User: request[3]})
	}
	return []string{replyRefused, "it is no question that this version of agent-init knows"}
}

// take takes secrets that are handed over.
func (k *keeper) take(pairs []string) []string {
	switch k.phase {
	case notWaiting:
		return []string{replyRefused, "it does not wait for secrets: AGENTIC_SECRETS_WAIT is not set"}
	case given:
		return []string{replyRefused, "it waits for secrets no more: it has been given them"}
	case over:
		return []string{replyRefused, "it waits for secrets no more: the time of AGENTIC_SECRETS_WAIT is over"}
	}
	put := make(map[string]string, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		if !secret.IsVariable(pair[0]) || secret.CheckPut(pair[0], pair[1]) != "" {
			return []string{replyRefused, "what was handed over cannot be the variables of an environment"}
		}
		put[pair[0]] = pair[1]
	}
	k.put, k.phase = put, given
	close(k.handed)
	return []string{replyOK}
}

// giveUp ends the wait; it returns what was handed over at the last moment, else
// nil.
func (k *keeper) giveUp() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.phase == waiting {
		k.phase = over
	}
	return k.put
}

func (k *keeper) values() []string {
	reply := []string{replyOK}
	for _, name := range slices.Sorted(maps.Keys(k.put)) {
		if !slices.Contains(k.withheld, name) {
			reply = append(reply, name, k.put[name])
		}
	}
	return reply
}

// credential looks a token up afresh: a file may have been replaced.
func (k *keeper) credential(q gitsetup.Query) []string {
	at := slices.IndexFunc(k.hosts, func(h gitsetup.Host) bool { return h.Answers(q) })
	if at < 0 {
		return []string{replyOK}
	}
	h := k.hosts[at]
	var value secret.Value
	var bad *problem.Problem
	privilege.AsRoot(func() { value, bad = k.sources.Lookup(h.Variable) })
	switch {
	case bad != nil:
		return []string{replyRefused, bad.Error()}
	case value.Text == "":
		return []string{replyRefused, h.Variable + " has no value"}
	}
	if why := gitsetup.CheckToken(value.Text); why != "" {
		return []string{replyRefused, h.Variable + ": " + why}
	}
	if !slices.Contains(k.rotated, value.Text) {
		k.rotated = append(k.rotated, value.Text)
		k.masker.Add(value.Text)
	}
	return []string{replyOK, h.User, value.Text}
}

// ask asks the agent-init of a live workspace; the error says why it does not
// answer as wanted.
func ask(path string, request ...string) ([]string, error) {
	reply, err := control.Ask(path, isAgentInit, request...)
	if err != nil {
		return nil, err
	}
	if len(reply) > 0 && reply[0] == replyOK {
		return reply[1:], nil
	}
	if len(reply) == 2 {
		return nil, errors.New(reply[1])
	}
	return nil, errors.New("it is another version of agent-init")
}

// isAgentInit tells whether a process can be the one that booted the workspace.
// Where that works as another user the runtime directory is the agent's, who could
// put another socket there: root trusts what has come from root, and PID 1.
func isAgentInit(p control.Peer) bool {
	if p.UID == 0 || p.UID == os.Geteuid() {
		return true
	}
	real, _ := processUser(p.PID)
	return os.Geteuid() == 0 && (p.PID == 1 || real == 0)
}

// fetchValues adds to a launch the secrets that were handed over.
func fetchValues(dir rundir.Dir, launch *boot.Launch) (found problem.List) {
	if len(launch.Put) == 0 {
		return nil
	}
	path := dir.Join(rundir.Control)
	pairs, err := ask(path, askValues)
	if err != nil {
		return problem.List{{Severity: problem.Warning, What: "without " + strings.Join(launch.Put, ", ") + " from agent-init at", File: path, Why: textfile.Reason(err)}}
	}
	launch.Values = make(map[string]string, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		if len(pair) == 2 {
			launch.Values[pair[0]] = pair[1]
		}
	}
	return nil
}

// controlPaths are where the socket may be.
func controlPaths(explicit string) (paths []string) {
	_, first := processUser(1)
	for _, dir := range rundir.Places(explicit, first) {
		paths = append(paths, filepath.Join(dir, rundir.Control))
	}
	return paths
}

// processUser are the real and the effective user id of a process; -1 where they
// are not known. The owner of its directory in /proc does not tell: it is root's
// where a process has made itself undumpable.
func processUser(pid int) (real, effective int) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return -1, -1
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "Uid: %d %d", &real, &effective); err == nil {
			return real, effective
		}
	}
	return -1, -1
}

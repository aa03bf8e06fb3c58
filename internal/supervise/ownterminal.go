package supervise

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Terminal is a terminal that belongs to the agent alone: its controlling
// terminal, in a session of its own. The functions are called by the goroutine
// that supervises and must not wait for anything.
type Terminal struct {
	// Slave is the descriptor that becomes the agent's standard streams.
	Slave int
	// Resize gives it the size of our own terminal, and tells whether that has
	// changed.
	Resize func() bool
	// Suspend is called when agent-init is about to stop itself, Resume when it
	// was continued.
	Suspend, Resume func()
}

// Suspend stops an agent that has a terminal of its own, and so agent-init, if a
// TSTP would stop it on ours. The kernel does not: it spares a process group
// whose parents are all outside of its session (POSIX calls it orphaned), because
// nobody would be there to continue it. We are; PID 1, which nobody continues,
// tells the agent at once that it goes on.
func (s *Supervisor) Suspend() {
	s.do(func() {
		if s.state != running || s.run.own == nil || !defaultAction(s.run.pid, unix.SIGTSTP) {
			return
		}
		if s.self == 1 {
			s.signalAgent(unix.SIGCONT)
			return
		}
		s.run.suspending = true
		s.signalAgent(unix.SIGSTOP)
	})
}

// defaultAction tells that a process neither catches nor ignores a signal
// (proc_pid_status(5)).
func defaultAction(pid int, sig unix.Signal) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for _, name := range []string{"\nSigIgn:", "\nSigCgt:"} {
		_, rest, found := bytes.Cut(text, []byte(name))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		set, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64)
		if !found || err != nil || set>>(sig-1)&1 != 0 {
			return false
		}
	}
	return true
}

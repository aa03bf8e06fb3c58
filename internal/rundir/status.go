package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// State is where the agent of a workspace stands.
type State int

const (
	// Booting: the agent has not been started yet.
	Booting State = iota
	// Running: the agent was started and lives.
	Running
	// Waiting: the agent has ended and runs again in the next cycle.
	Waiting
	// Exited: the agent is gone and agent-init is about to end.
	Exited
)

var stateNames = [...]string{Booting: "booting", Running: "running", Waiting: "waiting", Exited: "exited"}

func (s State) String() string { return stateNames[s] }

// Status is the state of a live workspace. agent-init keeps it in the locked
// file itself: one write, and it can never be of another process than the one
// that holds the lock.
type Status struct {
	// PID is agent-init's process id; 0 where it lives in another PID namespace,
	// of which the process ids below then are. Record does not read it.
	PID   int
	State State
	// Agent is the agent's process id.
	Agent int
	// Command is the agent's program as it was asked for, without arguments.
	Command string
	// Started is when the agent was started, to the microsecond; zero before.
	Started time.Time
	// Cycle is the number of the run, from 1 on; 0 where the agent runs once.
	Cycle int
	// Next is when the agent runs again, to the microsecond; zero while that is
	// not known.
	Next time.Time
}

// commandLimit bounds what is recorded of a command's name, in bytes.
const commandLimit = 1024

// statusLimit is more than Record writes: quoting makes a byte four.
const statusLimit = 8192

// Record writes down where the agent stands.
func (l *Lock) Record(s Status) error {
	text := l.holder
	if s.State != Booting {
		command := s.Command[:min(len(s.Command), commandLimit)]
		text += fmt.Sprintf("%s %d %d %d %d %s\n", s.State, s.Agent, micros(s.Started), s.Cycle, micros(s.Next), strconv.Quote(command))
	}
	// What an earlier and longer status left is blanked by the same write.
	if pad := l.size - len(text); pad > 0 {
		text += strings.Repeat("\n", pad)
	}
	l.size = len(text)
	_, err := l.file.WriteAt([]byte(text), 0)
	return err
}

// micros is a time in microseconds since 1970; 0 for none.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n)
}

// Status tells whether a living agent-init holds the directory, and what it
// wrote down, corrected by what the process table says: an agent that is gone
// counts as exited, or as waited for where there are cycles, whether or not
// agent-init has noted so. It changes nothing.
func (d Dir) Status() (s Status, live bool) {
	if d.Path == "" {
		return Status{}, false
	}
	f, err := os.OpenFile(d.Join(lockName), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return Status{}, false
	}
	defer f.Close()
	if flock(f, unix.LOCK_SH) != ErrLive {
		return Status{}, false
	}
	holder, rest, _ := strings.Cut(settled(f), "\n")
	s, _ = parseStatus(rest)
	pid, ns, _ := strings.Cut(holder, " ")
	if ns != namespace("self") {
		return s, true
	}
	s.PID, _ = strconv.Atoi(pid)
	if s.State == Running && !lives(s.Agent, s.PID) {
		s.State = Exited
		if s.Cycle > 0 {
			s.State = Waiting
		}
	}
	return s, true
}

// Foreign finds a live workspace of another user at the preferred place, which
// this user cannot join.
func Foreign() (dir Dir, uid int, found bool) {
	info, err := os.Lstat(Preferred)
	if err != nil || !info.IsDir() {
		return Dir{}, 0, false
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if owner == os.Geteuid() {
		return Dir{}, 0, false
	}
	dir = Dir{Path: Preferred}
	f, err := os.OpenFile(dir.Join(lockName), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrPermission) {
		// Nobody else can look into it; it is there for a reason.
		return dir, owner, true
	}
	if err != nil {
		return Dir{}, 0, false
	}
	defer f.Close()
	return dir, owner, flock(f, unix.LOCK_SH) == ErrLive
}

// lives tells whether a child of parent has this process id and has not exited.
// The leader of a process whose other threads go on is shown as a zombie too.
func lives(pid, parent int) bool {
	fields := stat(pid)
	return fields != nil && fields[1] == strconv.Itoa(parent) && (fields[0] != "Z" || fields[17] != "1")
}

// settled reads the file until two readings agree: a read may see a part of a
// write that happens meanwhile.
func settled(f *os.File) string {
	var before []byte
	for range 100 {
		data, err := io.ReadAll(io.NewSectionReader(f, 0, statusLimit))
		if err != nil {
			return ""
		}
		if bytes.Equal(data, before) && len(data) > 0 {
			break
		}
		before = data
	}
	return string(before)
}

func parseStatus(text string) (s Status, ok bool) {
	var state, command string
	var started, next int64
	line, _, _ := strings.Cut(text, "\n")
	if _, err := fmt.Sscanf(line, "%s %d %d %d %d %q", &state, &s.Agent, &started, &s.Cycle, &next, &command); err != nil {
		return Status{}, false
	}
	for i, name := range stateNames {
		if name == state {
			s.State, s.Command, s.Started, s.Next = State(i), command, fromMicros(started), fromMicros(next)
			return s, true
		}
	}
	return Status{}, false
}

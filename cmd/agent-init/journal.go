package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/event"
	"agent-init/internal/journal"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// openJournal makes events go to the journal of the workspace from now on. One
// that fails is reported and stops nothing.
func (s *session) openJournal() {
	if s.runtime.Path == "" {
		return
	}
	s.journal = journal.Open(s.runtime.Path, journal.Notify{
		Failed: func(err error) {
			logProblems(s.log, problem.List{{Severity: problem.Warning, What: "cannot write the event journal", File: s.runtime.Join(journal.Name),
				Why: textfile.Reason(err), Hint: "make room for it; until then events go to stderr only"}})
		},
		Dropped: func(events int) {
			s.log.Info().Int("events", events).Msg("the event journal was rotated and has dropped its oldest events")
		},
	})
	s.stderr.SetJournal(s.journal)
}

// reportLost says how many events the journal lacks. It comes when all others
// are written.
func (s *session) reportLost() {
	if lost := s.journal.Lost(); lost > 0 {
		s.emit(event.New("events_lost", s.id, provider, time.Now()).Add(event.String("sink", "journal"), event.Int("count", lost)))
	}
}

// relayVariable holds, in the agent's environment, the inode number of the pipe
// that is its stderr.
const relayVariable = "AGENTIC_RELAY"

// relayed tells whether our stderr is a pipe whose events another session puts
// into the journal: they are not to be there twice.
func relayed() bool {
	name := os.Getenv(relayVariable)
	return name != "" && name == pipeName(2)
}

// markRelayed tells sessions within this one of the pipe that it relays.
func markRelayed(env []string, pipe int) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, relayVariable+"=") })
	return append(env, relayVariable+"="+pipeName(pipe))
}

// pipeName is empty where fd is no pipe.
func pipeName(fd int) string {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return ""
	}
	return strconv.FormatUint(st.Ino, 10)
}

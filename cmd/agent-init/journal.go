package main

import (
	"os"
	"slices"
	"strings"
	"time"

	"agent-init/internal/event"
	"agent-init/internal/journal"
	"agent-init/internal/problem"
	"agent-init/internal/relay"
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

// relayed tells whether another session relays what goes to our stderr.
func relayed() bool {
	name := os.Getenv(relay.Variable)
	return name != "" && name == relay.Name(2)
}

// markRelayed tells sessions within this one of the pipe that it relays.
func markRelayed(env []string, pipe int) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, relay.Variable+"=") })
	return append(env, relay.Variable+"="+relay.Name(pipe))
}

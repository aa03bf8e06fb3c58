package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"agent-init/internal/config"
	"agent-init/internal/event"
	"agent-init/internal/journal"
	"agent-init/internal/problem"
	"agent-init/internal/relay"
	"agent-init/internal/sink"
	"agent-init/internal/textfile"
)

// openSinks makes events go where they are wanted from now on. A session whose
// stderr is relayed already leaves that to whoever does it.
func (s *session) openSinks() {
	if relayed() {
		s.stderr.SetEvents(relay.Events{Stderr: true})
		return
	}
	e := relay.Events{
		Stderr: s.cfg.Events.Has(config.SinkStderr) || s.cfg.Events.Has(config.SinkAuto) && !s.terminal,
		Dir:    cmp.Or(s.runtime.Path, os.TempDir()),
		Drop:   s.cfg.EventsOverflow == "drop",
	}
	if s.runtime.Path != "" {
		j := journal.Open(s.runtime.Path, journal.Notify{
			Failed: func(err error) { s.sinkFailed("the event journal", s.runtime.Join(journal.Name), err) },
			Dropped: func(events int) {
				s.log.Info().Int("events", events).Msg("the event journal was rotated and has dropped its oldest events")
			},
		})
		e.Sinks = append(e.Sinks, s.newSink(e, "journal", "the event journal", s.runtime.Join(journal.Name), j))
		j.Make() // Where that fails, so does the first write, which is reported.
	}
	for _, wanted := range s.cfg.Events.List {
		var target sink.Target
		switch wanted.Kind {
		case config.SinkFile:
			target = sink.NewFile(wanted.Path)
		case config.SinkUnix:
			target = sink.NewSocket(wanted.Path, func(events int64) {
				s.log.Warn().Str("file", wanted.Path).Int64("events", events).Msg("the listener closed without reading all it was sent: it may lack up to so many events")
			})
		default:
			continue
		}
		e.Sinks = append(e.Sinks, s.newSink(e, wanted.String(), "events", wanted.Path, target))
	}
	s.stderr.SetEvents(e)
}

// newSink returns a sink that reports its troubles.
func (s *session) newSink(e relay.Events, name, what, path string, target sink.Target) relay.Sink {
	_, listens := target.(*sink.Socket)
	return relay.Sink{Name: name, Sink: sink.New(target, sink.Options{
		Dir: e.Dir, Drop: e.Drop,
		Failed: func(err error) {
			if listens && !sink.IsFull(err) {
				s.sinkFailed(what, path, fmt.Errorf("nobody takes them there: %w", err))
				return
			}
			s.sinkFailed(what, path, err)
		},
		Recovered: func() {
			s.log.Info().Str("file", path).Msgf("%s can be written again", what)
		},
	})}
}

func (s *session) sinkFailed(what, path string, err error) {
	p := problem.Problem{Severity: problem.Warning, What: "cannot write " + what, File: path, Why: textfile.Reason(err), Hint: "it is tried again; events are kept for it as long as there is room"}
	switch {
	case sink.IsFull(err):
		p.Hint = "make room; until then events are kept elsewhere, and when that is full too their writers wait"
		if s.cfg.EventsOverflow == "drop" {
			p.Hint = "make room; until then events are kept elsewhere, and when that is full too they are dropped"
		}
	}
	logProblems(s.log, problem.List{p})
}

// checkSinks finds files for events that cannot be written. It makes none.
func checkSinks(cfg *config.Config) (found problem.List) {
	if relayed() {
		return nil
	}
	for _, s := range cfg.Events.List {
		if s.Kind != config.SinkFile {
			continue
		}
		if err := sink.CheckFile(s.Path); err != nil {
			found.Add(problem.Problem{What: "cannot use AGENTIC_EVENTS", File: s.Path, Why: textfile.Reason(err),
				Hint: "name a file in a directory that agent-init may write to"})
		}
	}
	return found
}

// reportLost says how many events each sink lacks. It comes when all others are
// delivered.
func (s *session) reportLost() {
	for _, l := range s.stderr.Losses() {
		s.emit(event.New("events_lost", s.id, provider, time.Now()).Add(event.String("sink", l.Sink), event.Int("count", l.Events)))
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

package main

import (
	"errors"
	"math/rand/v2"
	"time"

	"agent-init/internal/boot"
	"agent-init/internal/config"
	"agent-init/internal/event"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/supervise"
)

// jitter is by how much of itself the interval may be longer, so that many
// workspaces do not run their agents at the same time.
const jitter = 0.1

// checkCycles finds settings that do not go together.
func checkCycles(cfg *config.Config) (found problem.List) {
	if cfg.MaxRuns.N > 0 && cfg.Interval.Duration == 0 {
		found.Add(problem.Problem{Severity: problem.Warning, What: "AGENTIC_MAX_RUNS", Why: "it has no effect without AGENTIC_INTERVAL: the agent runs once"})
	}
	return found
}

// runCycles runs the agent again and again and returns agent-init's exit code.
// The first boot is over.
func (s *session) runCycles(plan *boot.Plan, path string) int {
	for runs := 0; ; {
		s.cycle++
		s.goesOn = s.cfg.MaxRuns.N == 0 || runs+1 < s.cfg.MaxRuns.N
		began := time.Now()
		s.emit(event.New("cycle_started", s.id, provider, began).Add(event.Int("cycle", int64(s.cycle))))
		code, err := 0, error(nil)
		if s.cycle > 1 {
			plan = plan.Again()
			path, err = s.bootAgain(plan)
		}
		if err == nil {
			code, err = s.runAgent(plan, path)
		}
		var notStarted *supervise.StartError
		if errors.As(err, &notStarted) {
			s.log.Error().Msg(err.Error())
			code, err = supervise.StartErrorCode(err), nil
		}
		switch {
		case err != nil && s.cycle == 1:
			return s.bootFailed(plan, err)
		case errors.Is(err, boot.ErrInterrupted):
			return s.endCycles(exitOK)
		case err == nil:
			runs++
		}
		last := s.interrupted() || runs > 0 && runs == s.cfg.MaxRuns.N
		var pause time.Duration
		if !last {
			pause = s.cfg.Interval.Duration + time.Duration(rand.Float64()*jitter*float64(s.cfg.Interval.Duration))
		}
		s.reportCycle(began, code, err, pause)
		if last {
			return s.endCycles(code)
		}
		if !s.sleep(pause) {
			return s.endCycles(exitOK)
		}
	}
}

// bootAgain prepares the workspace for another run and finds the agent's file.
func (s *session) bootAgain(plan *boot.Plan) (path string, err error) {
	s.setMasker(plan.Masker)
	if plan.Problems.Refuses() {
		return "", refusal(plan.Problems)
	}
	if path, err = s.lookup(plan.Argv[0], plan.Env); err != nil {
		return "", err
	}
	if err := plan.Apply(s.interrupted); err != nil {
		return "", err
	}
	if s.listener == nil {
		s.listener = plan.Listener()
	}
	return path, s.openControl(plan)
}

// refusal are errors for which a run is left out.
type refusal problem.List

func (r refusal) Error() string { return problem.List(r).Only(problem.Error)[0].Error() }

// reportCycle sends the event that ends a cycle, and tells of one in which the
// agent did not run.
func (s *session) reportCycle(began time.Time, code int, err error, pause time.Duration) {
	now := time.Now()
	cycle := event.Int("cycle", int64(s.cycle))
	var e *event.Event
	if err == nil {
		e = event.New("cycle_completed", s.id, provider, now).Add(cycle, event.Int("code", int64(code)), seconds("duration_s", now.Sub(began)))
	} else {
		var reasons []string
		for _, p := range s.tellSkipped(err) {
			reasons = append(reasons, p.Error())
		}
		e = event.New("cycle_skipped", s.id, provider, now).Add(cycle, event.Strings("reasons", reasons), seconds("duration_s", now.Sub(began)))
	}
	if pause > 0 {
		e.Add(event.String("next", now.Add(pause).UTC().Format("2006-01-02T15:04:05.000000+00:00")))
	}
	s.emit(e)
}

// tellSkipped logs why a run is left out.
func (s *session) tellSkipped(err error) problem.List {
	var many refusal
	var one problem.Problem
	var found problem.List
	switch {
	case errors.As(err, &many):
		s.tell(problem.List(many))
		found = problem.List(many).Only(problem.Error)
	case errors.As(err, &one):
		found = problem.List{one}
		logProblems(s.log, found)
	default:
		found = problem.List{{What: err.Error()}}
		logProblems(s.log, found)
	}
	s.log.Warn().Int("cycle", s.cycle).Msg("the agent does not run in this cycle")
	return found
}

// sleep waits for the time between two runs; it is false where a signal has ended
// the cycles.
func (s *session) sleep(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	if s.lock != nil {
		// Status and health can do without it.
		_ = s.lock.Record(rundir.Status{State: rundir.Waiting, Command: s.command[0], Cycle: s.cycle, Next: time.Now().Add(pause)})
	}
	s.log.Debug().Dur("pause", pause).Msg("waiting for the next run")
	select {
	case <-timer.C:
		return true
	case <-s.super.Between():
		return false
	}
}

// endCycles ends what is left in the container.
func (s *session) endCycles(code int) int {
	if s.goesOn {
		s.goesOn = false
		s.reportEnded(s.super.Sweep())
	}
	return s.finish(code)
}

package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/boot"
	"agent-init/internal/event"
	"agent-init/internal/plugin"
	"agent-init/internal/problem"
	"agent-init/internal/supervise"
)

// hookShell runs workspace hooks.
const hookShell = "/bin/sh"

// ready runs the hooks that come before the agent; nothing touches the workspace
// between the last of them and its start. A required one that fails refuses it.
func (s *session) ready(plan *boot.Plan) error {
	stop := s.super.Stop()
	if s.cycle > 1 {
		stop = s.super.Between()
	}
	for _, h := range plan.Handlers(plugin.Ready) {
		if s.interrupted() {
			return boot.ErrInterrupted
		}
		run := s.runHandler(plan, h, h.Timeout, plan.Env, stop)
		if run.Failed && h.Required && !s.interrupted() {
			return problem.Problem{What: "cannot make the workspace ready", File: h.File, Line: h.Line, Column: h.Column,
				Why: fmt.Sprintf("a required hook of plugin %q %s", h.Plugin, run.Outcome), Hint: "what it printed stands above"}
		}
	}
	if s.interrupted() {
		return boot.ErrInterrupted
	}
	return nil
}

// finalize runs the hooks that come after the agent, whatever its exit code, in
// the time that they have: a share of the grace after a stop signal, else a bound
// of their own.
func (s *session) finalize(plan *boot.Plan) {
	handlers := plan.Handlers(plugin.Finalize)
	if len(handlers) == 0 {
		return
	}
	over, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	limit := time.Now().Add(s.cfg.FinalizeBudgetExit.Duration)
	if s.stopRequested() {
		limit = s.finalizeEnd()
	}
	go s.watchBudget(limit, over, done)
	for _, h := range handlers {
		end := limit
		if s.stopRequested() {
			end = earlier(limit, s.finalizeEnd())
		}
		left := time.Until(end)
		if left <= 0 {
			s.reportHook(plan, h, boot.HookRun{Failed: true, Outcome: "did not run: the finalizers' time was over"})
			continue
		}
		env := append(plan.EnvOf(h.Plugin), "AGENTIC_FINALIZE_BUDGET_S="+strconv.Itoa(max(1, int(left.Round(time.Second).Seconds()))))
		s.runHandler(plan, h, min(h.Timeout, left), env, over)
	}
}

// finalizeEnd is when finalizers must be done after a stop signal: an eighth of
// the grace is for the last events.
func (s *session) finalizeEnd() time.Time {
	grace := s.cfg.StopGrace.Duration
	return earlier(s.super.Deadline().Add(-grace/8), time.Now().Add(s.cfg.FinalizeBudget.Duration))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// watchBudget closes over when the finalizers' time is over, which a stop signal
// makes shorter.
func (s *session) watchBudget(limit time.Time, over, done chan struct{}) {
	defer close(over)
	stop := s.super.Stop()
	for {
		timer := time.NewTimer(time.Until(limit))
		select {
		case <-done:
		case <-timer.C:
		case <-stop:
			limit, stop = earlier(limit, s.finalizeEnd()), nil
			timer.Stop()
			continue
		}
		timer.Stop()
		return
	}
}

// runHandler runs one hook to its end. What it prints goes where the agent's
// stderr goes, and its events with it.
func (s *session) runHandler(plan *boot.Plan, h boot.Handler, limit time.Duration, env []string, stop <-chan struct{}) boot.HookRun {
	s.log.Debug().Str("plugin", h.Plugin).Str("hook", string(h.Event)).Msg("running a workspace hook")
	run, err := s.startHandler(plan, h, limit, env, stop)
	if err != nil {
		run = boot.HookRun{Failed: true, Outcome: "did not run: " + err.Error()}
	}
	s.reportHook(plan, h, run)
	return run
}

func (s *session) startHandler(plan *boot.Plan, h boot.Handler, limit time.Duration, env []string, stop <-chan struct{}) (boot.HookRun, error) {
	stdin, err := filledPipe(plan.HookPayload())
	if err != nil {
		return boot.HookRun{}, err
	}
	defer unix.Close(stdin)
	output, w, err := pipe("hook stderr")
	if err != nil {
		return boot.HookRun{}, err
	}
	s.stderr.Copy(output)
	defer unix.Close(w)
	env = markRelayed(env, w)
	for _, name := range []string{"CLAUDE_PLUGIN_ROOT", "KAIRO_PLUGIN_ROOT"} {
		env = append(env, name+"="+h.Path)
	}
	command := supervise.Command{Path: hookShell, Argv: []string{"sh", "-c", h.Command}, Env: env, Dir: plan.HookDirectory(), Stdin: stdin, Stdout: w, Stderr: w}
	o, err := s.super.Task(command, limit, stop)
	if err != nil {
		return boot.HookRun{}, err
	}
	run := boot.HookRun{Duration: o.Duration, Failed: o.Code != 0, Outcome: "succeeded"}
	switch {
	case o.TimedOut:
		run.Failed, run.Outcome = true, "was stopped after "+limit.Round(time.Millisecond).String()
	case o.Stopped:
		run.Failed, run.Outcome = true, "was stopped with agent-init"
	case o.Signal != 0:
		run.Outcome = "was ended by signal " + supervise.SignalName(o.Signal)
	case run.Failed:
		run.Outcome = fmt.Sprintf("failed with exit code %d", o.Code)
	}
	return run, nil
}

// reportHook keeps the outcome for the report and tells of a failure.
func (s *session) reportHook(plan *boot.Plan, h boot.Handler, run boot.HookRun) {
	run.Handler = h
	plan.HookRuns = append(plan.HookRuns, run)
	if !run.Failed {
		return
	}
	logProblems(s.log, problem.List{{Severity: problem.Warning, What: "workspace hook", File: h.File, Line: h.Line, Column: h.Column,
		Why: fmt.Sprintf("%s of plugin %q %s", h.Event, h.Plugin, run.Outcome)}})
	s.emit(event.New("hook_failed", s.id, provider, time.Now()).Add(event.String("hook", string(h.Event)), event.String("plugin", h.Plugin),
		event.String("file", h.File), event.Int("line", int64(h.Line)), event.Bool("required", h.Required),
		event.String("outcome", run.Outcome), seconds("duration_s", run.Duration)))
}

// filledPipe returns the read end of a pipe that holds text, which is shorter
// than a pipe is deep.
func filledPipe(text []byte) (int, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, os.NewSyscallError("pipe", err)
	}
	defer unix.Close(p[1])
	if _, err := unix.Write(p[1], text); err != nil {
		unix.Close(p[0])
		return -1, os.NewSyscallError("write", err)
	}
	return p[0], nil
}

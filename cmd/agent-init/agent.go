package main

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/boot"
	"agent-init/internal/event"
	"agent-init/internal/supervise"
)

// supervise runs the command to its end and returns the exit code, and whether
// it ran at all. Its error says that a signal has come before.
func (s *session) supervise(c supervise.Command) (code int, ran bool, err error) {
	streams, err := s.openStreams(&c)
	// Also when something here fails in a way that nobody has thought of.
	defer streams.close()
	if err != nil {
		streams.abandon()
		s.log.Error().Msgf("cannot make the agent's standard streams: %v", err)
		return exitFault, false, nil
	}
	s.stderr.BeginRun()
	a := agentRun{session: s, command: c.Argv[0], path: c.Path}
	a.killsBefore, _ = s.memory.OOMKills()
	a.pid, err = s.super.Start(c)
	if err != nil {
		streams.abandon()
		if errors.Is(err, supervise.ErrEnded) {
			return 0, false, boot.ErrInterrupted
		}
		s.log.Error().Msg(err.Error())
		return supervise.StartErrorCode(err), false, nil
	}
	// What the agent has to say waits until it is known to have started.
	a.reportStarted()
	streams.start(a.pid)
	s.collect()
	outcome := s.super.Wait()
	streams.drain(s.deadline())
	s.settle()
	a.reportExited(outcome)
	s.reportEnded(outcome)
	code = outcome.Code
	if slices.Contains(s.cfg.SuccessCodes.Values, code) {
		code = exitOK
	}
	return code, true, nil
}

// reportEnded names the processes that the agent left and that had to be
// ended.
func (s *session) reportEnded(outcome supervise.Outcome) {
	if len(outcome.Ended) == 0 {
		return
	}
	var members [][]event.Member
	for _, e := range outcome.Ended {
		members = append(members, []event.Member{event.Int("pid", int64(e.PID)), event.String("name", e.Name), event.String("signal", supervise.SignalName(e.Signal))})
	}
	s.emit(event.New("orphans_ended", s.id, provider, time.Now()).Add(event.List("processes", members...)))
	s.log.Info().Int("processes", len(outcome.Ended)).Msg("ended what the agent left running")
}

// finish delivers what is in flight, within the grace where a stop signal has
// started one.
func (s *session) finish(code int) int {
	defer s.closeTap()
	s.closeRecord()
	defer s.closeControl()
	deadline := s.drain()
	s.reportLost()
	s.stderr.Drain(deadline)
	return code
}

// drain delivers what the agent and its hooks have written, and returns until
// when anything else may be delivered.
func (s *session) drain() (deadline time.Time) {
	deadline = s.deadline()
	s.stopCollecting()
	s.stderr.Drain(deadline)
	return deadline
}

// settle delivers what the agent and its hooks have written. Where another run
// follows, whatever else is relayed goes on.
func (s *session) settle() {
	if !s.goesOn || s.stopRequested() {
		s.drain()
		return
	}
	s.stopCollecting()
	s.resumeCollecting()
	s.stderr.Settle(s.deadline())
}

// deadline bounds the delivery of what is in flight now.
func (s *session) deadline() time.Time {
	deadline := time.Now().Add(drainTime)
	if end := s.super.Deadline(); !end.IsZero() && end.Before(deadline) {
		return end
	}
	return deadline
}

// pipe returns the end to read from, non-blocking for Go's poller, and the
// descriptor for the agent, which must block as any program expects.
func pipe(name string) (*os.File, int, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, err
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		return nil, -1, err
	}
	return os.NewFile(uintptr(fds[0]), name), fds[1], nil
}

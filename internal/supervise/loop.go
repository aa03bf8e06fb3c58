package supervise

import (
	"math/bits"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// state is where supervision stands.
type state int

const (
	// booting: there is no agent yet, signals are kept for it.
	booting state = iota
	// running: the agent runs and nobody has asked it to stop.
	running
	// stopping: the agent was asked to stop and has its share of the grace.
	stopping
	// killing: the agent was sent KILL and its exit is awaited.
	killing
	// sweeping: the agent is gone, what it left behind was sent TERM.
	sweeping
	// clearing: what is left was sent KILL.
	clearing
	// done: the outcome is known. A stop signal still starts the grace.
	done
)

// Shares of the grace, counted from the request to stop. What remains after the
// sweep belongs to finalizers (until 7/8) and the last events (until 8/8).
var (
	agentShare     = 4.5 / 8
	sweepTermShare = 4.75 / 8
	sweepShare     = 5.0 / 8
)

// Shares of the grace for the sweep after an exit that nobody asked for,
// counted from that exit.
var (
	ownSweepTermShare = 1.5 / 8
	ownSweepShare     = 2.0 / 8
)

// rescanShare of the grace is the time between two looks at the process table
// during the sweep; the end of a process that is no child of ours tells nobody.
var rescanShare = 1.0 / 400

// rescanMin keeps a short grace from scanning without pause.
const rescanMin = 5 * time.Millisecond

// reapBatch is how many children are reaped before other events get a turn.
const reapBatch = 1024

func (s *Supervisor) share(f float64) time.Duration {
	return time.Duration(float64(s.opt.Grace) * f)
}

func (s *Supervisor) loop() {
	for {
		s.arm()
		select {
		case <-s.signals:
			s.onArrived(takeArrived(), time.Now())
		case now := <-s.timer.C:
			s.onTime(now)
		case f := <-s.requests:
			f()
		}
	}
}

// arm sets the timer to the next time at which something is due.
func (s *Supervisor) arm() {
	var at time.Time
	switch s.state {
	case running:
		if s.opt.Timeout > 0 {
			at = s.run.started.Add(s.opt.Timeout)
		}
	case stopping:
		at = s.agentEnds()
	case killing:
		_, at = s.sweepEnds()
	case sweeping:
		at, _ = s.sweepEnds()
		at = s.rescanBefore(at)
	case clearing:
		_, at = s.sweepEnds()
		at = s.rescanBefore(at)
	}
	if at.IsZero() {
		s.timer.Stop()
		return
	}
	s.timer.Reset(time.Until(at))
}

func (s *Supervisor) rescanBefore(at time.Time) time.Time {
	next := time.Now().Add(max(s.share(rescanShare), rescanMin))
	if next.Before(at) {
		return next
	}
	return at
}

// AgentShare is the agent's share of a grace, at whose end it is sent KILL.
func AgentShare(grace time.Duration) time.Duration { return time.Duration(float64(grace) * agentShare) }

// agentEnds is when an agent that was asked to stop is sent KILL.
func (s *Supervisor) agentEnds() time.Time { return s.run.asked.Add(s.share(agentShare)) }

// sweepEnds is when what the agent left behind is sent KILL, and when it is
// waited for no longer.
func (s *Supervisor) sweepEnds() (kill, end time.Time) {
	if !s.run.exited.IsZero() {
		kill = s.run.exited.Add(s.share(ownSweepTermShare))
		end = s.run.exited.Add(s.share(ownSweepShare))
	}
	if s.run.asked.IsZero() {
		return kill, end
	}
	if t := s.run.asked.Add(s.share(sweepTermShare)); kill.IsZero() || t.Before(kill) {
		kill = t
	}
	if t := s.run.asked.Add(s.share(sweepShare)); end.IsZero() || t.Before(end) {
		end = t
	}
	return kill, end
}

// onArrived handles signals given as bits N-1. Children come last: what they
// have done before they ended may include a signal to us.
func (s *Supervisor) onArrived(set uint64, now time.Time) {
	children := s.unreaped
	s.unreaped = false
	for ; set != 0; set &= set - 1 {
		sig := unix.Signal(bits.TrailingZeros64(set) + 1)
		if sig == unix.SIGCHLD {
			children = true
		} else {
			s.onSignal(sig, now)
		}
	}
	if children {
		s.onChildren()
	}
}

func (s *Supervisor) onSignal(sig unix.Signal, now time.Time) {
	switch s.state {
	case booting:
		s.keep(sig, now)
	case running, stopping, killing:
		s.noteStop(sig, now)
		s.forward(sig)
	case sweeping, clearing, done:
		s.noteStop(sig, now)
		s.noteEnd(sig)
	}
}

// noteEnd ends what is to come after a run. Without an agent there is nobody whom
// INT interrupts or HUP tells of a terminal.
func (s *Supervisor) noteEnd(sig unix.Signal) {
	dropped := false
	if out, mapped := s.opt.Rewrite[sig]; mapped {
		dropped = out == 0
	}
	switch {
	case s.ended || dropped:
		return
	case s.stopSignal != 0, sig == unix.SIGINT, sig == unix.SIGHUP, sig == unix.SIGQUIT:
		s.ended = true
		close(s.between)
	}
}

// keep remembers a signal for the agent that is not there yet; equal ones
// merge, as they do in the kernel.
func (s *Supervisor) keep(sig unix.Signal, now time.Time) {
	for _, a := range s.pending {
		if a.signal == sig {
			return
		}
	}
	s.pending = append(s.pending, arrival{sig, now})
	if s.configured {
		s.noteStop(sig, now)
	}
}

// noteStop starts the grace if sig is the first stop signal.
func (s *Supervisor) noteStop(sig unix.Signal, at time.Time) {
	if s.stopSignal != 0 || !s.stops(sig) {
		return
	}
	s.stopInfo.Lock()
	s.stopSignal, s.stopAt = sig, at
	s.stopInfo.Unlock()
	close(s.stop)
	s.notes.add(s.opt.Log, zerolog.InfoLevel, "stop requested", func(e *zerolog.Event) {
		e.Str("signal", SignalName(sig))
	})
	if s.state != booting && s.state != done {
		s.askedToStop(at)
	}
}

// askedToStop starts the shares of the grace, unless they are running.
func (s *Supervisor) askedToStop(at time.Time) {
	if s.stopSignal != 0 {
		s.run.outcome.Stopped = true
	}
	if s.run.asked.IsZero() {
		s.run.asked = at
	}
	if s.state == running {
		s.state = stopping
	}
}

func (s *Supervisor) onTime(now time.Time) {
	switch s.state {
	case running:
		if s.opt.Timeout > 0 && !now.Before(s.run.started.Add(s.opt.Timeout)) {
			s.timeOut(now)
		}
	case stopping:
		if !now.Before(s.agentEnds()) {
			s.kill()
		}
	case killing:
		if _, end := s.sweepEnds(); !now.Before(end) {
			s.giveUpAgent(now)
		}
	case sweeping, clearing:
		s.continueSweep(now)
	}
}

func (s *Supervisor) timeOut(now time.Time) {
	s.run.outcome.TimedOut = true
	timeout := s.opt.Timeout
	s.notes.add(s.opt.Log, zerolog.WarnLevel, "the agent's time is over, stopping it", func(e *zerolog.Event) {
		e.Dur("timeout", timeout)
	})
	s.askedToStop(now)
	s.forward(unix.SIGTERM)
}

func (s *Supervisor) kill() {
	s.state = killing
	s.run.outcome.Killed = true
	pid := s.run.pid
	s.notes.add(s.opt.Log, zerolog.WarnLevel, "the agent did not stop in its share of the grace, killing it", func(e *zerolog.Event) {
		e.Int("pid", pid)
	})
	// The agent alone: what else is in its group is ended by the sweep, which
	// says so by name.
	_ = unix.Kill(s.run.pid, unix.SIGKILL)
}

// giveUpAgent goes on without the exit of an agent that KILL does not end: it
// hangs in the kernel, and our own exit is all that is left.
func (s *Supervisor) giveUpAgent(now time.Time) {
	var status unix.WaitStatus = unix.WaitStatus(unix.SIGKILL)
	s.agentExited(status, unix.Rusage{}, now)
	s.continueSweep(now)
}

// forward passes a signal that arrived on to the agent.
func (s *Supervisor) forward(sig unix.Signal) {
	if out, mapped := s.opt.Rewrite[sig]; mapped {
		sig = out
	}
	switch sig {
	case 0:
		return
	case unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		s.run.suspending = true
		if s.run.own != nil && defaultAction(s.run.pid, sig) {
			sig = unix.SIGSTOP
		}
	case unix.SIGCONT:
		s.run.suspending, s.run.halted = false, false
		s.run.terminal.giveAgain(s.run.pid)
		if s.run.own != nil {
			s.run.own.Resume()
		}
	case unix.SIGWINCH:
		// The kernel tells whoever is in the foreground there.
		if s.run.own != nil && s.run.own.Resize() {
			return
		}
	}
	s.signalAgent(sig)
	if s.state == running && s.run.halted && s.run.suspending && s.self != 1 {
		// A Ctrl-Z right behind the CONT that woke us has wiped it out in the
		// kernel; the agent never ran, and nobody will tell us that it stopped.
		s.suspend()
	}
	if s.state == stopping && s.run.halted {
		// A stopped process acts on no signal until it is continued.
		s.run.halted = false
		s.signalAgent(unix.SIGCONT)
	}
}

// signalAgent sends sig. The agent has not been reaped, so that its process id
// cannot be another's.
func (s *Supervisor) signalAgent(sig unix.Signal) {
	err := unix.ESRCH
	if s.opt.Scope == Group {
		// An agent that has moved to another group is found there.
		if group, lookup := unix.Getpgid(s.run.pid); lookup == nil && group > 1 && group != unix.Getpgrp() {
			err = errno(unix.Kill(-group, sig))
		}
	}
	if err == unix.ESRCH {
		err = errno(unix.Kill(s.run.pid, sig))
	}
	if err != 0 && err != unix.ESRCH {
		pid := s.run.pid
		s.notes.add(s.opt.Log, zerolog.WarnLevel, "cannot pass a signal on", func(e *zerolog.Event) {
			e.Str("signal", SignalName(sig)).Int("pid", pid).Str("error", err.Error())
		})
	}
}

func errno(err error) unix.Errno {
	e, _ := err.(unix.Errno)
	return e
}

// onChildren reaps every child that has ended. SIGCHLD merges, so that one
// stands for any number of them.
func (s *Supervisor) onChildren() {
	now := time.Now()
	s.run.childless = false
	halted := unix.Signal(0)
	for range reapBatch {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WUNTRACED, &usage)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			s.run.childless = err == unix.ECHILD
			s.settled(halted, now)
			return
		}
		switch {
		case status.Stopped():
			if pid == s.run.pid {
				halted = status.StopSignal()
			}
		case pid == s.run.pid:
			s.agentExited(status, usage, now)
		case s.taskEnded(pid, status):
		default:
			s.run.sweep.reaped(pid, status)
		}
	}
	s.unreaped = true
	s.again()
}

// settled acts on what the round of waiting has found.
func (s *Supervisor) settled(halted unix.Signal, now time.Time) {
	switch s.state {
	case sweeping, clearing:
		s.continueSweep(now)
	case running, stopping, killing:
		if halted != 0 {
			s.agentHalted(halted)
		}
	}
}

func (s *Supervisor) agentExited(status unix.WaitStatus, usage unix.Rusage, now time.Time) {
	o := &s.run.outcome
	if status.Signaled() {
		o.Signal = status.Signal()
		o.Code = 128 + int(o.Signal)
	} else {
		o.Code = status.ExitStatus()
	}
	if o.TimedOut {
		o.Code = codeTimedOut
	}
	o.Duration = now.Sub(s.run.started)
	o.Usage = Usage{
		User:   time.Duration(usage.Utime.Nano()),
		System: time.Duration(usage.Stime.Nano()),
		MaxRSS: int64(usage.Maxrss) * 1024,
	}
	s.run.terminal.takeBack()
	s.run.pid, s.run.exited = 0, now
	s.state = sweeping
}

// agentHalted suspends agent-init with its agent, so that the shell that runs
// it gets its job back. PID 1 has no such shell and cannot be stopped. A STOP
// that somebody sent to the agent alone is left alone, because a CONT would
// come the same way.
func (s *Supervisor) agentHalted(by unix.Signal) {
	s.run.halted = true
	if s.state != running {
		s.run.halted = false
		s.signalAgent(unix.SIGCONT)
		return
	}
	if s.self == 1 && by == unix.SIGTSTP && !s.run.suspending && s.run.terminal.given {
		// Somebody has typed Ctrl-Z, and could not type into a stopped agent again.
		s.run.halted = false
		s.signalAgent(unix.SIGCONT)
		return
	}
	if s.self == 1 || by == unix.SIGSTOP && !s.run.suspending && !s.run.terminal.given && s.run.own == nil {
		return
	}
	if p, ok := readProcess(s.run.pid); ok && !p.halted() {
		return
	}
	s.suspend()
}

// suspend stops agent-init. What wakes it is a CONT, which arrives as a signal
// and is passed on.
func (s *Supervisor) suspend() {
	s.run.terminal.given = false
	if s.run.own != nil {
		s.run.own.Suspend()
	}
	_ = unix.Kill(s.self, unix.SIGSTOP)
}

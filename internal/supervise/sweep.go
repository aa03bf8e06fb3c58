package supervise

import (
	"os"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// sweep is what is known of the processes that the agent left behind.
type sweep struct {
	victims map[int]*victim
	// all is the signal that the whole PID namespace was sent last.
	all unix.Signal
}

type victim struct {
	process
	sent unix.Signal
	// by is the signal that ended it, once it was reaped.
	by   unix.Signal
	gone bool
}

// reaped records how a process ended that was signalled.
func (w *sweep) reaped(pid int, status unix.WaitStatus) {
	v := w.victims[pid]
	if v == nil || v.gone {
		return
	}
	v.gone, v.by = true, v.sent
	if status.Signaled() {
		v.by = status.Signal()
	}
}

func (w *sweep) record(p process, sig unix.Signal) {
	if w.victims == nil {
		w.victims = make(map[int]*victim)
	}
	if v := w.victims[p.pid]; v != nil && v.start == p.start {
		v.sent = sig
		return
	}
	w.victims[p.pid] = &victim{process: p, sent: sig}
}

func (w *sweep) sent(p process, sig unix.Signal) bool {
	v := w.victims[p.pid]
	return v != nil && v.start == p.start && v.sent == sig
}

// continueSweep signals what is there, and ends the sweep when nothing is or
// its time is over.
func (s *Supervisor) continueSweep(now time.Time) {
	if s.alone() {
		s.finish(nil)
		return
	}
	kill, end := s.sweepEnds()
	first := s.run.sweep.victims == nil && s.run.sweep.all == 0
	if s.state == sweeping && !first && !now.Before(kill) {
		s.state = clearing
		s.killRest()
		return
	}
	if s.state == clearing && !now.Before(end) {
		rest := s.rest()
		s.notes.add(s.opt.Log, zerolog.WarnLevel, "processes are left that could not be ended in time", func(e *zerolog.Event) {
			e.Int("count", len(rest))
		})
		s.finish(rest)
		return
	}
	if s.state == clearing {
		s.killRest()
	} else {
		s.signalRest(unix.SIGTERM)
	}
}

// alone tells whether no process is left that the sweep is for. Every orphan
// among our descendants is a child of ours, so that without children there are
// none; PID 1 also ends those that came into its namespace from outside.
func (s *Supervisor) alone() bool {
	switch {
	case s.spares():
		return s.run.childless || len(s.rest()) == 0
	case s.self == 1:
		return unix.Kill(-1, 0) == unix.ESRCH
	}
	return s.run.childless
}

// spares tells whether the sweep is for the agent's descendants alone. Nothing is
// spared once agent-init itself is to end.
func (s *Supervisor) spares() bool { return s.run.others.mark != "" && s.stopSignal == 0 }

// rest lists the processes that the sweep is for.
func (s *Supervisor) rest() []process {
	all := processes()
	switch {
	case s.spares():
		all = s.run.others.omit(s.self, all)
	case s.self != 1:
		all = descendants(s.self, all)
	}
	return slices.DeleteFunc(all, func(p process) bool { return p.pid == s.self || p.dead() })
}

// signalRest sends sig to everyone who has not had it, and CONT after TERM,
// because a stopped process acts on no other signal.
func (s *Supervisor) signalRest(sig unix.Signal) {
	w := &s.run.sweep
	rest := s.rest()
	if s.self == 1 && w.all != sig && !s.spares() {
		w.all = sig
		for _, p := range rest {
			w.record(p, sig)
		}
		broadcast(sig)
		if sig == unix.SIGTERM {
			broadcast(unix.SIGCONT)
		}
		return
	}
	for _, p := range rest {
		if w.sent(p, sig) || p.send(sig) == unix.ESRCH {
			continue
		}
		w.record(p, sig)
		if sig == unix.SIGTERM {
			_ = p.send(unix.SIGCONT)
		}
	}
}

// broadcast reaches the whole PID namespace. For anyone but PID 1 that would be
// every process of the user.
func broadcast(sig unix.Signal) {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, sig)
	}
}

// killRest sends KILL. PID 1 does that at one stroke; otherwise a tree that
// forks faster than it is read is frozen first, since a stopped process does
// not fork.
func (s *Supervisor) killRest() {
	if s.self != 1 || s.spares() {
		s.freezeRest()
	}
	s.signalRest(unix.SIGKILL)
}

// freezePasses bounds the attempts; the next look at the table goes on.
const freezePasses = 20

func (s *Supervisor) freezeRest() {
	frozen := make(map[int]uint64)
	for range freezePasses {
		found := false
		for _, p := range s.rest() {
			if frozen[p.pid] == p.start || s.run.sweep.sent(p, unix.SIGKILL) {
				continue
			}
			frozen[p.pid], found = p.start, true
			_ = p.send(unix.SIGSTOP)
		}
		if !found {
			return
		}
	}
}

// finish hands the outcome to Wait; left are the processes that go on.
func (s *Supervisor) finish(left []process) {
	for _, p := range left {
		if v := s.run.sweep.victims[p.pid]; v == nil || v.start != p.start {
			s.run.sweep.record(p, 0)
		}
	}
	var ended []Ended
	for _, v := range s.run.sweep.victims {
		by := v.by
		if !v.gone {
			by = v.sent
		}
		if slices.ContainsFunc(left, func(p process) bool { return p.pid == v.pid && p.start == v.start }) {
			by = 0
		}
		ended = append(ended, Ended{PID: v.pid, Name: v.name, Signal: by})
	}
	slices.SortFunc(ended, func(a, b Ended) int { return a.PID - b.PID })
	s.run.outcome.Ended = ended
	s.state = done
	s.outcomes <- s.run.outcome
}

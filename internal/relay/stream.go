package relay

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"
	"time"
)

const (
	// partialDelay is how long the beginning of a line waits for its rest.
	partialDelay = 100 * time.Millisecond
	// maxHeld is the length in bytes from which on a line is passed on before
	// it is complete.
	maxHeld = 1 << 20
	// chunk is how many bytes are read at once: what a pipe holds.
	chunk = 64 << 10
)

// stream copies one pipe's lines to an Output.
type stream struct {
	collector
	in   *os.File
	busy busy
	// tee gets what is read as it is; nil without one.
	tee func([]byte)
	// due is when the line's beginning is to be shown; zero if it is not.
	due time.Time
	// timer is when reading is interrupted; zero if it is not. It may be earlier
	// than due, so that a stream of lines does not set it for each.
	timer time.Time
	// stopping tells run to end as if the pipe had.
	stopping atomic.Bool
}

func (s *stream) run() {
	defer s.in.Close()
	for {
		buf := s.room()
		n, err := s.in.Read(buf)
		if n > 0 {
			s.busy.read(s.in, n)
			s.teed(buf[:n])
			s.passed = false
			s.take(n, false)
			if s.passed {
				s.due = time.Time{}
			}
		} else if errors.Is(err, os.ErrDeadlineExceeded) && !s.stopping.Load() {
			s.elapsed()
		} else if err != nil {
			if s.stopping.Load() {
				unread(s.in, func() []byte { buf = s.room(); return buf }, func(n int) {
					s.teed(buf[:n])
					s.take(n, false)
				})
			}
			s.finish()
			return
		}
		s.schedule()
	}
}

func (s *stream) teed(p []byte) {
	if s.tee != nil {
		s.tee(p)
	}
}

// stop makes run end soon, with what is in the pipe.
func (s *stream) stop() {
	s.stopping.Store(true)
	s.in.SetReadDeadline(time.Unix(1, 0))
}

// elapsed shows the beginning of a line whose time has come.
func (s *stream) elapsed() {
	s.timer = time.Time{}
	if !s.due.IsZero() && !time.Now().Before(s.due) {
		s.due = time.Time{}
		s.passBeginning()
	}
	if s.due.IsZero() {
		s.setTimer(time.Time{})
	}
}

// schedule sets the time at which the beginning of a line is shown, if it is to
// be.
func (s *stream) schedule() {
	if s.due.IsZero() && s.text > 0 && s.isPrompt() {
		s.due = time.Now().Add(partialDelay)
	}
	if !s.due.IsZero() && s.timer.IsZero() {
		s.setTimer(s.due)
	}
}

func (s *stream) setTimer(t time.Time) {
	s.timer = t
	s.in.SetReadDeadline(t)
	// Not to undo a stop at the same moment.
	if s.stopping.Load() {
		s.stop()
	}
}

// isPrompt tells whether the line that has begun may be shown before it is
// complete: it cannot become an event, of which nobody wants to see half.
func (s *stream) isPrompt() bool {
	text := bytes.TrimLeft(s.buf[:s.text], " \t\r")
	return len(text) > 0 && text[0] != '{'
}

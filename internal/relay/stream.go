package relay

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/secret"
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
	out *Output
	in  *os.File
	// buf[:text] is masked and waits for the end of its line; buf[text:end] is
	// what the masker holds back.
	buf       []byte
	text, end int
	mask      secret.Stream
	// begun says that the beginning of the current line is out already.
	begun bool
	// journal gets the events among the lines.
	journal toJournal
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
		s.makeRoom()
		n, err := s.in.Read(s.buf[s.end:])
		if n > 0 {
			s.take(n, false)
		} else if errors.Is(err, os.ErrDeadlineExceeded) && !s.stopping.Load() {
			s.elapsed()
		} else if err != nil {
			s.finish()
			return
		}
		s.schedule()
	}
}

// stop makes run end soon; what it has is still written.
func (s *stream) stop() {
	s.stopping.Store(true)
	s.in.SetReadDeadline(time.Unix(1, 0))
}

// makeRoom makes buf hold another chunk, and not much more than it needs.
func (s *stream) makeRoom() {
	if len(s.buf)-s.end >= chunk && (len(s.buf) <= 4*chunk || s.end >= chunk) {
		return
	}
	size := 2 * chunk
	for size-s.end < chunk {
		size *= 2
	}
	if size != len(s.buf) {
		grown := make([]byte, size)
		copy(grown, s.buf[:s.end])
		s.buf = grown
	}
}

// take masks n bytes that were read and passes on what may be passed on.
func (s *stream) take(n int, last bool) {
	seen := s.text
	raw := s.buf[s.text : s.end+n]
	masked, held := s.mask.Mask(raw[:0], s.out.masker.Load(), raw, last)
	s.text += len(masked)
	s.end = s.text + copy(s.buf[s.text:], raw[len(raw)-held:])
	if nl := bytes.LastIndexByte(s.buf[seen:s.text], '\n'); nl >= 0 {
		s.pass(seen + nl + 1)
		s.begun = false
	}
	if s.begun || s.text >= maxHeld {
		s.show()
	}
}

// show passes on the beginning of a line that is not complete.
func (s *stream) show() {
	s.due = time.Time{}
	if s.text > 0 {
		s.pass(s.text)
		s.begun = true
	}
}

// pass writes the first n bytes of buf and forgets them.
func (s *stream) pass(n int) {
	if j := s.out.journal.Load(); j != nil {
		s.journal.take(j, s.buf[:n], s.begun)
	}
	s.out.emit(s, s.buf[:n])
	copy(s.buf, s.buf[n:s.end])
	s.text -= n
	s.end -= n
	s.due = time.Time{}
}

// elapsed shows the beginning of a line whose time has come.
func (s *stream) elapsed() {
	s.timer = time.Time{}
	if !s.due.IsZero() && !time.Now().Before(s.due) {
		s.show()
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

// finish passes on what is left when nothing follows, or nothing that is read.
func (s *stream) finish() {
	s.countUnread()
	s.take(0, true)
	s.show()
	s.journal.end()
	s.out.release(s)
}

// countUnread counts as lost what a stop leaves in the pipe.
func (s *stream) countUnread() {
	conn, err := s.in.SyscallConn()
	if err != nil || !s.stopping.Load() {
		return
	}
	conn.Control(func(fd uintptr) {
		if n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
			s.out.lost.Add(int64(n))
		}
	})
}

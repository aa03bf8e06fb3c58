package relay

import (
	"encoding/binary"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/secret"
)

// Stdout copies what the agent writes to its standard output, masked (not by a nil
// Masker) and else byte for byte. Only what could begin a secret is held back.
type Stdout struct {
	out Writer
	fd  int
	// in is the pipe; wake is readable when it is not to be waited for any more.
	in, wake int
	mask     secret.Stream
	// tee gets what is read as it is; nil without one.
	tee func([]byte)
	// buf[:held] could begin a secret.
	buf  []byte
	held int
	done chan struct{}
	once sync.Once
	// cut says that something was given up at the end.
	cut bool
}

// NewStdout returns a copier from the read end of a pipe to fd. It closes the
// pipe, but not fd.
//
// The error is that of eventfd(2), when descriptors have run out; the pipe is
// closed then.
func NewStdout(pipe *os.File, fd int) (*Stdout, error) {
	defer pipe.Close()
	own, err := onDescriptor(pipe, func(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(own)
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &Stdout{out: NewWriter(fd), fd: fd, in: own, wake: wake, buf: make([]byte, 2*chunk), done: make(chan struct{})}, nil
}

// Tee has f get what is read from now on, unmasked; f keeps nothing of it. Call it
// before Copy.
func (s *Stdout) Tee(f func([]byte)) { s.tee = f }

// Copy begins to copy, in a goroutine of its own, until the pipe's end. When
// nobody reads the output any more it closes the pipe, so that the agent gets
// PIPE, as it would without us.
func (s *Stdout) Copy(m *secret.Masker) {
	go func() {
		defer close(s.done)
		defer unix.Close(s.in)
		for s.await() {
			if !s.copy(m) {
				return
			}
		}
		s.rest(m)
	}()
}

// await waits until there is something to read or the pipe's end. It tells
// whether there is any point in reading.
func (s *Stdout) await() bool {
	fds := []unix.PollFd{{Fd: int32(s.in), Events: unix.POLLIN}, {Fd: int32(s.wake), Events: unix.POLLIN}, {Fd: int32(s.fd)}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err != nil && err != unix.EINTR && err != unix.EAGAIN:
			return false
		case fds[2].Revents&(unix.POLLERR|unix.POLLHUP) != 0 && fds[0].Revents&unix.POLLIN == 0:
			return false
		case fds[1].Revents != 0:
			return false
		case fds[0].Revents != 0:
			return true
		}
	}
}

// copy copies what one read gives, and tells whether there may be more.
func (s *Stdout) copy(m *secret.Masker) bool {
	n, err := again(func() (int, error) { return unix.Read(s.in, s.buf[s.held:]) })
	if err == unix.EAGAIN {
		return true
	}
	n = max(n, 0)
	return s.pass(m, n, n == 0) && n > 0
}

// rest copies what is in the pipe when nobody waits for its end any more.
func (s *Stdout) rest(m *secret.Masker) {
	left, _ := unix.IoctlGetInt(s.in, unix.TIOCINQ)
	for left > 0 {
		n, err := again(func() (int, error) { return unix.Read(s.in, s.buf[s.held:min(len(s.buf), s.held+left)]) })
		if n <= 0 || err != nil {
			break
		}
		left -= n
		if !s.pass(m, n, false) {
			s.cut = true
			return
		}
	}
	s.cut = !s.pass(m, 0, true)
}

// pass masks and writes what is in buf and n bytes more, and tells whether that
// was possible.
func (s *Stdout) pass(m *secret.Masker, n int, last bool) bool {
	raw := s.buf[:s.held+n]
	if s.tee != nil {
		s.tee(raw[s.held:])
	}
	masked, held := s.mask.Mask(raw[:0], m, raw, last)
	if _, err := s.out.Write(masked); err != nil {
		return false
	}
	s.held = copy(s.buf, raw[len(raw)-held:])
	if s.held == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	return true
}

// Drain waits until everything is copied, and at the deadline copies what it has
// and can get rid of at once. It tells whether nothing was given up.
func (s *Stdout) Drain(deadline time.Time) (whole bool) {
	select {
	case <-s.done:
		return true
	case <-time.After(time.Until(deadline)):
	}
	s.once.Do(func() {
		s.out.SetDeadline(time.Now().Add(lastWrites))
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		unix.Write(s.wake, one[:])
	})
	select {
	case <-s.done:
		return !s.cut
	case <-time.After(2 * lastWrites):
		return false
	}
}

package relay

import (
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pollWrite is how much is written to a descriptor in blocking mode that
	// poll calls writable: the kernel takes as much at once (PIPE_BUF).
	pollWrite = 4096
	// pollSlice is how often a wait for such a descriptor looks at its deadline.
	pollSlice = 100 * time.Millisecond
	// tryTime is how long a reader may take before text is queued for it.
	tryTime = 20 * time.Millisecond
)

// descriptor writes to a file descriptor that other processes share. Their
// O_NONBLOCK, set or not, must not matter here, and ours would harm them.
type descriptor struct {
	fd int
	// pipe is a description of our own, in non-blocking mode, of the pipe that
	// fd is; nil if fd is none or cannot be opened again.
	pipe *os.File
	own  int
	// widened says that pipe was found full once.
	widened bool
	// regular says that fd is a file, which is always writable.
	regular  bool
	deadline atomic.Pointer[time.Time]
	// midline says that the last byte written does not end a line, torn that the
	// line's rest was given up.
	midline, torn bool
}

func newDescriptor(fd int) *descriptor {
	d := &descriptor{fd: fd}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return d
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		d.regular = true
	case unix.S_IFIFO:
		again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			d.pipe, d.own = os.NewFile(uintptr(again), ""), again
		}
	}
	return d
}

// SetDeadline bounds writes, also those under way; the zero time lifts it.
func (d *descriptor) SetDeadline(t time.Time) {
	d.deadline.Store(&t)
	if d.pipe != nil {
		d.pipe.SetWriteDeadline(t)
	}
}

func (d *descriptor) getDeadline() time.Time {
	if t := d.deadline.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// Write writes all of p, as long as it takes, unless there is an error. What
// follows a line that was given up begins on a fresh one.
func (d *descriptor) Write(p []byte) (n int, err error) {
	return d.write(p, d.getDeadline)
}

// try is Write for a reader that reads: if it does not, what is left of p has no
// error.
func (d *descriptor) try(p []byte) (n int, err error) {
	if d.pipe != nil && !d.torn {
		n, err = again(func() (int, error) { return unix.Write(d.own, p) })
		n = max(n, 0)
		d.note(p[:n])
		if err == nil && n == len(p) {
			return n, nil
		}
		if err != nil && err != unix.EAGAIN {
			d.tear()
			return n, err
		}
		if !d.widened {
			d.widened = true
			widen(d.own)
		}
	}
	end := time.Now().Add(tryTime)
	if d.pipe != nil {
		d.pipe.SetWriteDeadline(end)
		defer func() { d.pipe.SetWriteDeadline(d.getDeadline()) }()
	}
	torn := d.torn
	m, err := d.write(p[n:], func() time.Time { return end })
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// It goes on later.
		d.torn, err = torn && m == 0, nil
	}
	return n + m, err
}

func (d *descriptor) write(p []byte, deadline func() time.Time) (n int, err error) {
	if d.torn {
		if _, err := d.writeAll(newline, deadline); err != nil {
			return 0, err
		}
		d.torn = false
	}
	n, err = d.writeAll(p, deadline)
	d.note(p[:n])
	if err != nil {
		d.tear()
	}
	return n, err
}

func (d *descriptor) note(p []byte) {
	if len(p) > 0 {
		d.midline = p[len(p)-1] != '\n'
	}
}

// tear notes that what follows the last byte written was given up.
func (d *descriptor) tear() { d.torn = d.midline }

func (d *descriptor) writeAll(p []byte, deadline func() time.Time) (n int, err error) {
	if d.pipe != nil {
		return d.pipe.Write(p)
	}
	for n < len(p) {
		end := len(p)
		if !d.regular {
			if err := d.await(deadline); err != nil {
				return n, err
			}
			end = min(end, n+pollWrite)
		}
		m, err := unix.Write(d.fd, p[n:end])
		n += max(m, 0)
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return n, err
		}
	}
	return n, nil
}

// await waits until some bytes can be written. A reader that is gone counts:
// the write then says so.
func (d *descriptor) await(deadline func() time.Time) error {
	fds := []unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLOUT}}
	for {
		slice := pollSlice
		t := deadline()
		if !t.IsZero() {
			slice = max(time.Millisecond, min(slice, time.Until(t)))
		}
		n, err := unix.Poll(fds, int(slice.Milliseconds()))
		if n > 0 {
			return nil
		}
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return err
		}
		if !t.IsZero() && time.Now().After(t) {
			return os.ErrDeadlineExceeded
		}
	}
}

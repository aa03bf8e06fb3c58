package relay

import (
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
)

// descriptor writes to a file descriptor that other processes share. Their
// O_NONBLOCK, set or not, must not matter here, and ours would harm them.
type descriptor struct {
	fd int
	// pipe is a description of our own, in non-blocking mode, of the pipe that
	// fd is; nil if fd is none or cannot be opened again.
	pipe *os.File
	// regular says that fd is a file, which is always writable.
	regular  bool
	deadline atomic.Pointer[time.Time]
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
			d.pipe = os.NewFile(uintptr(again), "")
		}
	}
	return d
}

// setDeadline bounds writes, also those under way; the zero time lifts it.
func (d *descriptor) setDeadline(t time.Time) {
	d.deadline.Store(&t)
	if d.pipe != nil {
		d.pipe.SetWriteDeadline(t)
	}
}

// write writes all of p, as long as it takes, unless there is an error.
func (d *descriptor) write(p []byte) (n int, err error) {
	if d.pipe != nil {
		return d.pipe.Write(p)
	}
	for n < len(p) {
		end := len(p)
		if !d.regular {
			if err := d.await(); err != nil {
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
func (d *descriptor) await() error {
	fds := []unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLOUT}}
	for {
		n, err := unix.Poll(fds, int(pollSlice.Milliseconds()))
		if n > 0 {
			return nil
		}
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return err
		}
		if t := d.deadline.Load(); t != nil && !t.IsZero() && time.Now().After(*t) {
			return os.ErrDeadlineExceeded
		}
	}
}

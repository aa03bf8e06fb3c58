package relay

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tap copies a pipe to another process's stderr as it is and collects the
// events.
type tap struct {
	in       *os.File
	to       *copyTo
	events   collector
	stopping atomic.Bool
}

// Tap begins to copy r to dest byte for byte, unmasked and as it comes, and to
// hand the lines among it that are events, masked, to the sinks, in a goroutine
// of its own that closes both at the end of r. r is the read end of a pipe in
// non-blocking mode. dest is made non-blocking if it is a socket: nobody else
// may write to its description from now on. Where dest fails, r is still read
// for the events.
func (o *Output) Tap(r, dest *os.File) {
	t := &tap{in: r, to: newCopyTo(dest), events: collector{out: o}}
	o.begin(t, t.run)
}

func (t *tap) run() {
	defer t.in.Close()
	defer t.to.close()
	buf := make([]byte, firstPiece)
	for {
		n, err := t.in.Read(buf)
		if n > 0 {
			// Events first: whoever reads dest may be slow.
			t.events.add(buf[:n])
			t.to.write(buf[:n])
		}
		if err != nil {
			break
		}
		buf = grown(buf, n)
	}
	if t.stopping.Load() {
		unread(t.in, func() []byte { return buf }, func(n int) {
			t.events.add(buf[:n])
			t.to.write(buf[:n])
		})
	}
	t.events.finish()
}

// firstPiece is how many bytes are read at once of what most often has little.
const firstPiece = 4 << 10

// grown returns a larger buffer after a read that has filled it.
func grown(buf []byte, n int) []byte {
	if n == len(buf) && n < chunk {
		return make([]byte, 4*n)
	}
	return buf
}

// unread takes what is in a pipe, and does not wait for more. room returns where
// to put it.
func unread(pipe *os.File, room func() []byte, take func(n int)) {
	onDescriptor(pipe, func(fd int) (int, error) {
		left, _ := unix.IoctlGetInt(fd, unix.TIOCINQ)
		for left > 0 {
			n, err := again(func() (int, error) { return unix.Read(fd, room()) })
			if n <= 0 || err != nil {
				return 0, err
			}
			left -= n
			take(n)
		}
		return 0, nil
	})
}

// stop makes run end soon: with what is in the pipe, and without waiting for
// dest.
func (t *tap) stop() {
	t.stopping.Store(true)
	t.in.SetReadDeadline(time.Unix(1, 0))
	t.to.stop()
}

// copyTo is a descriptor of somebody else's to which a text is copied, in
// non-blocking mode, through the poller, so that waiting takes no thread.
type copyTo struct {
	file   *os.File
	failed bool
}

// newCopyTo closes f. A copyTo that cannot be made has failed already.
func newCopyTo(f *os.File) *copyTo {
	defer f.Close()
	own, err := onDescriptor(f, unblocked)
	if err != nil {
		return &copyTo{failed: true}
	}
	return &copyTo{file: os.NewFile(uintptr(own), f.Name())}
}

// unblocked returns a descriptor for the file that fd is, in non-blocking mode
// where that means anything. Others may use the description of a pipe or a
// terminal, so they get one of our own; a socket cannot be opened again.
func unblocked(fd int) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return -1, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFCHR:
		return again(func() (int, error) {
			return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		})
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
		err = syscall.SetNonblock(own, true)
	}
	return own, err
}

// write writes all of p, unless dest fails or has failed.
func (c *copyTo) write(p []byte) {
	if c.failed {
		return
	}
	if _, err := c.file.Write(p); err != nil {
		c.failed = true
	}
}

func (c *copyTo) stop() {
	if c.file != nil {
		c.file.SetWriteDeadline(time.Now().Add(lastWrites / 4))
	}
}

func (c *copyTo) close() {
	if c.file != nil {
		c.file.Close()
	}
}

// again repeats a call that a signal interrupted.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

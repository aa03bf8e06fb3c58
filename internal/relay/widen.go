package relay

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	// widePipe is how many bytes a busy pipe is made to hold. A switch between
	// its writer and its reader costs more than moving what a pipe holds at first.
	widePipe = 256 << 10
	// busyReads is how many reads in a row have to find a pipe full. Linux bounds
	// what all pipes of a user hold together (pipe-user-pages-soft, pipe(7)):
	// others stay as they are.
	busyReads = 8
)

// widen is best effort: the kernel may refuse.
func widen(fd int) {
	if n, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0); err == nil && n < widePipe {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, widePipe)
	}
}

// busy widens a pipe that is found full again and again.
type busy int

// read notes that n bytes came from a pipe at once.
func (b *busy) read(pipe *os.File, n int) {
	switch {
	case *b >= busyReads:
		return
	case n < chunk:
		*b = 0
		return
	}
	if *b++; *b < busyReads {
		return
	}
	if conn, err := pipe.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { widen(int(fd)) })
	}
}

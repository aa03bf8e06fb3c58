package terminal

import (
	"os"
	"strconv"

	"github.com/containerd/console"
	"golang.org/x/sys/unix"
)

// measure is the size for the agent's terminal: ours, else what COLUMNS and LINES
// say, else the usual one.
func measure() console.WinSize {
	if size, known := ownSize(); known {
		return size
	}
	return console.WinSize{Width: sizeFrom("COLUMNS", usual.Width), Height: sizeFrom("LINES", usual.Height)}
}

// ownSize is that of our terminal; not known where there is none, or one that
// was given no size yet.
func ownSize() (size console.WinSize, known bool) {
	fd := ours()
	if fd < 0 {
		return size, false
	}
	got, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil || got.Row == 0 || got.Col == 0 {
		return size, false
	}
	return console.WinSize{Width: got.Col, Height: got.Row}, true
}

func sizeFrom(variable string, otherwise uint16) uint16 {
	n, err := strconv.ParseUint(os.Getenv(variable), 10, 16)
	if err != nil || n == 0 {
		return otherwise
	}
	return uint16(n)
}

// ours is the first standard descriptor that is a terminal; -1 without one.
func ours() int {
	for fd := range 3 {
		if isTerminal(fd) {
			return fd
		}
	}
	return -1
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// inForeground tells that we may use the terminal on standard input. One that
// does not control us has no foreground for us.
func inForeground() bool {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

package journal

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Watch tells when something happens to a journal.
type Watch struct{ inotify *os.File }

// NewWatch watches the journal in a directory. Where the kernel cannot tell of
// changes (a limit is reached, or the file system is of another kind), Wait
// lasts as long as it may.
func NewWatch(dir string) *Watch {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return &Watch{}
	}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MODIFY|unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		unix.Close(fd)
		return &Watch{}
	}
	return &Watch{os.NewFile(uintptr(fd), "inotify")}
}

// Wait returns when something has happened since the last call, or limit is
// over; happened tells which.
func (w *Watch) Wait(limit time.Duration) (happened bool) {
	if w.inotify == nil {
		time.Sleep(limit)
		return false
	}
	w.inotify.SetReadDeadline(time.Now().Add(limit))
	_, err := w.inotify.Read(make([]byte, 64<<10))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// Close ends the watch.
func (w *Watch) Close() {
	if w.inotify != nil {
		w.inotify.Close()
	}
}

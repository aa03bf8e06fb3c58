package relay

import (
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pollFile is how often a file is looked at of which the kernel does not tell
	// when it grows, and one for the end of whose writers we wait.
	pollFile = 100 * time.Millisecond
	// noWait stands for a timer that does not go off.
	noWait = 24 * time.Hour
)

// follower collects the events in what is appended to a file.
type follower struct {
	file   *os.File
	offset int64
	buf    []byte
	events collector
	// wake has a token when the file may have changed; done is closed when the
	// process that it belongs to has ended.
	wake chan struct{}
	done chan struct{}
	// quit is closed to make run end with what the file has then.
	quit chan struct{}
	once sync.Once
	// watched says that wake can be relied on.
	watched bool
	// number is that of its file at the watch.
	number int32
}

// Follow begins to read what is appended to f from an offset on and to hand the
// lines that are events, masked, to the sinks; nothing is copied anywhere. f is a
// regular file, most likely open for writing only; it is closed at once. It is
// read until the process that the pidfd done names has ended and nobody has the
// file open for writing any more; where the kernel cannot tell of writers, until
// the process has ended. An error says that nothing is followed.
func (o *Output) Follow(f *os.File, from int64, done *os.File) error {
	file, err := reopen(f)
	if err != nil {
		done.Close()
		return err
	}
	end, err := pollable(done)
	if err != nil {
		file.Close()
		return err
	}
	w := &follower{file: file, offset: from, events: collector{out: o}, wake: make(chan struct{}, 1), done: make(chan struct{}), quit: make(chan struct{})}
	w.watched = o.watch.add(w) == nil
	go func() {
		awaitReadable(end)
		end.Close()
		close(w.done)
	}()
	o.begin(w, func() {
		w.run()
		o.watch.remove(w)
		end.SetReadDeadline(time.Unix(1, 0))
		w.file.Close()
	})
	return nil
}

// reopen opens a regular file again, for reading, and closes f.
func reopen(f *os.File) (*os.File, error) {
	defer f.Close()
	own, err := onDescriptor(f, func(fd int) (int, error) {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return -1, err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return -1, errors.New("it is not a regular file")
		}
		return again(func() (int, error) {
			return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		})
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(own), f.Name()), nil
}

// pollable returns a file for which the poller waits, and closes f.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	own, err := onDescriptor(f, func(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	syscall.SetNonblock(own, true) // It is a valid descriptor.
	return os.NewFile(uintptr(own), f.Name()), nil
}

// awaitReadable returns when f is readable or its deadline is over.
func awaitReadable(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

func (w *follower) run() {
	defer w.events.finish()
	w.buf = make([]byte, firstPiece)
	done := w.done
	for ended := false; ; {
		if !w.read() {
			return
		}
		if ended && !w.hasWriter() {
			// The last one may have written since.
			w.read()
			return
		}
		wait := noWait
		if ended || !w.watched {
			wait = pollFile
		}
		timer := time.NewTimer(wait)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-done:
			ended, done = true, nil
		case <-w.quit:
		}
		timer.Stop()
	}
}

// read takes what the file has, and tells whether there may be more later.
func (w *follower) read() (more bool) {
	limit := int64(math.MaxInt64)
	for more = true; ; {
		if more && w.stopped() {
			// Somebody may write faster than we read.
			more, limit = false, w.size()
		}
		n, err := w.file.ReadAt(w.buf[:min(int64(len(w.buf)), max(0, limit-w.offset))], w.offset)
		w.offset += int64(n)
		w.events.add(w.buf[:n])
		w.buf = grown(w.buf, n)
		switch {
		case err == io.EOF && more:
			// Whoever cuts the file short has what follows read.
			w.offset = min(w.offset, w.size())
			return true
		case err != nil || n == 0:
			return false
		}
	}
}

func (w *follower) size() int64 {
	info, err := w.file.Stat()
	if err != nil {
		return w.offset
	}
	return info.Size()
}

func (w *follower) stopped() bool {
	select {
	case <-w.quit:
		return true
	default:
		return false
	}
}

func (w *follower) stop() { w.once.Do(func() { close(w.quit) }) }

// hasWriter tells whether anybody has the file open for writing: the kernel then
// refuses a lease for reading. Where it refuses for another reason nobody can
// tell.
func (w *follower) hasWriter() bool {
	_, err := onDescriptor(w.file, func(fd int) (int, error) {
		// Who opens the file while we have the lease waits, and we get a signal:
		// one that the Go runtime takes for its own and ignores.
		unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGURG))
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		}
		return 0, err
	})
	return err == unix.EAGAIN
}

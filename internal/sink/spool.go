package sink

import (
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// spoolFile is a file without a name. It is closed when nobody holds it any
// more; whoever makes it holds it.
type spoolFile struct {
	fd      int
	size    int64
	holders atomic.Int32
}

// spools makes the names differ that spool files have for a moment.
var spools atomic.Int64

// newSpoolFile makes a file in a directory.
func newSpoolFile(dir string) (*spoolFile, error) {
	path := dir + "/spool-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(spools.Add(1), 10)
	fd, err := again(func() (int, error) {
		return unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return nil, err
	}
	if err := unix.Unlink(path); err != nil {
		unix.Close(fd)
		return nil, err
	}
	f := &spoolFile{fd: fd}
	f.hold()
	return f, nil
}

func (f *spoolFile) hold() { f.holders.Add(1) }

func (f *spoolFile) held() int32 { return f.holders.Load() }

func (f *spoolFile) release() {
	if f.holders.Add(-1) == 0 {
		unix.Close(f.fd)
	}
}

// append appends text, or none of it on error.
func (f *spoolFile) append(text []byte) error {
	for off := f.size; len(text) > 0; {
		n, err := again(func() (int, error) { return unix.Pwrite(f.fd, text, off) })
		if err != nil {
			return err
		}
		text = text[n:]
		off += int64(n)
		if len(text) == 0 {
			f.size = off
		}
	}
	return nil
}

// read fills text with what is at an offset.
func (f *spoolFile) read(text []byte, off int64) error {
	for len(text) > 0 {
		n, err := again(func() (int, error) { return unix.Pread(f.fd, text, off) })
		if err != nil {
			return err
		}
		if n == 0 {
			return unix.EIO // Nobody else can have cut it short: it has no name.
		}
		text = text[n:]
		off += int64(n)
	}
	return nil
}

// mmap returns the first size bytes in memory that the kernel may take back.
func (f *spoolFile) mmap(size int64) ([]byte, error) {
	return unix.Mmap(f.fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
}

// again repeats a call that a signal interrupted.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

package sink

import (
	"bytes"
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// File is a target that appends to a regular file, to which other processes may
// append too: it is locked (flock) while it is written.
type File struct {
	path string
	fd   int
}

// ErrNotRegular says that a path is something that no lines can be appended to.
var ErrNotRegular = errors.New("it is not a regular file")

// NewFile returns a target for the file with the given path, which is made when
// there is something to write.
func NewFile(path string) *File { return &File{path: path, fd: -1} }

// CheckFile tells why a File with the given path could not be written. It makes
// nothing.
func CheckFile(path string) error {
	fd, err := openFile(path, 0)
	if err == nil {
		unix.Close(fd)
		return nil
	}
	if errors.Is(err, unix.ENOENT) {
		return unix.Faccessat(unix.AT_FDCWD, filepath.Dir(path), unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	}
	return err
}

func (f *File) open() (err error) {
	f.close()
	f.fd, err = openFile(f.path, unix.O_CREAT)
	return err
}

func openFile(path string, flags int) (int, error) {
	// What is no file must not be waited for.
	fd, err := again(func() (int, error) {
		return unix.Open(path, flags|unix.O_RDWR|unix.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o644)
	})
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrNotRegular
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (f *File) close() {
	if f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
	}
}

// SetDeadline does nothing: files do not wait.
func (f *File) SetDeadline(time.Time) {}

// Write appends lines. Others find whole lines only.
func (f *File) Write(lines []byte) (n int, err error) {
	size, err := f.lock()
	if err != nil {
		return 0, err
	}
	defer unix.Flock(f.fd, unix.LOCK_UN)
	if size, err = f.freshLine(size); err != nil {
		return 0, err
	}
	return AppendWhole(f.fd, size, lines)
}

// lock locks the file that has the path now and returns its size: somebody may
// have moved ours away.
func (f *File) lock() (int64, error) {
	for {
		if f.fd >= 0 {
			if _, err := again(func() (int, error) { return 0, unix.Flock(f.fd, unix.LOCK_EX) }); err != nil {
				return 0, err
			}
			var ours, named unix.Stat_t
			if unix.Fstat(f.fd, &ours) == nil && unix.Stat(f.path, &named) == nil && ours.Ino == named.Ino && ours.Dev == named.Dev {
				return ours.Size, nil
			}
		}
		// Closing drops the lock.
		if err := f.open(); err != nil {
			return 0, err
		}
	}
}

// freshLine ends a line that somebody has left without an end.
func (f *File) freshLine(size int64) (int64, error) {
	var last [1]byte
	if size == 0 {
		return 0, nil
	}
	if n, err := again(func() (int, error) { return unix.Pread(f.fd, last[:], size-1) }); err != nil || n == 0 || last[0] == '\n' {
		return size, nil
	}
	n, err := again(func() (int, error) { return unix.Write(f.fd, newline) })
	return size + int64(max(n, 0)), err
}

// AppendWhole appends lines to a locked file of the given size. On error it
// takes back the beginning of a line.
func AppendWhole(fd int, size int64, lines []byte) (n int, err error) {
	for n < len(lines) {
		m, err := again(func() (int, error) { return unix.Write(fd, lines[n:]) })
		if err != nil {
			whole := bytes.LastIndexByte(lines[:n], '\n') + 1
			if n > whole && unix.Ftruncate(fd, size+int64(whole)) != nil {
				// The rest may still come to stand behind it.
				return n, err
			}
			return whole, err
		}
		n += m
	}
	return n, nil
}

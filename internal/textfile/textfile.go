// Package textfile reads small regular files that others wrote, and lists their
// directories: bounded in size, never blocking on a FIFO or a device, and, below
// a root, never through a symlink that leads out of it.
//
// It makes its system calls itself: an os.File offers each file to the network
// poller, in vain, which doubles the cost of reading a small one.
package textfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Limit is the size in bytes that plugin and repo files may have.
const Limit = 1 << 20

// ErrNotRegular says that a path is a directory, FIFO, socket or device.
var ErrNotRegular = errors.New("it is not a regular file")

// O_NONBLOCK keeps open(2) from waiting for the other end of a FIFO.
const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC

// Read reads the file at path, following symlinks. A file of more than Limit
// bytes, or one that is not regular, is an error.
func Read(path string) ([]byte, error) {
	fd, err := open(path, flags)
	if err != nil {
		return nil, err
	}
	return slurp(fd, path, nil)
}

func open(path string, flags int) (int, error) {
	fd, err := again(func() (int, error) { return unix.Open(path, flags, 0) })
	if err != nil {
		return fd, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// again repeats a call that a signal interrupted: FUSE and NFS let that happen
// even to those that signal(7) promises to restart.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

// slurp reads the file open at fd, into the memory of data where that suffices,
// and closes it.
func slurp(fd int, path string, data []byte) ([]byte, error) {
	defer unix.Close(fd)
	var st unix.Stat_t
	if _, err := again(func() (int, error) { return 0, unix.Fstat(fd, &st) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, ErrNotRegular
	}
	if st.Size > Limit {
		return nil, tooLarge(st.Size)
	}
	room := st.Size + 1
	if st.Size == 0 {
		room = 512
	}
	if data = data[:0]; int64(cap(data)) < room {
		data = make([]byte, 0, room)
	}
	for {
		n, err := again(func() (int, error) { return unix.Read(fd, data[len(data):cap(data)]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		data = data[:len(data)+n]
		if len(data) > Limit {
			return nil, tooLarge(int64(len(data)))
		}
		// The size may be wrong (procfs says 0) or change while it is read. A
		// read that reaches it and still leaves room has met the end.
		if n == 0 || len(data) < cap(data) && st.Size > 0 && int64(len(data)) >= st.Size {
			return data, nil
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

func tooLarge(size int64) error {
	return fmt.Errorf("it has %d bytes, more than the limit of %d", size, Limit)
}

// Reason is an error of this package or of the file system in the words of a
// message that already names the path.
func Reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied for uid " + fmt.Sprint(os.Geteuid())
	case errors.Is(err, unix.ELOOP):
		return "too many levels of symbolic links"
	}
	return err.Error()
}

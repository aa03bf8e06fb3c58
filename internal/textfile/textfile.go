// Package textfile reads small regular files that others wrote: bounded in
// size, never blocking on a FIFO or a device, and, below a root, never through
// a symlink that leads out of it.
package textfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Limit is the size in bytes that plugin and repo files may have.
const Limit = 1 << 20

// ErrNotRegular says that a path is a directory, FIFO, socket or device.
var ErrNotRegular = errors.New("it is not a regular file")

// O_NONBLOCK keeps open(2) from waiting for the other end of a FIFO.
const flags = os.O_RDONLY | syscall.O_NONBLOCK

// Read reads the file at path, following symlinks. A file of more than Limit
// bytes, or one that is not regular, is an error.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	return slurp(f)
}

// ReadIn is Read for a path below root; a symlink that leads out of root is an
// error.
func ReadIn(root *os.Root, path string) ([]byte, error) {
	f, err := root.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	return slurp(f)
}

func slurp(f *os.File) ([]byte, error) {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	if info.Size() > Limit {
		return nil, tooLarge(info.Size())
	}
	// The size may be wrong (procfs says 0) or change while it is read.
	data := make([]byte, 0, info.Size()+512)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if len(data) > Limit {
			return nil, tooLarge(int64(len(data)))
		}
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
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
		return "permission denied for uid " + fmt.Sprint(os.Getuid())
	case errors.Is(err, syscall.ELOOP):
		return "too many levels of symbolic links"
	}
	return err.Error()
}

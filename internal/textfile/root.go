package textfile

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Root is a directory below which files are read. A symlink inside it that leads
// out of it, or is absolute, is not followed; the error is then that of os.Root.
// A Root is for one goroutine at a time.
type Root struct {
	path string
	fd   int
	// walker is an os.Root on the same directory, nil until it is needed.
	walker *os.Root
}

// withoutOpenat2 is set when the kernel (before 5.6) or a seccomp filter refuses
// openat2(2); it then stays refused.
var withoutOpenat2 atomic.Bool

// OpenRoot opens the directory at path, following symlinks.
func OpenRoot(path string) (*Root, error) {
	fd, err := open(path, directory)
	if err != nil {
		return nil, err
	}
	return &Root{path: path, fd: fd}, nil
}

// Close closes the directory; files read from it are not affected.
func (r *Root) Close() error {
	err := unix.Close(r.fd)
	if r.walker != nil {
		err = errors.Join(err, r.walker.Close())
	}
	return err
}

// Name is the path that was given to OpenRoot.
func (r *Root) Name() string { return r.path }

// Read is the function Read for a path below the root.
func (r *Root) Read(name string) ([]byte, error) { return r.ReadInto(nil, name) }

// ReadInto is Read into the memory of buf, as far as that suffices.
func (r *Root) ReadInto(buf []byte, name string) ([]byte, error) {
	fd, err := r.open(name, flags)
	if err != nil {
		return nil, err
	}
	return slurp(fd, name, buf)
}

// List is the function List for a path below the root.
func (r *Root) List(name string) ([]Entry, error) {
	fd, err := r.open(name, directory)
	if err != nil {
		return nil, err
	}
	return list(fd, name)
}

// Names is the function Names for a path below the root.
func (r *Root) Names(name string) ([]string, error) {
	fd, err := r.open(name, directory)
	if err != nil {
		return nil, err
	}
	return names(fd, name)
}

// Exists tells whether there is something at a path below the root: of a symlink
// the link itself counts.
func (r *Root) Exists(name string) bool {
	if !withoutOpenat2.Load() {
		fd, err := r.beneath(name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
		if err == nil {
			unix.Close(fd)
			return true
		}
		if err == unix.ENOENT {
			return false
		}
	}
	walker, err := r.walk()
	if err != nil {
		return false
	}
	_, err = walker.Lstat(name)
	return err == nil
}

// open lets the kernel do the whole walk below the root. What the kernel refuses,
// os.Root tries again, one directory at a time: it knows the reason in words.
func (r *Root) open(name string, flags int) (int, error) {
	if !withoutOpenat2.Load() {
		fd, err := r.beneath(name, flags)
		switch err {
		case nil:
			return fd, nil
		case unix.ENOENT:
			return -1, &fs.PathError{Op: "openat2", Path: name, Err: err}
		case unix.ENOSYS, unix.EPERM:
			withoutOpenat2.Store(true)
		}
	}
	walker, err := r.walk()
	if err != nil {
		return -1, err
	}
	f, err := walker.OpenFile(name, flags, 0)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "dup", Path: name, Err: err}
	}
	return fd, nil
}

func (r *Root) beneath(name string, flags int) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	return again(func() (int, error) { return unix.Openat2(r.fd, name, &how) })
}

func (r *Root) walk() (*os.Root, error) {
	if r.walker == nil {
		walker, err := os.OpenRoot(r.path)
		if err != nil {
			return nil, err
		}
		r.walker = walker
	}
	return r.walker, nil
}

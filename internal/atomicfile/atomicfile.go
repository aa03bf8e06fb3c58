// Package atomicfile replaces files so that a crash at any point leaves the
// old or the new content, never a part of one.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is a file to be written.
type File struct {
	Path string
	Data []byte
	// Mode is the file's mode; an existing file with other permissions gets it.
	Mode fs.FileMode
	// DirMode is the mode of parent directories that have to be made.
	DirMode fs.FileMode
	// Durable syncs file and directory before Write returns. Files in the
	// runtime directory die with their container and need it not.
	Durable bool
	// FollowLink writes through a symlink at Path, as git does for its own
	// files, instead of replacing the link.
	FollowLink bool
}

// Same tells whether the file already has this content and mode.
func (f File) Same() bool {
	path, err := f.target()
	if err != nil {
		return false
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != f.Mode || info.Size() != int64(len(f.Data)) {
		return false
	}
	old, err := os.ReadFile(path)
	return err == nil && bytes.Equal(old, f.Data)
}

// Write puts the file in place through a temporary name in the same directory
// and reports whether anything had to be changed. The errors are those of the
// file system, with the path.
func (f File) Write() (changed bool, err error) {
	if f.Same() {
		return false, nil
	}
	path, err := f.target()
	if err != nil {
		return false, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, f.DirMode); err != nil {
		return false, err
	}
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	err = errors.Join(fill(tmp, f), tmp.Close())
	if err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return false, err
	}
	if f.Durable {
		err = syncDir(dir)
	}
	return true, err
}

func fill(tmp *os.File, f File) error {
	// CreateTemp makes 0600, so content is never readable more widely than Mode.
	if _, err := tmp.Write(f.Data); err != nil {
		return err
	}
	if err := tmp.Chmod(f.Mode); err != nil {
		return err
	}
	if f.Durable {
		return tmp.Sync()
	}
	return nil
}

func (f File) target() (string, error) {
	if !f.FollowLink {
		return f.Path, nil
	}
	return Follow(f.Path)
}

// Follow resolves the symlinks of path's last component, as FollowLink does;
// what it leads to need not exist.
func Follow(path string) (string, error) {
	start := path
	for range 40 {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", &fs.PathError{Op: "open", Path: start, Err: syscall.ELOOP}
}

// syncDir makes a rename durable: rename(2) alone does not, see fsync(2).
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

package gitsetup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"agent-init/internal/atomicfile"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// isMountPoint tells whether something is mounted at path, so that rename(2)
// onto it fails with EBUSY. Kernels before 5.8 do not say (statx(2),
// STATX_ATTR_MOUNT_ROOT); there the rename is tried.
func isMountPoint(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// place is a file that the plan may replace.
type place struct {
	path string
	// exists and mode describe what is there now.
	exists bool
	mode   fs.FileMode
	data   []byte
	// obstacle says why the file cannot be replaced; empty when it can.
	obstacle string
}

// at looks at the file that path leads to.
func at(path string) place {
	p := place{path: path, mode: 0o644}
	if !filepath.IsAbs(path) {
		p.obstacle = "the path is not absolute"
		return p
	}
	target, err := atomicfile.Follow(path)
	if err != nil {
		p.obstacle = textfile.Reason(err)
		return p
	}
	info, err := os.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
	case err != nil:
		p.obstacle = textfile.Reason(err)
		return p
	default:
		p.exists, p.mode = true, info.Mode().Perm()
		if p.data, err = textfile.Read(target); err != nil {
			p.obstacle = textfile.Reason(err)
			return p
		}
	}
	p.obstacle = obstacleTo(target, p.exists)
	return p
}

// obstacleTo says why a rename onto target would fail.
func obstacleTo(target string, exists bool) string {
	dir := filepath.Dir(target)
	if exists && isMountPoint(target) {
		return "it is a mount point, which cannot be replaced"
	}
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && !info.IsDir():
			return problem.Path(dir) + " is not a directory"
		case err == nil:
			return cannotCreateIn(dir)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR):
			return problem.Path(dir) + ": " + textfile.Reason(err)
		}
		if _, err := os.Lstat(dir); err == nil {
			return problem.Path(dir) + " is a symlink to nothing"
		}
		dir = filepath.Dir(dir)
	}
}

func cannotCreateIn(dir string) string {
	err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	switch {
	case errors.Is(err, unix.EROFS):
		return problem.Path(dir) + " is on a read-only file system"
	case err != nil:
		return "no files can be made in " + problem.Path(dir) + ": " + textfile.Reason(err)
	}
	return ""
}

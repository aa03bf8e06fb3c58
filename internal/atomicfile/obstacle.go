package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// Obstacle says why no file can be put in place at path; it is empty where one
// can. It changes nothing.
func Obstacle(path string) string {
	if isMountPoint(path) {
		return "it is a mount point, which cannot be replaced"
	}
	dir := filepath.Dir(path)
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

// isMountPoint tells whether something is mounted at path, so that rename(2)
// onto it fails with EBUSY. Kernels before 5.8 do not say (statx(2),
// STATX_ATTR_MOUNT_ROOT); there the rename is tried.
func isMountPoint(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
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

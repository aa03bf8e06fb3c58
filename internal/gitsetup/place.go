package gitsetup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// mounts are the mount points of this mount namespace.
type mounts map[string]bool

// readMounts returns none when /proc is missing; replacing a mount point then
// fails when it is tried.
func readMounts() mounts {
	data, err := textfile.Read("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseMounts(string(data))
}

// parseMounts takes the fifth field of each line, see proc(5).
func parseMounts(mountinfo string) mounts {
	m := mounts{}
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 {
			m[unescapeOctal(fields[4])] = true
		}
	}
	return m
}

// unescapeOctal undoes the kernel's \040 for a blank, \011, \012, \134 and \043.
func unescapeOctal(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && isOctal(s[i+1]) && isOctal(s[i+2]) && isOctal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func isOctal(c byte) bool { return '0' <= c && c <= '7' }

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
func (m mounts) at(path string) place {
	p := place{path: path, mode: 0o644}
	if !filepath.IsAbs(path) {
		p.obstacle = "the path is not absolute"
		return p
	}
	target, err := follow(path)
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
	p.obstacle = m.obstacleTo(target, p.exists)
	return p
}

// obstacleTo says why a rename onto target would fail.
func (m mounts) obstacleTo(target string, exists bool) string {
	dir := filepath.Dir(target)
	if exists {
		if real, err := filepath.EvalSymlinks(dir); err == nil && m[filepath.Join(real, filepath.Base(target))] {
			return "it is a mount point, which cannot be replaced"
		}
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

// follow resolves the symlinks of the last component, as atomicfile does for
// FollowLink; what it leads to need not exist.
func follow(path string) (string, error) {
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
	return "", unix.ELOOP
}

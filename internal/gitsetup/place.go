package gitsetup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"agent-init/internal/atomicfile"
	"agent-init/internal/textfile"
)

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
	p.obstacle = atomicfile.Obstacle(target)
	return p
}

package githook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agent-init/internal/textfile"
)

// Compose makes dir the core.hooksPath for hooks, which run in the order in which
// they are given. Self is the program that Dispatch is part of. What an earlier
// call has made is replaced.
//
// The hooks of a name are symlinks beside the link that git runs: "pre-commit.0000".
// It makes as few inodes as it can, which on a disk cost most of its time.
func Compose(dir, self string, hooks []Hook) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := removeOurs(dir); err != nil {
		return err
	}
	first := filepath.Join(dir, known[0].name)
	if err := os.Symlink(self, first); err != nil && !os.IsExist(err) {
		return err
	}
	for _, k := range known[1:] {
		// A second name of the symlink, where the file system has such names.
		name := filepath.Join(dir, k.name)
		if os.Link(first, name) == nil {
			continue
		}
		if err := os.Symlink(self, name); err != nil && !os.IsExist(err) {
			return err
		}
	}
	for i, h := range hooks {
		// Of one width, so that byte order is their order.
		if err := os.Symlink(h.Path, filepath.Join(dir, fmt.Sprintf("%s.%08d", h.Name, i))); err != nil {
			return err
		}
	}
	return nil
}

func removeOurs(dir string) error {
	names, err := textfile.Names(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.Contains(name, ".") {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// composed are the paths of our hooks of a name, in their order.
func composed(dir, name string) (paths []string, err error) {
	names, err := textfile.Names(dir)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if !strings.HasPrefix(n, name+".") {
			continue
		}
		// The hook's own path, beside which it may look for what belongs to it.
		path, err := os.Readlink(filepath.Join(dir, n))
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

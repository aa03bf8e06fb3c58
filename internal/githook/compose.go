package githook

import (
	"fmt"
	"os"
	"path/filepath"
)

// oursName is the directory, beside the links that git runs, that lists the hooks
// of each name in their order.
const oursName = "ours"

// Compose makes dir the core.hooksPath for hooks, which run in the order in which
// they are given. Self is the program that Dispatch is part of. What an earlier
// call has made is replaced.
func Compose(dir, self string, hooks []Hook) error {
	list := filepath.Join(dir, oursName)
	if err := os.RemoveAll(list); err != nil {
		return err
	}
	if err := os.MkdirAll(list, 0o700); err != nil {
		return err
	}
	for _, k := range known {
		if err := os.Symlink(self, filepath.Join(dir, k.name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	for i, h := range hooks {
		of := filepath.Join(list, h.Name)
		if err := os.MkdirAll(of, 0o700); err != nil {
			return err
		}
		// Of one width, so that byte order is their order.
		if err := os.Symlink(h.Path, filepath.Join(of, fmt.Sprintf("%08d", i))); err != nil {
			return err
		}
	}
	return nil
}

// composed are the paths of our hooks of a name, in their order.
func composed(dir, name string) (paths []string, err error) {
	list := filepath.Join(dir, oursName, name)
	entries, err := os.ReadDir(list)
	if os.IsNotExist(err) {
		return nil, nil
	}
	for _, e := range entries {
		// The hook's own path, beside which it may look for what belongs to it.
		path, err := os.Readlink(filepath.Join(list, e.Name()))
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, err
}

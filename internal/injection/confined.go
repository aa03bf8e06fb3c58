package injection

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"agent-init/internal/textfile"
)

// confined finds symlinks that lead out of the mounted directory. The agent CLI,
// which reads plugins where they are, would follow them.
type confined struct {
	*reader
	// seen are the directories that have been looked at, by their real paths.
	seen map[string]bool
	// entries is how many entries they had.
	entries int
}

// check tells whether everything at path stays in the mounted directory.
func (c *confined) check(path string) bool {
	root, err := filepath.EvalSymlinks(c.root.Name())
	if err != nil {
		c.fail("plugin", path, textfile.Reason(err), "")
		return false
	}
	ok := true
	for todo := []string{path}; len(todo) > 0; {
		at := todo[0]
		todo = todo[1:]
		real, err := filepath.EvalSymlinks(at)
		switch to, _ := os.Readlink(at); {
		case errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(to):
			// It leads nowhere; that of a plugin itself is reported with the plugins.
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			c.fail("plugin", at, textfile.Reason(err), "")
			ok = false
			continue
		case err != nil || real != root && !strings.HasPrefix(real, root+"/"):
			c.fail("plugin", at, "it is a symlink that leads out of the mounted directory", "copy what it leads to")
			ok = false
			continue
		}
		if c.seen[real] {
			continue
		}
		entries, err := textfile.List(real)
		if errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			c.fail("plugin", at, textfile.Reason(err), "")
			ok = false
			continue
		}
		c.seen[real] = true
		if c.entries += len(entries); c.entries > maxEntries {
			c.fail("plugin", path, tooMany, "")
			return false
		}
		for _, e := range entries {
			if e.IsDir() || e.Type == fs.ModeSymlink {
				todo = append(todo, filepath.Join(real, e.Name))
			}
		}
	}
	return ok
}

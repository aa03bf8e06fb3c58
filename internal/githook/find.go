package githook

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

// Find lists the hooks in a directory, in byte order of their names. One that
// does not exist holds none. What looks like a hook and is none that can run is
// a Warning; what cannot be read is an Error, because it may be one that vetoes.
func Find(dir, plugin string) (hooks []Hook, found problem.List) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, problem.List{{What: "cannot read git hooks", File: dir, Why: textfile.Reason(err), Hint: "a directory of executables named after git's hooks belongs there"}}
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		runnable, bad := check(path, e.Name())
		if bad != nil {
			found.Add(*bad)
		}
		if runnable {
			hooks = append(hooks, Hook{Name: e.Name(), Path: path, Plugin: plugin})
		}
	}
	return hooks, found
}

// check tells whether git would run a file as a hook, and what is odd about it.
func check(path, name string) (runnable bool, bad *problem.Problem) {
	odd := func(why, hint string) (bool, *problem.Problem) {
		return false, &problem.Problem{Severity: problem.Warning, What: "git hook does not run", File: path, Why: why, Hint: hint}
	}
	t, isKnown := traits(name)
	info, err := os.Stat(path)
	switch {
	case !isKnown:
		program := err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
		if program && filepath.Ext(name) == "" && !strings.HasPrefix(name, ".") {
			return odd("git knows no hook of this name", "rename it after one of those in githooks(5); what hooks share can be in a subdirectory")
		}
		return false, nil
	case err != nil:
		return false, &problem.Problem{What: "cannot read git hook", File: path, Why: textfile.Reason(err)}
	case !info.Mode().IsRegular():
		return odd("it is not a regular file", "")
	case info.Mode().Perm()&0o111 == 0:
		return odd("it is not executable", "chmod +x it")
	case t&converses != 0:
		return odd("it speaks with git, which only one program can: the repository's own", "")
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return odd(textfile.Reason(&fs.PathError{Op: "access", Path: path, Err: err}), "make it executable for everybody, on a file system that is not mounted noexec")
	}
	return true, nil
}

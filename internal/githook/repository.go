package githook

import (
	"os"
	"path/filepath"
	"strings"

	"agent-init/internal/gitsetup"
	"agent-init/internal/textfile"
)

// Repository is where a repository keeps its files.
type Repository struct {
	// Dir is the git directory; of a linked worktree its own.
	Dir string
	// Common is the directory that linked worktrees share: Dir, or another.
	Common string
}

// At finds the repository at the top of a working tree, or of a bare one at the
// repository itself (gitrepository-layout(5)).
func At(dir string) (Repository, bool) {
	git := filepath.Join(dir, ".git")
	info, err := os.Stat(git)
	switch {
	case err == nil && info.IsDir():
	case err == nil:
		text, err := textfile.Read(git)
		to, ok := strings.CutPrefix(string(text), "gitdir: ")
		if err != nil || !ok {
			return Repository{}, false
		}
		git = from(dir, to)
	case isBare(dir):
		git = dir
	default:
		return Repository{}, false
	}
	return in(git, ""), true
}

// in is the repository in a git directory.
func in(git, common string) Repository {
	if common == "" {
		common = git
		if text, err := textfile.Read(filepath.Join(git, "commondir")); err == nil {
			common = from(git, string(text))
		}
	}
	return Repository{git, common}
}

// from is a path in a file of git's, relative to the directory of that file.
func from(dir, path string) string {
	path = strings.TrimRight(path, "\r\n")
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func isBare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// HooksPath is the core.hooksPath that the repository's own configuration sets,
// and the file that does; both are empty where there is none.
func (r Repository) HooksPath() (path, file string) {
	shared := filepath.Join(r.Common, "config")
	entries := read(shared)
	if value, ok := gitsetup.Last(entries, "core.hookspath"); ok {
		path, file = value, shared
	}
	if on, ok := gitsetup.Last(entries, "extensions.worktreeconfig"); ok && !strings.EqualFold(on, "false") {
		own := filepath.Join(r.Dir, "config.worktree")
		if value, ok := gitsetup.Last(read(own), "core.hookspath"); ok {
			path, file = value, own
		}
	}
	return path, file
}

// read takes what can be read: git says what is wrong with the rest.
func read(path string) []gitsetup.Entry {
	data, err := textfile.Read(path)
	if err != nil {
		return nil
	}
	entries, _ := gitsetup.ParseConfig(path, data)
	return entries
}

// current is the repository for which git runs a hook: at the top of its working
// tree, or in the git directory.
func current() (Repository, bool) {
	if git := os.Getenv("GIT_DIR"); git != "" {
		return in(git, os.Getenv("GIT_COMMON_DIR")), true
	}
	return At(".")
}

// own is the path of the repository's own hook of a name.
func (r Repository) own(name string) string {
	dir := filepath.Join(r.Common, "hooks")
	// Settings in the environment win over a repository's, so that git comes here
	// although it has a hooks directory elsewhere.
	if os.Getenv("GIT_CONFIG_COUNT") != "" {
		if path, _ := r.HooksPath(); path != "" {
			dir = path
			if rest, ok := strings.CutPrefix(path, "~/"); ok {
				dir = filepath.Join(os.Getenv("HOME"), rest)
			}
		}
	}
	return filepath.Join(dir, name)
}

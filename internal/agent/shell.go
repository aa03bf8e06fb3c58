package agent

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// BashShell is the program that Claude Code runs Bash tool commands with, and
// their argv[0], given its environment; empty when it finds none, and then ends.
//
// Seen with 2.1.197: CLAUDE_CODE_SHELL, then SHELL, if it has bash or zsh in its
// name and can be executed; else the preferred shell on PATH, both in the usual
// directories, and the other on PATH. Preferred is bash if SHELL has that in its
// name, and zsh otherwise. The command finds the result in its own SHELL, for
// which BashShell returns the same.
func BashShell(env func(string) string) string {
	path := env("PATH")
	for _, name := range []string{"CLAUDE_CODE_SHELL", "SHELL"} {
		shell := env(name)
		if !strings.Contains(shell, "bash") && !strings.Contains(shell, "zsh") {
			continue
		}
		if executable(shell) || !strings.Contains(shell, "/") && onPath(shell, path) != "" {
			return shell
		}
	}
	first, second := "zsh", "bash"
	if strings.Contains(env("SHELL"), "bash") {
		first, second = second, first
	}
	if file := onPath(first, path); file != "" {
		return file
	}
	for _, shell := range []string{first, second} {
		for _, dir := range []string{"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"} {
			if file := dir + "/" + shell; executable(file) {
				return file
			}
		}
	}
	return onPath(second, path)
}

func executable(file string) bool { return unix.Access(file, unix.X_OK) == nil }

// onPath is the first regular file of that name on path that can be executed.
func onPath(name, path string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		var st unix.Stat_t
		if unix.Stat(file, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && executable(file) {
			return file
		}
	}
	return ""
}

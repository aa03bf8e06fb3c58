package main

import (
	"os"
	"path/filepath"
)

// workspace is what one program under test boots into.
type workspace struct{ dir string }

func newWorkspace(dir string) workspace { return workspace{dir} }

func (w workspace) home() string      { return filepath.Join(w.dir, "home") }
func (w workspace) runtime() string   { return filepath.Join(w.dir, "run") }
func (w workspace) directory() string { return filepath.Join(w.dir, "workspace") }

// clear makes it fresh, as in a container that has just been made.
func (w workspace) clear() error {
	if err := os.RemoveAll(w.dir); err != nil {
		return err
	}
	return os.MkdirAll(w.home(), 0o700)
}

// bare is an environment with the places alone, and nothing of the caller's.
func (w workspace) bare(t tree) []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
		"HOME=" + w.home(),
		"AGENTIC_RUNTIME_DIR=" + w.runtime(),
		"AGENTIC_WORKSPACE_DIR=" + w.directory(),
		"AGENTIC_PLUGINS_DIR=" + t.plugins(),
		"AGENTIC_REPOS_DIR=" + t.repos(),
		"AGENTIC_SECRETS_DIR=" + t.secrets(),
	}
}

// full is an environment that gives boot everything to do.
func (w workspace) full(t tree) []string {
	return append(w.bare(t),
		"AGENTIC_MCP_BASELINE="+t.baseline(),
		"GIT_AUTHOR_NAME=Bench", "GIT_AUTHOR_EMAIL=bench@example.com",
		"GITHUB_TOKEN=ghp_benchmarkbenchmarkbenchmark0000000",
	)
}

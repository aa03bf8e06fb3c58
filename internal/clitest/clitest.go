// Package clitest finds the real agent CLI for tests.
package clitest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Path is the real agent CLI's: AGENTIC_TEST_CLAUDE, else that of the one that
// scripts/agent-cli has fetched. Without one the test is skipped, or fails where
// CI=true.
func Path(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("AGENTIC_TEST_CLAUDE"); path != "" {
		return path
	}
	found, _ := filepath.Glob(filepath.Join(root(t), "build", "agent-cli", "*-"+runtime.GOARCH, "claude"))
	if len(found) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("cannot find the agent CLI: scripts/agent-cli fetches it")
		}
		t.Skip("the agent CLI is not there: scripts/agent-cli fetches it")
	}
	return found[len(found)-1]
}

// root is the directory of go.mod, above the package that is tested.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("cannot find go.mod above the test")
		}
		dir = up
	}
}

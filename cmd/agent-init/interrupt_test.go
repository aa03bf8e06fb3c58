package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// writing are the system calls with which boot changes the disk.
var writing = []string{"openat", "mkdirat", "renameat", "symlinkat", "fchmod", "fchmodat", "fsync", "ftruncate", "unlinkat", "write", "pwrite64", "bind", "flock", "linkat"}

// TestB11StopAtEveryStepOfBoot sends TERM at each system call that may change the
// disk, one boot for each: the agent does not start or is stopped, agent-init ends
// with 143, and each file is as a whole boot would have left it or not there. It
// kills agent-init there, too: the next boot finds nothing that it cannot use.
func TestB11StopAtEveryStepOfBoot(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() { os.Remove(plainBinary(t)) })
	whole := bootScene(t)
	if out, _, err := whole.boot(t, "", "echo", "whole"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := whole.files(t)
	for _, call := range writing {
		for _, signal := range []string{"TERM", "KILL"} {
			t.Run(signal+" at "+call, func(t *testing.T) {
				t.Parallel()
				n := 1
				for interrupted(t, call, signal, n, want) {
					n++
				}
				t.Logf("%d times", n-1)
				if call == "openat" && n < 10 {
					t.Errorf("boot has %d steps only", n-1)
				}
			})
		}
	}
}

// interrupted boots with a signal at the nth call and is false where there is no
// such call.
func interrupted(t *testing.T, call, signal string, n int, want map[string]string) bool {
	s := bootScene(t)
	defer os.RemoveAll(s.dir)
	out, sent, err := s.boot(t, fmt.Sprintf("%s:signal=%s:when=%d", call, signal, n), "sleep", "0.1")
	if !sent {
		return false
	}
	code := 0
	if exit, ok := err.(*exec.ExitError); ok {
		if code = exit.ExitCode(); code < 0 {
			// strace ends as the program did: it had not begun to catch signals.
			code = 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
		}
	}
	// At the last steps the agent has ended.
	if signal == "TERM" && code != 143 && (code != 0 || !strings.Contains(out, "stop requested")) {
		t.Errorf("TERM at %d: exit code %d\n%.3000s", n, code, out)
	}
	s.wantWhole(t, fmt.Sprintf("%s at %d", signal, n), want, signal == "KILL")
	if signal == "KILL" {
		if out, _, err := s.boot(t, "", "echo", "again"); err != nil {
			t.Errorf("after KILL at %d: %v\n%s", n, err, out)
		}
		s.wantWhole(t, fmt.Sprintf("boot after KILL at %d", n), want, true)
	}
	return true
}

// bootScene has something for each part of boot to write.
func bootScene(t *testing.T) *scene {
	s := newScene(t)
	s.write("baseline.json", `{"mcpServers": {"a": {"command": "true"}}}`)
	s.write("plugins/p/.claude-plugin/plugin.json", `{"name": "p", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true", "args": ["x"]}]}]}}`)
	s.write("repos/r/.claude-ops/mcp.json", `{"mcpServers": {"b": {"command": "true"}}}`)
	s.write("mine.json", `{"mcpServers": {"own": {"command": "true"}}}`)
	s.write("bin/claude", "#!/bin/sh\nexec sleep 1000\n")
	os.Chmod(s.path("bin/claude"), 0o755)
	s.env = append(s.env, "GITHUB_TOKEN=ghp_0123456789abcdef", "GIT_AUTHOR_NAME=A", "AGENTIC_MCP_CONFIG="+s.path("mine.json"),
		"AGENTIC_MCP_BASELINE=", "AGENTIC_SESSION_ID=s", "AGENTIC_STOP_GRACE=2s", "AGENTIC_LOG_LEVEL=info")
	s.env[0] = "PATH=" + s.path("bin") + ":" + os.Getenv("PATH")
	return s
}

// boot runs agent-init under strace with an injection, which may be empty, and
// tells whether the signal was sent.
func (s *scene) boot(t *testing.T, inject string, command ...string) (out string, sent bool, err error) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	args := []string{"-f", "-qq", "-o", trace, "-e", "trace=" + strings.Join(writing, ",")}
	if inject != "" {
		args = append(args, "-e", "inject="+inject)
	}
	cmd := exec.CommandContext(t.Context(), "strace", append(append(args, plainBinary(t)), command...)...)
	cmd.Env = s.env
	printed, err := cmd.CombinedOutput()
	traced, _ := os.ReadFile(trace)
	return strings.ReplaceAll(string(printed), s.dir, "SCENE"), strings.Contains(string(traced), "SI_KERNEL") || strings.Contains(string(traced), "killed by SIGKILL"), err
}

// plainBinary is agent-init as it is shipped: the race detector's would take many
// times as long for hundreds of boots.
func plainBinary(t *testing.T) string {
	t.Helper()
	path, err := buildPlain()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildPlain = sync.OnceValues(func() (string, error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("agent-init-interrupted-%d", os.Getpid()))
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// passing are files that are nobody's input, or differ from boot to boot.
var passing = regexp.MustCompile(`^run/(lock|boot\.json|events\.jsonl.*|taps/.*|spool-.*)$`)

// files are those that a boot may have written, and what they hold.
func (s *scene) files(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(s.dir, path)
		if !e.Type().IsRegular() || passing.MatchString(name) {
			return nil
		}
		data, err := os.ReadFile(path)
		found[name] = strings.ReplaceAll(string(data), s.dir, "SCENE")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// digests know what agent-init wrote at an earlier time, too.
var digests = regexp.MustCompile(`\.agent-init$`)

func (s *scene) wantWhole(t *testing.T, when string, want map[string]string, killed bool) {
	t.Helper()
	before := bootScene(t).files(t)
	for name, got := range s.files(t) {
		switch {
		case got == want[name] || got == before[name], digests.MatchString(name):
		case killed && strings.Contains(name, ".tmp-"):
			// Nobody is left to remove it; it has a name that nobody reads.
		default:
			t.Errorf("%s: %s is half-written or left over:\n%.500s", when, name, got)
		}
	}
}

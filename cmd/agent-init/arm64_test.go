package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestArm64BootsAndPassesSignalsOn runs the binary for the other architecture
// under user-mode emulation: its signal handler is assembly of its own.
func TestArm64BootsAndPassesSignalsOn(t *testing.T) {
	emulator := []string{"qemu-aarch64-static"}
	if runtime.GOARCH == "arm64" {
		emulator = []string{"env"}
	} else if _, err := exec.LookPath(emulator[0]); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("qemu-user-static is not installed")
		}
		t.Skip("qemu-user-static is not installed")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "agent-init")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, tt := range []struct {
		script, out string
		code        int
	}{
		{"echo fine; exit 7", "fine", 7},
		{"trap 'echo usr1; exit 5' USR1; kill -USR1 $PPID; while :; do sleep 0.05; done", "usr1", 5},
		{"kill -TERM $PPID; while :; do sleep 0.05; done", "", 143},
		{"kill -KILL $$", "", 137},
	} {
		limit, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(limit, emulator[0], binary, "bash", "-c", tt.script)
		cmd.Env = append(os.Environ(), "HOME="+dir, "AGENTIC_RUNTIME_DIR="+filepath.Join(dir, "run"), "AGENTIC_WORKSPACE_DIR="+filepath.Join(dir, "ws"))
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != tt.code || strings.TrimSpace(out.String()) != tt.out {
			t.Errorf("%s: code %d, want %d; %q, want %q\n%s", tt.script, code, tt.code, out.String(), tt.out, stderr.String())
		}
		if !strings.Contains(stderr.String(), "workspace_ready") {
			t.Errorf("no event: %s", stderr.String())
		}
	}
}

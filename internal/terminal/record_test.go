package terminal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/console"
	"golang.org/x/sys/unix"
)

// recorded reads a recording: what it shows, and its sizes.
func recorded(t *testing.T, path string) (shown string, sizes []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	for n, line := range strings.SplitAfter(string(text), "\n") {
		if n == 0 || line == "" {
			continue
		}
		var event []any
		if err := json.Unmarshal([]byte(line), &event); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("line %d: %v %q", n+1, err, line)
		}
		if event[1] == "r" {
			sizes = append(sizes, event[2].(string))
		} else {
			shown += event[2].(string)
		}
	}
	return shown, sizes
}

func TestS4RecordImpliesProxy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.cast")
	c := agentInit(t, "--record", path, "bash", "--norc")
	c.Env = append(c.Env, "GITHUB_TOKEN="+secretValue)
	s := onScreen(t, c)
	s.expect("prompt> ")
	s.types("for c in $(echo $GITHUB_TOKEN | sed 's/./& /g'); do printf %s $c; done; echo; echo grü''ße\n")
	s.expect(secretValue + "\r\n")
	s.expect("grüße\r\n")
	check(t, s.master.Resize(console.WinSize{Width: 77, Height: 33}))
	until(t, "the new size", func() bool { _, sizes := recorded(t, path); return len(sizes) > 0 }, nil)
	s.types("exit 3\n")
	if code := s.end(); code != 3 {
		t.Error(code)
	}
	shown, sizes := recorded(t, path)
	if len(sizes) != 1 || sizes[0] != "77x33" {
		t.Error(sizes)
	}
	if strings.Contains(shown, secretValue) || !strings.Contains(shown, "***\r\n") || !strings.Contains(shown, "grüße") || !strings.Contains(shown, "prompt> exit 3") {
		t.Errorf("%q", shown)
	}
	text, err := os.ReadFile(path)
	check(t, err)
	if !strings.HasPrefix(string(text), `{"version":2,"width":100,"height":30,`) {
		t.Errorf("%.100s", text)
	}
}

func TestS4RecordSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.cast")
	c := quiet(t, "--record", path, "--", "sh", "-c", "n=0; while :; do n=$((n+1)); echo line $n; done")
	out, w, err := os.Pipe()
	check(t, err)
	defer out.Close()
	c.Stdout = w
	check(t, c.Start())
	w.Close()
	var seen []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(seen, []byte("line 500\r\n")) {
		n, err := out.Read(buf)
		check(t, err)
		seen = append(seen, buf[:n]...)
	}
	check(t, c.Process.Kill())
	ended(t, c)
	shown, _ := recorded(t, path)
	if !strings.HasPrefix(shown, string(seen)) {
		t.Errorf("%d bytes were shown, %d are recorded", len(seen), len(shown))
	}
}

func TestS4RecordRefusesAFileThatExists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.cast")
	check(t, os.WriteFile(path, []byte("mine"), 0o600))
	var stderr bytes.Buffer
	c := agentInit(t, "--record", path, "true")
	c.Stderr = &stderr
	check(t, c.Start())
	if code := ended(t, c); code != 78 {
		t.Error(code)
	}
	if !strings.Contains(stderr.String(), "the file exists") || !strings.Contains(stderr.String(), path) {
		t.Errorf("%q", stderr.String())
	}
	text, err := os.ReadFile(path)
	check(t, err)
	if string(text) != "mine" {
		t.Errorf("%q", text)
	}
}

// The session goes on, and what is missing is said.
func TestS4RecordOnAFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs root")
		}
		t.Skip("needs root to mount a small disk")
	}
	dir := t.TempDir()
	check(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"))
	defer unix.Unmount(dir, unix.MNT_DETACH)
	path := filepath.Join(dir, "a.cast")
	var stdout, stderr bytes.Buffer
	c := quiet(t, "--record", path, "--", "seq", "1", "20000")
	c.Stdout, c.Stderr = &stdout, &stderr
	check(t, c.Start())
	if code := ended(t, c); code != 0 {
		t.Error(code)
	}
	shown, _ := recorded(t, path)
	if !strings.HasSuffix(stdout.String(), "\r\n20000\r\n") || !strings.HasPrefix(stdout.String(), shown[:100]) {
		t.Errorf("%d bytes shown", stdout.Len())
	}
	lost := fmt.Sprintf(`"bytes":%d`, stdout.Len()-len(shown))
	if strings.Count(stderr.String(), "cannot write the recording") != 1 || !strings.Contains(stderr.String(), lost) {
		t.Errorf("%s is missing in %s", lost, stderr.String())
	}
}

// A session within the workspace that is recorded has the same environment.
func TestS4RecordWithinAWorkspace(t *testing.T) {
	dir := t.TempDir()
	outer, inner := filepath.Join(dir, "outer.cast"), filepath.Join(dir, "inner.cast")
	c := quiet(t, "--", "sh", "-c", `$INIT plan true >/dev/null || echo plan $?; $INIT exec -- sh -c 'echo inner one'; $INIT exec --record `+inner+` -- sh -c 'echo inner two'`)
	c.Env = append(c.Env, "AGENTIC_RECORD="+outer)
	in, w, err := os.Pipe() // The end of the input would be typed before it is wanted.
	check(t, err)
	defer w.Close()
	got, code := output(t, c, in)
	if code != 0 || got != "inner one\r\ninner two\r\r\n" && got != "inner one\r\ninner two\r\n" {
		t.Errorf("%q %d", got, code)
	}
	if shown, _ := recorded(t, inner); shown != "inner two\r\n" {
		t.Errorf("%q", shown)
	}
	if shown, _ := recorded(t, outer); !strings.Contains(shown, "inner one") || !strings.Contains(shown, "inner two") {
		t.Errorf("%q", shown)
	}
}

package asciicast

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"agent-init/internal/secret"
)

// recording is what a strict reader of asciicast v2 finds in a file.
type recording struct {
	header map[string]any
	// shown is what all "o" events show, sizes what the "r" events say.
	shown string
	sizes []string
	texts []string
}

func read(t *testing.T, path string) (r recording) {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	if !utf8.Valid(text) {
		t.Errorf("no UTF-8: %q", text)
	}
	last := -1.0
	for n, line := range strings.SplitAfter(string(text), "\n") {
		if line == "" {
			continue
		}
		if !strings.HasSuffix(line, "\n") {
			t.Fatalf("line %d is torn: %q", n+1, line)
		}
		if n == 0 {
			check(t, json.Unmarshal([]byte(line), &r.header))
			continue
		}
		var event []any
		if err := json.Unmarshal([]byte(line), &event); err != nil || len(event) != 3 {
			t.Fatalf("line %d: %v %q", n+1, err, line)
		}
		at, data := event[0].(float64), event[2].(string)
		if at < last {
			t.Errorf("line %d goes back in time", n+1)
		}
		last = at
		switch event[1] {
		case "o":
			r.shown += data
			r.texts = append(r.texts, data)
		case "r":
			r.sizes = append(r.sizes, data)
		default:
			t.Errorf("line %d: %q", n+1, line)
		}
	}
	return r
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, o Options) (*Recorder, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "not", "there", "yet.cast")
	check(t, Check(path))
	o.Width, o.Height = 80, 24
	r, err := Create(path, o)
	check(t, err)
	return r, path
}

func TestS4RecordingIsReadableAtAnyTime(t *testing.T) {
	t.Setenv("TERM", "xterm")
	r, path := create(t, Options{})
	got := read(t, path)
	if got.header["version"] != 2.0 || got.header["width"] != 80.0 || got.header["height"] != 24.0 || got.header["env"].(map[string]any)["TERM"] != "xterm" {
		t.Error(got.header)
	}
	info, err := os.Stat(path)
	check(t, err)
	if info.Mode() != 0o600 {
		t.Error(info.Mode())
	}
	r.Output([]byte("one\r\n"))
	if got := read(t, path); got.shown != "one\r\n" {
		t.Errorf("%q", got.shown)
	}
	r.Resize(132, 50)
	r.Output([]byte("\x1b[31m\"two\"\x00\\"))
	got = read(t, path)
	if got.shown != "one\r\n\x1b[31m\"two\"\x00\\" || len(got.sizes) != 1 || got.sizes[0] != "132x50" {
		t.Errorf("%q", got)
	}
	if lost := r.Close(); lost != 0 {
		t.Error(lost)
	}
	r.Resize(1, 1)
	if again := read(t, path); len(again.sizes) != 1 {
		t.Error(again.sizes)
	}
}

func TestS4RecordingKeepsCharactersTogether(t *testing.T) {
	const text = "ä€𝄞 the end 𝄞"
	for size := 1; size < 8; size++ {
		r, path := create(t, Options{})
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			r.Output(rest[:min(size, len(rest))])
		}
		if got := read(t, path); got.shown != text {
			t.Errorf("%d: %q", size, got.shown)
		}
		r.Close()
	}
	r, path := create(t, Options{})
	r.Output([]byte("a\xffb\xf0\x9d"))
	r.Output([]byte("c\xe2\x82"))
	r.Close()
	if got := read(t, path); got.shown != "a\ufffdb\ufffdc\ufffd" {
		t.Errorf("%q", got.shown)
	}
}

func TestS4RecordingIsMasked(t *testing.T) {
	const value = "s3cr3t-välue-of-the-token"
	m := secret.NewMasker([]string{value})
	text := "ä " + value + " ö " + value[:8] + "! " + value + value + " s3cr3t"
	want := "ä *** ö " + value[:8] + "! ****** s3cr3t"
	for size := 1; size <= len(text); size++ {
		r, path := create(t, Options{Masker: m})
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			r.Output(rest[:min(size, len(rest))])
		}
		r.Close()
		got := read(t, path)
		if got.shown != want {
			t.Fatalf("%d: %q", size, got.shown)
		}
	}
}

func TestS4RecordingNeverReplacesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.cast")
	check(t, os.WriteFile(path, []byte("mine"), 0o600))
	if err := Check(path); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if _, err := Create(path, Options{}); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	check(t, os.Remove(path))
	check(t, os.Symlink("elsewhere", path))
	if err := Check(path); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := Check("/proc/version/a.cast"); err != unix.ENOTDIR {
		t.Error(err)
	}
}

// A full disk cuts no line: what does not fit is counted, and what comes when
// there is room again is recorded.
func TestS4RecordingOnAFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs root")
		}
		t.Skip("needs root to mount a small disk")
	}
	dir := t.TempDir()
	check(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
	defer unix.Unmount(dir, unix.MNT_DETACH)
	filler := filepath.Join(dir, "filler")
	check(t, os.WriteFile(filler, make([]byte, 32<<10), 0o600))
	var failures []error
	path := filepath.Join(dir, "a.cast")
	r, err := Create(path, Options{Width: 80, Height: 24, Failed: func(err error) { failures = append(failures, err) }})
	check(t, err)
	line := bytes.Repeat([]byte("x"), 1500)
	for range 40 {
		r.Output(line)
	}
	kept := read(t, path)
	if len(failures) != 1 || !errors.Is(failures[0], unix.ENOSPC) {
		t.Errorf("%v", failures)
	}
	if len(kept.texts) < 5 || len(kept.texts) > 30 {
		t.Errorf("%d events", len(kept.texts))
	}
	check(t, os.Remove(filler))
	r.Output([]byte("again"))
	lost := r.Close()
	if got := read(t, path); !strings.HasSuffix(got.shown, "again") || lost != int64((40-len(kept.texts))*len(line)) {
		t.Errorf("%d lost, %d kept", lost, len(kept.texts))
	}
}

// What a player makes of it.
func TestS4RecordingPlaysBack(t *testing.T) {
	player, err := exec.LookPath("asciinema")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("asciinema is not installed")
	}
	r, path := create(t, Options{})
	const text = "\x1b[1mbold\x1b[0m ä€𝄞\r\n\"quoted\" \\ \t\r\n"
	for _, b := range []byte(text) {
		r.Output([]byte{b})
	}
	r.Resize(100, 30)
	r.Output([]byte("end\r\n"))
	r.Close()
	// It wants a terminal, which script(1) gives it.
	c := exec.Command("script", "-qec", "stty -opost; "+player+" cat "+path, "/dev/null")
	c.Env = append(os.Environ(), "LANG=C.UTF-8", "HOME="+t.TempDir())
	got, err := c.CombinedOutput()
	check(t, err)
	if !strings.Contains(string(got), text+"end\r\n") {
		t.Errorf("%q", got)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("ä s3cr3t-value 𝄞"), uint8(3))
	f.Add([]byte("\xf0\x9d\xffs3cr3t-"), uint8(1))
	m := secret.NewMasker([]string{"s3cr3t-value"})
	f.Fuzz(func(t *testing.T, p []byte, size uint8) {
		var whole, pieces text
		want := string(whole.take(m, p, true))
		var got string
		step := int(size)%16 + 1
		for rest := p; len(rest) > 0; rest = rest[min(step, len(rest)):] {
			got += string(pieces.take(m, rest[:min(step, len(rest))], false))
		}
		got += string(pieces.take(m, nil, true))
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	})
}

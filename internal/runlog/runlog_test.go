package runlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-init/internal/secret"
)

func create(t *testing.T, dir string, now time.Time, m *secret.Masker, failed func(error)) *Log {
	t.Helper()
	l, err := Create(dir, now, []byte("# header\n"), m, failed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func text(t *testing.T, l *Log) string {
	t.Helper()
	data, err := os.ReadFile(l.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestH3NamesOfLogs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	now := time.Date(2026, 11, 21, 1, 2, 3, 0, time.FixedZone("", 3600))
	for _, want := range []string{"run-20261121-000203.log", "run-20261121-000203-2.log", "run-20261121-000203-3.log"} {
		l := create(t, dir, now, nil, nil)
		if got := filepath.Base(l.Path); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
		if info, err := os.Stat(l.Path); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info, err)
		}
	}
}

func TestH3LinesAreWholeAndMaskedInPieces(t *testing.T) {
	m := secret.NewMasker([]string{"geheim-12345"})
	l := create(t, t.TempDir(), time.Now(), m, nil)
	out, err := l.Stream(), l.Stream()
	for _, p := range []string{"one gehe", "im-1", "2345 two", "\nthree"} {
		out.Add([]byte(p))
		err.Add([]byte("e"))
	}
	err.Add([]byte("\n"))
	out.Finish()
	if lost := l.Close(); lost != 0 {
		t.Error(lost)
	}
	if diff := cmp.Diff("# header\none *** two\neeee\nthree\n", text(t, l)); diff != "" {
		t.Error(diff)
	}
	out.Add([]byte("late\n"))
	if strings.Contains(text(t, l), "late") {
		t.Error("a closed log was written to")
	}
}

func TestH3LongLineIsNotHeld(t *testing.T) {
	l := create(t, t.TempDir(), time.Now(), nil, nil)
	s := l.Stream()
	s.Add([]byte(strings.Repeat("x", maxLine)))
	if got := len(text(t, l)); got < maxLine {
		t.Error(got, "bytes are written")
	}
}

func TestH3StreamsDoNotTearOneAnothersLines(t *testing.T) {
	l := create(t, t.TempDir(), time.Now(), nil, nil)
	var all sync.WaitGroup
	const lines = 2000
	for _, c := range []string{"a", "b"} {
		s := l.Stream()
		line := []byte(strings.Repeat(c, 50) + "\n")
		all.Go(func() {
			for range lines {
				s.Add(line[:20])
				s.Add(line[20:])
			}
		})
	}
	all.Wait()
	got := strings.Split(strings.TrimSuffix(text(t, l), "\n"), "\n")[1:]
	if len(got) != 2*lines {
		t.Fatal(len(got), "lines")
	}
	for _, line := range got {
		if line != strings.Repeat(line[:1], 50) {
			t.Fatalf("torn: %q", line)
		}
	}
}

// A full disk is a device that says so.
func TestH3FullDiskIsToldOfOnceAndCounted(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var failures []error
	l := create(t, t.TempDir(), time.Now(), nil, func(err error) { failures = append(failures, err) })
	file := l.file
	s := l.Stream()
	s.Add([]byte("begun\n"))
	l.file = full
	s.Add([]byte("12345\n"))
	s.Add([]byte("67\n"))
	l.file = file
	s.Add([]byte("again\n"))
	if lost := l.Close(); lost != 9 {
		t.Error(lost, "bytes are counted")
	}
	if len(failures) != 1 || !errors.Is(failures[0], syscall.ENOSPC) {
		t.Error(failures)
	}
	if diff := cmp.Diff("# header\nbegun\n[agent-init: 9 bytes are missing here]\nagain\n", text(t, l)); diff != "" {
		t.Error(diff)
	}
}

func TestH3CheckMakesNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(filepath.Join(dir, "a", "b")); err != nil {
		t.Error(err)
	}
	for _, path := range []string{file, filepath.Join(file, "x")} {
		if err := Check(path); err == nil {
			t.Error(path, "can be written")
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Error(entries)
	}
}

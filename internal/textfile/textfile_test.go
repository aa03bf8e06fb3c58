package textfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestReadIsBoundedAndNeverBlocks(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if got, err := Read(write("fits", Limit)); err != nil || len(got) != Limit {
		t.Errorf("a file at the limit: %d bytes, %v", len(got), err)
	}
	if _, err := Read(write("large", Limit+1)); err == nil {
		t.Error("a file over the limit was read")
	}
	if _, err := Read(dir); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a directory: %v", err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(fifo); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a FIFO: %v", err)
	}
	if got, err := Read("/proc/self/status"); err != nil || len(got) == 0 {
		t.Errorf("a file whose size says 0: %d bytes, %v", len(got), err)
	}
}

func TestM7ReadInStaysBelowItsRoot(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	inside := filepath.Join(dir, "repo")
	os.Mkdir(inside, 0o700)
	os.WriteFile(outside, []byte("secret"), 0o600)
	os.WriteFile(filepath.Join(inside, "real"), []byte("fine"), 0o600)
	os.Symlink("real", filepath.Join(inside, "in"))
	os.Symlink(outside, filepath.Join(inside, "abs"))
	os.Symlink("../outside", filepath.Join(inside, "rel"))
	root, err := os.OpenRoot(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if got, err := ReadIn(root, "in"); err != nil || string(got) != "fine" {
		t.Errorf("a link inside: %q, %v", got, err)
	}
	for _, name := range []string{"abs", "rel", "../outside"} {
		if got, err := ReadIn(root, name); err == nil {
			t.Errorf("%s was followed: %q", name, got)
		}
	}
}

package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	if got, err := Read(write("empty", 0)); err != nil || len(got) != 0 {
		t.Errorf("an empty file: %d bytes, %v", len(got), err)
	}
	if _, err := Read(filepath.Join(dir, "absent")); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
	if got, err := Read("/proc/self/status"); err != nil || len(got) == 0 {
		t.Errorf("a file whose size says 0: %d bytes, %v", len(got), err)
	}
}

// bothWays runs a test with openat2(2), and as on a kernel without it.
func bothWays(t *testing.T, test func(t *testing.T)) {
	for _, without := range []bool{false, true} {
		t.Run(map[bool]string{false: "openat2", true: "without openat2"}[without], func(t *testing.T) {
			before := withoutOpenat2.Load()
			if !without && before {
				t.Log("this kernel refuses openat2")
			}
			withoutOpenat2.Store(before || without)
			defer withoutOpenat2.Store(before)
			test(t)
		})
	}
}

func openRoot(t *testing.T, dir string) *Root {
	t.Helper()
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return root
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func TestM7ReadStaysBelowItsRoot(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		dir := t.TempDir()
		outside := filepath.Join(dir, "outside")
		inside := filepath.Join(dir, "repo")
		os.MkdirAll(filepath.Join(inside, "sub"), 0o700)
		os.WriteFile(outside, []byte("secret"), 0o600)
		os.WriteFile(filepath.Join(inside, "real"), []byte("fine"), 0o600)
		link(t, "real", filepath.Join(inside, "in"))
		link(t, "../real", filepath.Join(inside, "sub", "up"))
		link(t, outside, filepath.Join(inside, "abs"))
		link(t, filepath.Join(inside, "real"), filepath.Join(inside, "absin"))
		link(t, "../outside", filepath.Join(inside, "rel"))
		link(t, "../repo/real", filepath.Join(inside, "outin"))
		link(t, "..", filepath.Join(inside, "parent"))
		link(t, "loop", filepath.Join(inside, "loop"))
		link(t, "nothing", filepath.Join(inside, "dangling"))
		link(t, "/proc/self/root", filepath.Join(inside, "magic"))
		root := openRoot(t, inside)
		for _, name := range []string{"in", "sub/up", "sub/../real"} {
			if got, err := root.Read(name); err != nil || string(got) != "fine" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		for name, want := range map[string]string{
			"abs": escapes, "absin": escapes, "rel": escapes, "outin": escapes, "../outside": escapes, "/real": escapes,
			"parent/outside": escapes, "magic/etc/hostname": escapes, "sub": ErrNotRegular.Error(),
			"dangling": "it does not exist", "nothing": "it does not exist", "real/x": "not a directory",
			"loop": "too many levels of symbolic links",
		} {
			got, err := root.Read(name)
			if err == nil {
				t.Errorf("%s was read: %q", name, got)
			} else if why := Reason(err); why != want {
				t.Errorf("%s: %s, not %s", name, why, want)
			}
		}
		for name, want := range map[string]bool{"real": true, "dangling": true, "abs": true, "sub/up": true, "nothing": false,
			"sub/nothing": false, "../outside": false, "parent/outside": false} {
			if root.Exists(name) != want {
				t.Errorf("%s: exists %v", name, !want)
			}
		}
		if _, err := root.List("parent"); err == nil || Reason(err) != escapes {
			t.Errorf("a list of the parent: %v", err)
		}
	})
}

// escapes is os.Root's refusal.
const escapes = "path escapes from parent"

func TestReadInto(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"empty": 0, "fits": 9, "exact": 10, "larger": 100} {
		want := strings.Repeat("x", size)
		os.WriteFile(filepath.Join(dir, name), []byte(want), 0o600)
		buf := []byte("0123456789")
		got, err := openRoot(t, dir).ReadInto(buf, name)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if name == "fits" && &got[0] != &buf[0] {
			t.Error("memory at hand was not used")
		}
	}
}

func TestLists(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		dir := t.TempDir()
		os.Mkdir(filepath.Join(dir, "d"), 0o700)
		os.WriteFile(filepath.Join(dir, "\xff\n"), nil, 0o600)
		link(t, "d", filepath.Join(dir, "l"))
		if err := syscall.Mkfifo(filepath.Join(dir, "p"), 0o600); err != nil {
			t.Fatal(err)
		}
		want := []Entry{{"d", fs.ModeDir}, {"l", fs.ModeSymlink}, {"p", fs.ModeIrregular}, {"\xff\n", 0}}
		root := openRoot(t, filepath.Dir(dir))
		for from, list := range map[string]func() ([]Entry, error){
			"a path": func() ([]Entry, error) { return List(dir) },
			"a root": func() ([]Entry, error) { return root.List(filepath.Base(dir)) },
		} {
			if got, err := list(); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %v", from, got, err)
			}
		}
		for from, names := range map[string]func() ([]string, error){
			"a path": func() ([]string, error) { return Names(dir + "/d") },
			"a root": func() ([]string, error) { return root.Names(filepath.Base(dir) + "/l") },
		} {
			if got, err := names(); err != nil || len(got) != 0 {
				t.Errorf("names from %s: %v, %v", from, got, err)
			}
		}
		if _, err := Names(dir + "/p"); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("a FIFO: %v", err)
		}
	})
}

func TestListsOfMoreThanOneRead(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 300 {
		name := fmt.Sprintf("%03d%s", i, strings.Repeat("n", 200))
		want = append(want, name)
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Names(dir); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d names, %v", len(got), err)
	}
	if got, err := List(dir); err != nil || len(got) != len(want) || got[299].Name != want[299] {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

// Some file systems do not state types.
func TestUnknownTypesAreLookedUp(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "f"), nil, 0o600)
	os.Mkdir(filepath.Join(dir, "d"), 0o700)
	link(t, "d", filepath.Join(dir, "l"))
	root := openRoot(t, dir)
	for name, want := range map[string]fs.FileMode{"f": 0, "d": fs.ModeDir, "l": fs.ModeSymlink} {
		if got, err := typeOf(root.fd, name, syscall.DT_UNKNOWN); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := typeOf(root.fd, "gone", syscall.DT_UNKNOWN); err != syscall.ENOENT {
		t.Errorf("an entry that is gone: %v", err)
	}
}

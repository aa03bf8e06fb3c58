package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteReplacesWholeAndOnlyWhenChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "secret")
	f := File{Path: path, Data: []byte("one"), Mode: 0o600, DirMode: 0o700, Durable: true}
	if changed, err := f.Write(); err != nil || !changed {
		t.Fatalf("first write: changed %v, %v", changed, err)
	}
	before, _ := os.Stat(path)
	if changed, err := f.Write(); err != nil || changed {
		t.Fatalf("same content: changed %v, %v", changed, err)
	}
	f.Data = []byte("two")
	if changed, err := f.Write(); err != nil || !changed {
		t.Fatalf("other content: changed %v, %v", changed, err)
	}
	after, _ := os.Stat(path)
	if os.SameFile(before, after) {
		t.Error("the file was written in place, not replaced")
	}
	if after.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", after.Mode())
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteTightensAWiderMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := File{Path: path, Data: []byte("x"), Mode: 0o600, DirMode: 0o700}
	if changed, err := f.Write(); err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestWriteThroughALinkOrOverIt(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	f := File{Path: link, Data: []byte("x"), Mode: 0o600, DirMode: 0o700, FollowLink: true}
	if _, err := f.Write(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(target); string(got) != "x" {
		t.Errorf("target holds %q", got)
	}
	f.FollowLink, f.Data = false, []byte("y")
	if _, err := f.Write(); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(link); !info.Mode().IsRegular() {
		t.Error("the link is still there")
	}
	if got, _ := os.ReadFile(target); string(got) != "x" {
		t.Errorf("target holds %q", got)
	}
}

func TestWriteLeavesNothingAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := File{Path: path, Data: []byte("x"), Mode: 0o600, DirMode: 0o700}
	if _, err := f.Write(); err == nil {
		t.Fatal("a directory was replaced")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

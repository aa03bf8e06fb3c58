package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestC2LookupAndStartErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(file), 0o755))
		check(t, os.WriteFile(file, []byte(text), mode))
		check(t, os.Chmod(file, mode))
		return file
	}
	write("a/tool", "#!/bin/sh\nexit 0\n", 0o644)
	good := write("b/tool", "#!/bin/sh\nexit 0\n", 0o755)
	write("a/only", "", 0o644)
	self, err := os.ReadFile("/bin/true")
	check(t, err)
	interpreter := elfInterpreter(self[:min(len(self), headBytes)])
	if interpreter == "" {
		t.Fatal("/bin/true has no interpreter")
	}
	path := dir + "/missing:" + dir + "/a/tool:" + dir + "/a:" + dir + "/b/"
	if got, err := Lookup("tool", path); err != nil || got != good {
		t.Error(got, err)
	}
	if got, err := Lookup("true", ""); err != nil || got != "/bin/true" {
		t.Error(got, err)
	}
	tests := []struct {
		name string
		code int
		want string
	}{
		{"", 127, "the command is empty"},
		{"nope", 127, "cannot start nope: not found in PATH=" + path},
		{dir + "/nope", 127, "no such file or directory"},
		{dir + "/a/tool/x", 127, "not a directory"},
		{"only", 126, dir + "/a/only: permission denied"},
		{dir + "/a/tool", 126, "permission denied"},
		{dir, 126, "it is a directory"},
		{"/dev/null", 126, "it is no regular file"},
		{write("plain", "echo hi\n", 0o755), 126, "exec format error (a script needs a first line"},
		{write("crlf", "#!/bin/sh\r\necho hi\n", 0o755), 127, `its interpreter "/bin/sh\r" does not exist`},
		{write("gone", "#! /no/such/shell -x\n", 0o755), 127, "its interpreter /no/such/shell does not exist"},
		{write("elf", strings.ReplaceAll(string(self), interpreter, "/no"+interpreter[3:]), 0o755), 127, "its interpreter /no" + interpreter[3:] + " does not exist"},
		{"../wd", 126, "cannot enter working directory /no/such/dir"},
	}
	for _, tt := range tests {
		file, err := Lookup(tt.name, path)
		c := Command{Path: file, Argv: []string{tt.name}, Stderr: -1}
		if tt.name == "../wd" {
			c, err = Command{Path: good, Argv: []string{"x"}, Dir: "/no/such/dir", Stderr: -1}, nil
		}
		if err == nil {
			var pid int
			if pid, err = spawn(c, &terminal{fd: -1}); err == nil {
				t.Fatalf("%s started as %d", tt.name, pid)
			}
			err = explain(c, err)
		}
		if StartErrorCode(err) != tt.code || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "cannot start ") {
			t.Errorf("%s: %d, %v, want %d, %s", tt.name, StartErrorCode(err), err, tt.code, tt.want)
		}
	}
	if got := StartErrorCode(errors.New("x")); got != 70 {
		t.Error(got)
	}
}

func FuzzInterpreter(f *testing.F) {
	elf, err := os.ReadFile("/bin/true")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(elf[:min(len(elf), headBytes)])
	f.Add([]byte("#!/bin/sh -e\n"))
	f.Add([]byte("#!"))
	f.Fuzz(func(t *testing.T, head []byte) {
		elfInterpreter(head)
		scriptInterpreter(head)
	})
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b (c\n) Z 7 42 42 0 -1 4228108 0 0 0 0 0 0 0 0 20 0 1 0 123456 0 0\n"
	p, ok := parseStat([]byte(line))
	if want := (process{pid: 42, parent: 7, name: "a) b (c\n", state: 'Z', threads: 1, start: 123456}); !ok || p != want || !p.dead() {
		t.Errorf("%+v", p)
	}
	for _, bad := range []string{"", "42", "42 (x)", "x (y) S 1", ") ("} {
		if _, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) Z 7 42 42 0 -1 4228108 0 0 0 0 0 0 0 0 20 0 1 0 123456 0 0\n"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, line []byte) { parseStat(line) })
}

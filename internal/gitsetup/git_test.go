package gitsetup

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"agent-init/internal/problem"
)

// world is a home in which plans are made and applied and the real git runs.
type world struct {
	t    *testing.T
	dir  string
	home string
	env  map[string]string
	uid  uint32
	in   Input
}

func newWorld(t *testing.T) *world {
	dir := t.TempDir()
	// Other users have to get through the parents that testing makes 0700.
	for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "a home"), uid: uint32(os.Getuid())}
	w.mkdir(w.home)
	w.env = map[string]string{"HOME": w.home, "PATH": os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
	w.in = Input{Home: w.home, RuntimeDir: filepath.Join(dir, "run 'time"), Env: func(name string) (string, bool) {
		v, ok := w.env[name]
		return v, ok
	}}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) mkdir(path string) string {
	w.t.Helper()
	w.must(os.MkdirAll(path, 0o755))
	return path
}

func (w *world) write(name, content string) string {
	w.t.Helper()
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(w.home, name)
	}
	w.mkdir(filepath.Dir(path))
	w.must(os.WriteFile(path, []byte(content), 0o644))
	return path
}

func (w *world) read(name string) string {
	w.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(w.home, name)
	}
	data, err := os.ReadFile(name)
	w.must(err)
	return string(data)
}

// apply writes what the plan holds and hands its environment to later gits; it
// returns the number of files that changed.
func (w *world) apply(p Plan) (changed int) {
	w.t.Helper()
	if p.Problems.Refuses() {
		w.t.Fatalf("refused: %v", p.Problems)
	}
	for _, f := range p.Files {
		c, err := f.Write()
		w.must(err)
		if c {
			changed++
		}
		if w.uid != 0 {
			w.chown(w.home)
		}
	}
	w.adopt(p.Env)
	return changed
}

func (w *world) adopt(env []string) {
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		w.env[name] = value
	}
}

func (w *world) chown(root string) {
	w.t.Helper()
	w.must(filepath.Walk(root, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(w.uid), int(w.uid))
	}))
}

func (w *world) boot() Plan {
	w.t.Helper()
	p := New(w.in)
	w.apply(p)
	return p
}

func (w *world) try(stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir
	for k, v := range w.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdin = strings.NewReader(stdin)
	if w.uid != uint32(os.Getuid()) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: w.uid, Gid: w.uid}}
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		return errs.String(), err
	}
	return out.String(), nil
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	out, err := w.try("", args...)
	if err != nil {
		w.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(out, "\n")
}

func (w *world) fill(request string) string {
	w.t.Helper()
	out, err := w.try(request+"\n\n", "credential", "fill")
	if err != nil {
		return ""
	}
	_, password, _ := strings.Cut(out, "password=")
	return strings.TrimSuffix(password, "\n")
}

func (w *world) commit(repo string) string {
	w.t.Helper()
	w.git("-C", repo, "commit", "-q", "--allow-empty", "-m", "x")
	return w.git("-C", repo, "log", "-1", "--format=%an <%ae> %cn <%ce>")
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	const why = "other owners and mounts need root"
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// asUID runs f on a thread of that user; the thread ends with it.
func asUID(t *testing.T, uid int, f func()) {
	t.Helper()
	done := make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
			t.Error(e)
			return
		}
		f()
	}()
	<-done
}

func warnings(p Plan) string {
	var b strings.Builder
	for _, w := range p.Problems.Only(problem.Warning) {
		b.WriteString(w.Text() + "\n")
	}
	return b.String()
}

func errorsOf(p Plan) string {
	var b strings.Builder
	for _, e := range p.Problems.Only(problem.Error) {
		b.WriteString(e.Error() + "\n")
	}
	return b.String()
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func contains(t *testing.T, what, got, part string) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%s: got %q, which lacks %q", what, got, part)
	}
}

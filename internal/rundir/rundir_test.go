package rundir

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test binary stand in for a second agent-init.
func TestMain(m *testing.M) {
	if dir := os.Getenv("RUNDIR_TEST_CLAIM"); dir != "" {
		d := Dir{Path: dir}
		if _, err := d.Claim(); err != nil {
			os.Stdout.WriteString("failed: " + err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("claimed\n")
		bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func holder(t *testing.T, dir string) (stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RUNDIR_TEST_CLAIM="+dir)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "claimed\n" {
		t.Fatalf("holder said %q", line)
	}
	return func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	}
}

func TestClaimIsExclusiveAndEndsWithTheProcess(t *testing.T) {
	d := Dir{Path: filepath.Join(t.TempDir(), "run")}
	if _, live := d.Live(); live {
		t.Fatal("live before it exists")
	}
	stop := holder(t, d.Path)
	pid, live := d.Live()
	if !live || pid == 0 {
		t.Errorf("Live: %d, %v", pid, live)
	}
	if _, err := d.Claim(); !errors.Is(err, ErrLive) {
		t.Errorf("a second claim: %v", err)
	}
	stop()
	if _, live := d.Live(); live {
		t.Error("live after its process was killed")
	}
	lock, err := d.Claim()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	info, _ := os.Stat(d.Path)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestClaimClearsOnlyWhatBootWrote(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	for _, name := range []string{Report, MCP, "mine"} {
		os.WriteFile(d.Join(name), []byte("x"), 0o600)
	}
	lock, err := d.Claim()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	left, _ := os.ReadDir(d.Path)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "lock mine" {
		t.Errorf("left: %s", got)
	}
}

func TestChooseRefusesWhatOthersCouldFill(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	os.WriteFile(file, nil, 0o600)
	link := filepath.Join(base, "link")
	os.Symlink(base, link)
	foreign := filepath.Join(base, "foreign")
	os.Mkdir(foreign, 0o777)
	os.Chown(foreign, 12345, 12345)
	full := filepath.Join(base, "full")
	os.MkdirAll(filepath.Join(full, "precious"), 0o700)
	for _, path := range []string{file, link, foreign, full, filepath.Join(file, "below")} {
		if d, p := Choose(path); p == nil {
			t.Errorf("%s was chosen: %+v", path, d)
		} else if !strings.HasPrefix(p.Text(), "cannot use runtime directory "+path+": ") {
			t.Error(p.Text())
		}
	}
	fresh := filepath.Join(base, "a", "b")
	if d, p := Choose(fresh); p != nil || d.Path != fresh || !d.Explicit {
		t.Error(d, p)
	}
	if _, err := os.Lstat(filepath.Join(base, "a")); err == nil {
		t.Error("Choose made a directory")
	}
}

func TestInside(t *testing.T) {
	if !Inside(os.Getpid()) || !Inside(os.Getppid()) || !Inside(1) {
		t.Error("own ancestors do not count")
	}
	stop := holder(t, t.TempDir())
	defer stop()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	// A test that was itself put into a container from outside counts as
	// inside of whatever lives there.
	if got, want := Inside(cmd.Process.Pid), rootOf(os.Getpid()) != 1; got != want {
		t.Errorf("a stranger: %v, want %v", got, want)
	}
	if Inside(0) {
		t.Error("nobody counts")
	}
}

// rootOf is the last ancestor that this PID namespace shows.
func rootOf(pid int) int {
	for {
		parent := parentOf(pid)
		if parent <= 0 {
			return pid
		}
		pid = parent
	}
}

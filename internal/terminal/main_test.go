package terminal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/console"
	"golang.org/x/sys/unix"
)

// patience bounds waiting for what must come.
const patience = 20 * time.Second

// binary is agent-init, built for these tests.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "terminal-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "agent-init")
		args := append([]string{"build", "-o", binary}, raceFlags...)
		if out, err := exec.Command("go", append(args, "agent-init/cmd/agent-init")...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// agentInit is a command line with a workspace of its own.
func agentInit(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(binary, words...)
	c.Env = environ(t)
	return c
}

func environ(t *testing.T) []string {
	dir := t.TempDir()
	return append(os.Environ(), "AGENTIC_RUNTIME_DIR="+filepath.Join(dir, "run"), "AGENTIC_WORKSPACE_DIR="+filepath.Join(dir, "workspace"),
		"HOME="+dir, "XDG_CONFIG_HOME=", "AGENTIC_LOG_LEVEL=warn", "INIT="+binary, "PS1=prompt> ", "PS0=", "HISTFILE=", "TERM=dumb", "COLUMNS=", "LINES=",
		"BASH_SILENCE_DEPRECATION_WARNING=1", "INPUTRC=/dev/null")
}

// screen is a terminal with a process on it, and a person before it.
type screen struct {
	*exec.Cmd
	t      *testing.T
	master console.Console
	// slave stays open, so that modes can be read when the process is gone.
	slave *os.File

	mu     sync.Mutex
	output strings.Builder
	seen   int
}

// onScreen starts a command as the session leader of a new terminal.
func onScreen(t *testing.T, c *exec.Cmd) *screen {
	t.Helper()
	master, name, err := console.NewPty()
	check(t, err)
	check(t, master.Resize(console.WinSize{Width: 100, Height: 30}))
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	s := &screen{Cmd: c, t: t, master: master, slave: slave}
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	check(t, c.Start())
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			s.mu.Lock()
			s.output.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		master.Close() // It hangs up on all of them.
		_ = c.Process.Kill()
		_ = c.Wait()
		slave.Close()
	})
	return s
}

func (s *screen) types(keys string) {
	s.t.Helper()
	_, err := s.master.Write([]byte(keys))
	check(s.t, err)
}

// expect waits for text after what was expected before, and returns what came
// until then.
func (s *screen) expect(text string) string {
	s.t.Helper()
	var before string
	until(s.t, fmt.Sprintf("%q", text), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		rest := s.output.String()[s.seen:]
		i := strings.Index(rest, text)
		if i >= 0 {
			before = rest[:i]
			s.seen += i + len(text)
		}
		return i >= 0
	}, s.all)
	return before
}

// all is what the terminal has shown so far.
func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.String()
}

func (s *screen) modes() unix.Termios {
	modes, err := unix.IoctlGetTermios(int(s.slave.Fd()), unix.TCGETS)
	check(s.t, err)
	return *modes
}

// awaitModes waits until the terminal is raw, or as it was.
func (s *screen) awaitModes(want unix.Termios) {
	s.t.Helper()
	until(s.t, "the terminal's modes", func() bool { return s.modes() == want }, func() string { return fmt.Sprintf("%+v\n%+v", s.modes(), want) })
}

func (s *screen) awaitRaw() {
	s.t.Helper()
	until(s.t, "a raw terminal", func() bool {
		m := s.modes()
		return m.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) == 0 && m.Oflag&unix.OPOST == 0
	}, nil)
}

// end waits for the exit and returns the code, 128+N for a death by signal N.
func (s *screen) end() int {
	s.t.Helper()
	return ended(s.t, s.Cmd)
}

func ended(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	killer := time.AfterFunc(patience, func() { _ = c.Process.Kill() })
	defer killer.Stop()
	_ = c.Wait()
	status := c.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

func until(t *testing.T, what string, f func() bool, state func() string) {
	t.Helper()
	for start := time.Now(); !f(); time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			if state != nil {
				what += " in\n" + state()
			}
			t.Fatal("waited in vain for ", what)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

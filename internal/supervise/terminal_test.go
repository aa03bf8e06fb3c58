package supervise

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/console"
	"golang.org/x/sys/unix"
)

// screen is a terminal with a process on it.
type screen struct {
	t      *testing.T
	master console.Console
	slave  *os.File
	cmd    *exec.Cmd
	mu     sync.Mutex
	output strings.Builder
	// seen is how much of the output earlier expectations have used up.
	seen int
}

// onScreen starts a command as the session leader of a new terminal.
func onScreen(t *testing.T, pid1 bool, words ...string) *screen {
	t.Helper()
	master, name, err := console.NewPty()
	check(t, err)
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	s := &screen{t: t, master: master, slave: slave, cmd: exec.Command(words[0], words[1:]...)}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if pid1 {
		s.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}
	s.cmd.Env = append(os.Environ(), "INIT="+os.Args[0]+" role:init", "JOB="+os.Args[0]+" role:job", "PS1=", "HISTFILE=", "TERM=dumb")
	check(t, s.cmd.Start())
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
		for _, p := range descendants(s.cmd.Process.Pid, processes()) {
			_ = p.send(unix.SIGKILL)
		}
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		slave.Close()
		master.Close()
	})
	return s
}

func (s *screen) input(text string) {
	s.t.Helper()
	_, err := s.master.Write([]byte(text))
	check(s.t, err)
}

// expect waits for text in what was not seen yet.
func (s *screen) expect(text string) {
	s.t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		all := s.output.String()
		s.mu.Unlock()
		if i := strings.Index(all[s.seen:], text); i >= 0 {
			s.seen += i + len(text)
			return
		}
		if time.Since(start) > patience/3 {
			s.t.Fatalf("no %q in:\n%s", text, all)
		}
	}
}

func (s *screen) foreground() int {
	group, err := unix.IoctlGetInt(int(s.slave.Fd()), unix.TIOCGPGRP)
	if err != nil {
		// Only the session's own processes may ask the slave; the master may always.
		group, err = unix.IoctlGetInt(int(s.master.Fd()), unix.TIOCGPGRP)
	}
	check(s.t, err)
	return group
}

// agentGroup is the process group of the only child of the command on screen.
func (s *screen) agentGroup() int {
	s.t.Helper()
	for _, p := range processes() {
		if p.parent == s.cmd.Process.Pid {
			group, err := unix.Getpgid(p.pid)
			check(s.t, err)
			return group
		}
	}
	s.t.Fatal("no agent")
	return 0
}

func (s *screen) awaitForeground(f func(group int) bool) {
	s.t.Helper()
	until(s.t, "the foreground", func() bool { return f(s.foreground()) })
}

func (s *screen) modes() unix.Termios {
	modes, err := unix.IoctlGetTermios(int(s.slave.Fd()), unix.TCGETS)
	check(s.t, err)
	return *modes
}

func initOnScreen(t *testing.T, pid1 bool, args ...string) *screen {
	t.Helper()
	return onScreen(t, pid1, append([]string{os.Args[0], "role:init"}, args...)...)
}

func (s *screen) end() int {
	s.t.Helper()
	killer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer killer.Stop()
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

func TestS4CtrlCReachesTheForegroundGroup(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		s := initOnScreen(t, pid1, "--", "sh", "-c", `trap 'echo interrupted; exit 6' INT; read x < /dev/tty; echo "line $x"; while :; do sleep 0.02; done`)
		s.input("hello\n")
		s.expect("line hello")
		if s.foreground() == s.cmd.Process.Pid {
			t.Error("agent-init kept the foreground")
		}
		s.input("\x03")
		s.expect("interrupted")
		if code := s.end(); code != 6 {
			t.Error(code)
		}
	})
}

func TestS4WindowSizeReachesTheAgent(t *testing.T) {
	s := initOnScreen(t, false, "--", "bash", "-c", `trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.02; done`)
	s.expect("ready")
	check(t, s.master.Resize(console.WinSize{Height: 33, Width: 77}))
	s.expect("33 77")
	s.end()
}

func TestS4InteractiveShellHasJobControl(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		s := initOnScreen(t, pid1, "--", "bash", "--norc", "--noprofile", "-i")
		s.input("echo $((40+2)); set -o | grep monitor\n")
		s.expect("42")
		s.expect("on\r\n")
		shell := s.agentGroup()
		s.input("sh -c 'echo up; exec sleep 1000'\n")
		s.expect("up\r\n")
		s.input("\x1a")
		s.expect("Stopped")
		s.input("jobs; echo t$((1+1))\n")
		s.expect("t2")
		s.input("fg\n")
		s.expect("sleep 1000")
		s.awaitForeground(func(group int) bool { return group != shell })
		s.input("\x03")
		// The terminal throws away what was typed before the Ctrl-C took effect.
		s.awaitForeground(func(group int) bool { return group == shell })
		s.input("echo code $?\n")
		s.expect("code 130")
		s.input("exit 7\n")
		if code := s.end(); code != 7 {
			t.Error(code)
		}
	})
}

func TestS4ModesAndForegroundAreRestoredAfterACrash(t *testing.T) {
	s := onScreen(t, false, "sh", "-c", `$INIT -- sh -c 'stty raw -echo; echo raw; read x; kill -KILL $$'; echo "code $?"; read y; echo "got $y"`)
	before := s.modes()
	s.expect("raw")
	if s.modes() == before {
		t.Error("the agent did not change the modes")
	}
	s.input("\n")
	s.expect("code 137")
	if s.modes() != before {
		t.Error("the modes were not restored")
	}
	if got := s.foreground(); got != s.cmd.Process.Pid {
		t.Error("the foreground group is ", got)
	}
	s.input("back\n")
	s.expect("got back")
	if code := s.end(); code != 0 {
		t.Error(code, s.cmd.ProcessState)
	}
}

func TestS1SuspensionGivesTheShellItsJobBack(t *testing.T) {
	s := onScreen(t, false, "bash", "--norc", "--noprofile", "-i")
	s.input("$INIT -- $JOB\n")
	s.expect("up\r\n")
	for range 10 {
		s.input("\x1a")
		s.expect("Stopped")
		s.input("echo shell $((1+2))\n")
		s.expect("shell 3")
		s.input("fg\n")
		s.expect("resumed")
	}
	s.input("\x03")
	s.awaitForeground(func(group int) bool { return group == s.cmd.Process.Pid })
	s.input("echo code $?\n")
	s.expect("code 9")
	s.input("exit\n")
	s.end()
}

func TestS1BackgroundJobAsksForTheTerminal(t *testing.T) {
	s := onScreen(t, false, "bash", "--norc", "--noprofile", "-i")
	// Reading in the background stops the agent, and so agent-init and the job.
	s.input("$INIT -- sh -c 'read a; echo \"read $a\"; exit 8' &\n")
	s.input("wait %1; jobs; echo t$((1+1))\n")
	s.expect("Stopped")
	s.expect("t2")
	s.input("fg\n")
	s.expect("exit 8")
	s.input("line\n")
	s.expect("read line")
	s.input("echo code $?\n")
	s.expect("code 8")
	s.input("exit\n")
	s.end()
}

func TestS1SuspensionBySignal(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU} {
		p := startInit(t, false, "--", os.Args[0], "role:job")
		p.line()
		p.signal(sig)
		until(t, "both to stop", func() bool {
			own, ok := readProcess(p.Process.Pid)
			children := descendants(p.Process.Pid, processes())
			return ok && own.halted() && len(children) > 0 && children[0].halted()
		})
		p.signal(unix.SIGCONT)
		if got := p.line(); got != "resumed" {
			t.Error(got)
		}
		p.signal(unix.SIGINT)
		if code, _ := p.end(); code != 9 {
			t.Error(code)
		}
	}
}

func TestS1PID1IsNotSuspended(t *testing.T) {
	needRoot(t)
	p := startInit(t, true, "--", os.Args[0], "role:job")
	p.line()
	p.signal(unix.SIGTSTP)
	until(t, "the agent to stop", func() bool {
		children := descendants(p.Process.Pid, processes())
		return len(children) > 0 && children[0].halted()
	})
	if own, _ := readProcess(p.Process.Pid); own.halted() {
		t.Error("PID 1 is stopped")
	}
	p.signal(unix.SIGCONT)
	if got := p.line(); got != "resumed" {
		t.Error(got)
	}
	p.signal(unix.SIGTERM)
	p.end()
}

// Whoever is at PID 1's terminal has nobody else to type to.
func TestS4CtrlZDoesNotLeaveTheAgentOfPID1Stopped(t *testing.T) {
	needRoot(t)
	s := initOnScreen(t, true, "--", os.Args[0], "role:job")
	s.expect("up\r\n")
	for range 3 {
		s.input("\x1a")
		s.expect("resumed")
	}
	s.input("\x03")
	if code := s.end(); code != 9 {
		t.Error(code)
	}
}

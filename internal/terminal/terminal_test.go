package terminal_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/containerd/console"
	"golang.org/x/sys/unix"
)

// Quotes in what is typed keep its echo from being taken for its output.
func TestS4ProxyInteractiveShell(t *testing.T) {
	s := onScreen(t, agentInit(t, "--tty", "proxy", "bash", "--norc"))
	before := s.modes()
	s.expect("prompt> ")
	s.awaitRaw()
	s.types("stty size; echo si''d $(ps -o sid= -p $$) $$; echo tt''y $(tty)\n")
	s.expect("30 100\r\n")
	ids := strings.Fields(strings.SplitN(s.expect("tty ")+" ", "sid ", 3)[1])
	if len(ids) < 2 || ids[0] != ids[1] {
		t.Errorf("the agent leads no session: %q", ids)
	}
	if got := s.expect("\r\n"); got == s.slave.Name() || !strings.HasPrefix(got, "/dev/pts/") {
		t.Errorf("the agent is on %s, we are on %s", got, s.slave.Name())
	}

	for _, keys := range []struct{ typed, code string }{{"\x03", "130"}, {"\x1c", "131"}} {
		s.types("sh -c 'echo sle\"\"eps; exec sleep 1000'\n")
		s.expect("sleeps\r\n")
		s.types(keys.typed)
		s.expect("prompt> ")
		s.types("echo co''de: $?\n")
		s.expect("code: " + keys.code + "\r\n")
	}
	s.types("sh -c 'echo rea\"\"ds; read -r word; echo got $word'\n")
	s.expect("reads\r\n")
	s.types("\x1a")
	s.expect("Stopped")
	s.expect("prompt> ")
	s.types("fg\n")
	s.expect("fg\r\nsh -c")
	s.types("it\n")
	s.expect("got it\r\n")

	s.types("trap 'size=$(stty size)' WINCH; echo se''t\n")
	s.expect("set\r\n")
	check(t, s.master.Resize(console.WinSize{Width: 77, Height: 33}))
	// bash runs a trap between two commands. The loop has no program in it, which
	// would be in the foreground and get the signal instead.
	s.types("until [ \"$size\" = '33 77' ]; do :; done; echo the window is no''w $size\n")
	s.expect("the window is now 33 77\r\n")

	s.types("exit 7\n")
	if code := s.end(); code != 7 {
		t.Error(code)
	}
	s.awaitModes(before)
	if strings.Contains(s.all(), "\r\r") {
		t.Errorf("a line ends twice:\n%q", s.all())
	}
}

func TestS4ProxyTakesOverModes(t *testing.T) {
	c := agentInit(t)
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", "stty erase @ -echo; exec $INIT --tty proxy -- stty -a"}
	s := onScreen(t, c)
	if got := s.expect(" echoe"); !strings.Contains(got, "erase = @") || !strings.Contains(got, "-echo") {
		t.Errorf("%q", got)
	}
	s.end()
}

// Nobody but agent-init can resume the agent there: it stops with it.
func TestS4ProxySuspends(t *testing.T) {
	for name, agent := range map[string]string{
		"by the terminal": `sh -c 'echo up; while read -r line; do echo "got $line"; done; exit 9'`,
		"by itself":       `bash -c 'stty -isig; echo up; while read -r -d . line; do if [ "$line" = z ]; then kill -STOP 0; fi; echo "got $line"; done; exit 9'`,
	} {
		t.Run(name, func(t *testing.T) {
			c := agentInit(t)
			c.Path, c.Args = "/bin/bash", []string{"bash", "--norc", "--noprofile", "-i"}
			s := onScreen(t, c)
			s.expect("prompt> ")
			s.types("stty -g | md5sum\n")
			s.expect("\r\n")
			modes := s.expect("  -")
			s.types("$INIT --tty proxy -- " + agent + "\n")
			s.expect("up\r\n")
			key, end := "\x1a", "\n"
			if name == "by itself" {
				key, end = "z.", "."
			}
			for round := range 5 {
				word := strconv.Itoa(round) + "th"
				s.awaitRaw()
				s.types(key)
				s.expect("Stopped")
				s.expect("prompt> ")
				s.types("stty -g | md5sum\n")
				s.expect("md5sum\r\n")
				if got := s.expect("  -"); got != modes {
					t.Errorf("other modes while suspended: %s, not %s", got, modes)
				}
				check(t, s.master.Resize(console.WinSize{Width: uint16(90 + round), Height: 30}))
				s.expect("prompt> ")
				s.types("fg\n")
				s.expect("$INIT")
				s.expect("\r\n")
				if name == "by itself" {
					s.expect("got z")
				}
				s.types(word + end)
				s.expect("got " + word)
			}
			s.types("\x04")
			if name == "by itself" {
				return
			}
			s.expect("prompt> ")
			s.types("echo co''de $?\n")
			s.expect("code 9")
		})
	}
}

func TestS4ProxyInTheBackground(t *testing.T) {
	c := agentInit(t)
	c.Path, c.Args = "/bin/bash", []string{"bash", "--norc", "--noprofile", "-i"}
	s := onScreen(t, c)
	s.expect("prompt> ")
	s.types(`$INIT --tty proxy -- sh -c 'echo be""gun; read -r x; echo "got $x"; exit 8' &` + "\n")
	s.expect("begun")
	s.types("echo she''ll\n")
	s.expect("shell\r\n")
	s.types("fg\n")
	s.expect("exit 8'\r\n")
	s.awaitRaw()
	s.types("word\n")
	s.expect("got word")
	s.expect("prompt> ")
	s.types("echo co''de $?\n")
	s.expect("code 8")
}

// TSTP to agent-init does what it does without a terminal of the agent's own.
func TestS1ProxySuspensionBySignal(t *testing.T) {
	s := onScreen(t, agentInit(t, "--tty", "proxy", "--", "sh", "-c", "echo up; while read -r line; do echo got $line; done"))
	s.expect("up\r\n")
	s.awaitRaw()
	check(t, s.Process.Signal(unix.SIGTSTP))
	until(t, "agent-init to stop", func() bool { return state(s.Process.Pid) == "T" }, nil)
	check(t, s.Process.Signal(unix.SIGCONT))
	s.types("word\n")
	s.expect("got word\r\n")
}

func TestS4ProxyModesAfterACrash(t *testing.T) {
	t.Run("of the agent", func(t *testing.T) {
		s := onScreen(t, agentInit(t, "--tty", "proxy", "--", "sh", "-c", "stty raw -echo; echo r''aw; read -r x; kill -KILL $$"))
		before := s.modes()
		s.expect("raw")
		s.awaitRaw()
		s.types("\n")
		if code := s.end(); code != 137 {
			t.Error(code)
		}
		s.awaitModes(before)
	})
	t.Run("of agent-init", func(t *testing.T) {
		// Nothing of a process that was killed can restore them; its shell does.
		c := agentInit(t)
		c.Path, c.Args = "/bin/bash", []string{"bash", "--norc", "--noprofile", "-i"}
		s := onScreen(t, c)
		s.expect("prompt> ")
		s.types("stty -g | md5sum\n")
		s.expect("\r\n")
		modes := s.expect("  -")
		s.expect("prompt> ")
		s.types("$INIT --tty proxy -- sh -c 'echo u\"\"p $PPID; exec sleep 1000'\n")
		s.expect("up ")
		pid, err := strconv.Atoi(strings.TrimSpace(s.expect("\n")))
		check(t, err)
		s.awaitRaw()
		check(t, unix.Kill(pid, unix.SIGKILL))
		s.expect("Killed")
		s.expect("prompt> ")
		s.types("stty -g | md5sum\n")
		s.expect("md5sum\r\n")
		if got := s.expect("  -"); got != modes {
			t.Errorf("%s, not %s", got, modes)
		}
	})
}

func TestS4ProxyStopSignal(t *testing.T) {
	s := onScreen(t, agentInit(t, "--tty", "proxy", "--", "sh", "-c", "trap 'echo stopped; exit 3' TERM; echo up; while :; do sleep 0.02; done"))
	before := s.modes()
	s.expect("up\r\n")
	s.awaitRaw()
	check(t, s.Process.Signal(unix.SIGTERM))
	s.expect("stopped\r\n")
	if code := s.end(); code != 3 {
		t.Error(code)
	}
	s.awaitModes(before)
}

// agent-init's own lines start at the left on a terminal that is raw.
func TestS4ProxyOwnLines(t *testing.T) {
	c := agentInit(t, "--tty", "proxy", "--log-level", "info", "--", "sh", "-c", "trap 'exit 3' TERM; echo up; while :; do sleep 0.02; done")
	s := onScreen(t, c)
	s.expect("up\r\n")
	s.awaitRaw()
	check(t, s.Process.Signal(unix.SIGTERM))
	s.expect("agent-init: stop requested signal=SIGTERM\r\n")
	s.end()
}

func state(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

// Those of a log that goes elsewhere are for machines.
func TestS4ProxyOwnLinesInAFile(t *testing.T) {
	c := agentInit(t, "--tty", "proxy", "--log-level", "info", "--", "sh", "-c", "echo up; read -r x")
	log := filepath.Join(t.TempDir(), "log")
	c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `log=$1; shift; "$INIT" "$@" 2>"$log"`, "sh", log}, c.Args[1:]...)
	s := onScreen(t, c)
	s.expect("up\r\n")
	s.awaitRaw()
	s.types("\n")
	s.end()
	text, err := os.ReadFile(log)
	check(t, err)
	if strings.Contains(string(text), "\r") || !strings.Contains(string(text), "agent_exited") {
		t.Errorf("%q", text)
	}
}

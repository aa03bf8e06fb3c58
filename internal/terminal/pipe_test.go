package terminal_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// output runs a command with pipes, and returns what it wrote and its code.
func output(t *testing.T, c *exec.Cmd, stdin io.Reader) (string, int) {
	t.Helper()
	var out bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = stdin, &out, os.Stderr
	check(t, c.Start())
	code := ended(t, c)
	return out.String(), code
}

func quiet(t *testing.T, words ...string) *exec.Cmd {
	c := agentInit(t, words...)
	c.Env = append(c.Env, "AGENTIC_EVENTS=none")
	return c
}

func TestS4ProxyWithoutATerminal(t *testing.T) {
	const ask = `stty size; test -t 0 && test -t 1 && test -t 2 && echo "all on $TERM"; exit 5`
	for _, tt := range []struct {
		env  []string
		want string
	}{
		{nil, "24 80\r\n"},
		{[]string{"COLUMNS=132", "LINES=50"}, "50 132\r\n"},
		{[]string{"COLUMNS=wide", "LINES=0"}, "24 80\r\n"},
	} {
		c := quiet(t, "--tty", "proxy", "--", "sh", "-c", ask)
		c.Env = append(c.Env, tt.env...)
		got, code := output(t, c, nil)
		if want := tt.want + "all on dumb\r\n"; got != want || code != 5 {
			t.Errorf("%v: %q %d", tt.env, got, code)
		}
	}
}

func TestS4ProxyGivesATerminalAName(t *testing.T) {
	c := quiet(t, "--tty", "proxy", "--", "sh", "-c", "echo $TERM")
	c.Env = append(c.Env, "TERM=")
	var env []string
	for _, entry := range c.Env {
		if !strings.HasPrefix(entry, "TERM=") {
			env = append(env, entry)
		}
	}
	c.Env = env
	if got, _ := output(t, c, nil); got != "xterm\r\n" {
		t.Errorf("%q", got)
	}
}

func TestS4ProxyEndOfInput(t *testing.T) {
	for name, tt := range map[string]struct{ script, in, want string }{
		"nothing":           {"cat; echo end", "", "end\r\n"},
		"lines":             {"stty -echo; cat; echo end", "a\nb\n", "a\r\nb\r\nend\r\n"},
		"no newline":        {"stty -echo; cat; echo end", "a\nb", "a\r\nbend\r\n"},
		"slow reader":       {"stty -echo; sleep 0.3; cat; echo end", "a\n", "a\r\nend\r\n"},
		"another character": {"stty eof @ -echo; sleep 0.1; cat; echo end", "", "end\r\n"},
		"raw":               {"stty raw -echo; printf up; head -c1 | od -An -tx1", "", "up 04\n"},
		"a shell":           {"exec bash --norc -i", "", "exit\r\n"},
		"typed ahead":       {"stty -echo; sleep 0.2; exec bash --norc --noediting -i", "echo ru''n\n", "run\r\nexit\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in, w, err := os.Pipe()
			check(t, err)
			c := quiet(t, "--tty", "proxy", "--", "sh", "-c", tt.script)
			c.Env = append(c.Env, "PS1=")
			_, err = w.WriteString(tt.in)
			check(t, err)
			if name == "raw" || name == "lines" || name == "no newline" {
				// When the modes are set.
				go func() { time.Sleep(300 * time.Millisecond); w.Close() }()
			} else {
				w.Close()
			}
			got, _ := output(t, c, in)
			in.Close()
			if name == "lines" || name == "no newline" {
				// The echo comes first where the shell was slower than we.
				got = strings.TrimPrefix(got, strings.ReplaceAll(tt.in, "\n", "\r\n"))
				if !strings.HasSuffix(got, tt.want) && !strings.HasSuffix(tt.want, got) {
					t.Errorf("%q", got)
				}
				return
			}
			if !strings.HasSuffix(got, tt.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

// No byte is lost on the way in or out, however much it is.
func TestS4ProxyCopiesEverything(t *testing.T) {
	const lines = 200_000
	var in bytes.Buffer
	for n := range lines {
		fmt.Fprintf(&in, "line %d of what is copied\n", n)
	}
	want := fmt.Sprintf("%x", sha256.Sum256(in.Bytes()))
	c := quiet(t, "--tty", "proxy", "--", "sh", "-c", "stty -echo; echo up; sha256sum")
	r, w, err := os.Pipe()
	check(t, err)
	out, ow, err := os.Pipe()
	check(t, err)
	c.Stdin, c.Stdout, c.Stderr = r, ow, os.Stderr
	check(t, c.Start())
	r.Close()
	ow.Close()
	head := make([]byte, 4)
	_, err = io.ReadFull(out, head)
	check(t, err)
	go func() { w.Write(in.Bytes()); w.Close() }()
	rest, err := io.ReadAll(out)
	check(t, err)
	if code := ended(t, c); code != 0 || !strings.HasPrefix(string(rest), want) {
		t.Errorf("%d %q", code, rest)
	}

	got, code := output(t, quiet(t, "--tty", "proxy", "--", "seq", "1", "300000"), nil)
	if code != 0 || strings.Count(got, "\r\n") != 300000 || !strings.HasSuffix(got, "\r\n300000\r\n") {
		t.Errorf("%d bytes, code %d, end %q", len(got), code, got[max(0, len(got)-20):])
	}
}

// The agent's terminal stays, whoever closes it in between.
func TestS4ProxyAgentClosesItsTerminal(t *testing.T) {
	got, code := output(t, quiet(t, "--tty", "proxy", "--", "bash", "-c", "exec 0<&- 1>&- 2>&-; sleep 0.2; echo still >/dev/tty; exit 4"), nil)
	if got != "still\r\n" || code != 4 {
		t.Errorf("%q %d", got, code)
	}
}

// An agent whose output nobody reads gets a hang-up.
func TestS4ProxyReaderGone(t *testing.T) {
	c := quiet(t, "--tty", "proxy", "--", "sh", "-c", "trap 'exit 77' HUP; echo up; while :; do echo more; sleep 0.01; done")
	out, w, err := os.Pipe()
	check(t, err)
	c.Stdout, c.Stderr = w, os.Stderr
	check(t, c.Start())
	w.Close()
	_, err = io.ReadFull(out, make([]byte, 4))
	check(t, err)
	out.Close()
	if code := ended(t, c); code != 77 {
		t.Error(code)
	}
}

// stdout's end does not wait for ever for a reader that does not read.
func TestS4ProxyReaderStalls(t *testing.T) {
	c := quiet(t, "--tty", "proxy", "--stop-grace", "1s", "--", "sh", "-c", "seq 1 100000")
	out, w, err := os.Pipe()
	check(t, err)
	defer out.Close()
	c.Stdout = w
	var stderr bytes.Buffer
	c.Stderr = &stderr
	check(t, c.Start())
	w.Close()
	held, since := 0, time.Now()
	until(t, "a full pipe", func() bool {
		n, err := unix.IoctlGetInt(int(out.Fd()), unix.TIOCINQ)
		check(t, err)
		if n != held {
			held, since = n, time.Now()
		}
		return n > 0 && time.Since(since) > 300*time.Millisecond
	}, nil)
	check(t, c.Process.Signal(unix.SIGTERM))
	if code := ended(t, c); code != 143 {
		t.Error(code)
	}
	if !strings.Contains(stderr.String(), "it is lost") {
		t.Errorf("%q", stderr.String())
	}
}

const secretValue = "s3cr3t-value-of-the-token"

// E1: with MASK_STDOUT the agent's stdout is what it is without, less secrets.
func TestE1MaskStdout(t *testing.T) {
	masked := func(words ...string) *exec.Cmd {
		c := quiet(t, append([]string{"--mask-stdout", "--"}, words...)...)
		c.Env = append(c.Env, "GITHUB_TOKEN="+secretValue)
		return c
	}
	t.Run("secrets", func(t *testing.T) {
		got, code := output(t, masked("sh", "-c", `printf 'a %s b' "$GITHUB_TOKEN"; printf s3cr3t-; sleep 0.1; printf 'value-of-the-token\n'; printf s3cr3t; exit 6`), nil)
		if got != "a *** b***\ns3cr3t" || code != 6 {
			t.Errorf("%q %d", got, code)
		}
	})
	t.Run("everything else", func(t *testing.T) {
		want := make([]byte, 8<<20)
		rand.New(rand.NewSource(1)).Read(want)
		path := t.TempDir() + "/bytes"
		check(t, os.WriteFile(path, want, 0o600))
		got, code := output(t, masked("cat", path), nil)
		if got != string(want) || code != 0 {
			t.Errorf("%d bytes, code %d", len(got), code)
		}
	})
	t.Run("a prompt is shown at once", func(t *testing.T) {
		c := masked("sh", "-c", `printf 'name? '; read -r x; echo "hello $x"`)
		in, err := c.StdinPipe()
		check(t, err)
		out, err := c.StdoutPipe()
		check(t, err)
		check(t, c.Start())
		prompt := make([]byte, 6)
		_, err = io.ReadFull(out, prompt)
		check(t, err)
		_, err = io.WriteString(in, "you\n")
		check(t, err)
		rest, err := io.ReadAll(out)
		check(t, err)
		if string(prompt)+string(rest) != "name? hello you\n" {
			t.Errorf("%q", rest)
		}
		ended(t, c)
	})
	t.Run("the reader leaves", func(t *testing.T) {
		c := masked("sh", "-c", "echo one; read -r x; echo two; echo three; exit 1")
		in, err := c.StdinPipe()
		check(t, err)
		out, w, err := os.Pipe()
		check(t, err)
		c.Stdout, c.Stderr = w, os.Stderr
		check(t, c.Start())
		w.Close()
		_, err = io.ReadFull(out, make([]byte, 4))
		check(t, err)
		out.Close()
		time.Sleep(200 * time.Millisecond) // The kernel tells agent-init, and nobody tells us that it has.
		_, err = io.WriteString(in, "\n")
		check(t, err)
		if code := ended(t, c); code != 141 {
			t.Error(code)
		}
	})
	t.Run("non-blocking output", func(t *testing.T) {
		c := masked("seq", "1", "200000")
		out, w, err := os.Pipe()
		check(t, err)
		check(t, unix.SetNonblock(int(w.Fd()), true))
		c.Stdout, c.Stderr = w, os.Stderr
		check(t, c.Start())
		w.Close()
		time.Sleep(100 * time.Millisecond) // The pipe fills.
		got, err := io.ReadAll(out)
		check(t, err)
		if code := ended(t, c); code != 0 || !strings.HasSuffix(string(got), "\n200000\n") {
			t.Errorf("%d bytes, code %d", len(got), code)
		}
	})
	t.Run("on a terminal", func(t *testing.T) {
		c := masked("sh", "-c", `test -t 1 && echo "it is $GITHUB_TOKEN."`)
		s := onScreen(t, c)
		s.expect("it is ***.\r\n")
		s.end()
	})
}

// A prompt is the agent's stdin there too, and the log of a run has what is shown.
func TestS4ProxyWithAPromptAndALog(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(dir+"/prompt", []byte("the prompt\n"), 0o600))
	c := quiet(t, "--tty", "proxy", "--", "sh", "-c", `cat; test -t 0 || test -t 1 && test -t 2 && echo "a terminal"; echo direct >/dev/tty`)
	c.Env = append(c.Env, "AGENTIC_PROMPT_FILE="+dir+"/prompt", "AGENTIC_RESULTS_DIR="+dir+"/results")
	const want = "the prompt\r\na terminal\r\ndirect\r\n"
	if got, code := output(t, c, nil); got != want || code != 0 {
		t.Errorf("%q %d", got, code)
	}
	logs, err := filepath.Glob(dir + "/results/*")
	check(t, err)
	if len(logs) != 1 {
		t.Fatal(logs)
	}
	text, err := os.ReadFile(logs[0])
	check(t, err)
	if !strings.Contains(string(text), "the prompt") || !strings.Contains(string(text), "direct") {
		t.Errorf("%q", text)
	}
}

package entrypoint_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
)

func withTerminal(c *container.Config, _ *container.HostConfig) {
	c.Tty, c.OpenStdin, c.AttachStdin = true, true, true
	c.Env = append(c.Env, "PS1=prompt> ", "TERM=dumb")
}

// terminal is a person at an attached container.
type terminal struct {
	w      *workspace
	stream types.HijackedResponse
	seen   string
}

func (w *workspace) attach() *terminal {
	w.t.Helper()
	stream, err := w.ContainerAttach(w.ctx, w.id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true})
	w.must(err)
	w.t.Cleanup(stream.Close)
	if deadline, ok := w.ctx.Deadline(); ok {
		stream.Conn.SetDeadline(deadline)
	}
	return &terminal{w: w, stream: stream}
}

// types writes keys as they are typed.
func (p *terminal) types(keys string) {
	p.w.t.Helper()
	_, err := p.stream.Conn.Write([]byte(keys))
	p.w.must(err)
}

// expect reads until text has come after what was expected before, and returns
// what came until then.
func (p *terminal) expect(text string) string {
	p.w.t.Helper()
	buffer := make([]byte, 4096)
	for !strings.Contains(p.seen, text) {
		n, err := p.stream.Reader.Read(buffer)
		p.seen += string(buffer[:n])
		if err != nil {
			p.w.t.Fatalf("%q did not come: %v\n%q", text, err, p.seen)
		}
	}
	before, after, _ := strings.Cut(p.seen, text)
	p.seen = after
	return before
}

// onTerminals runs a test with the agent on Docker's terminal and on one of its
// own.
func onTerminals(t *testing.T, test func(t *testing.T, tty option)) {
	for _, kind := range []string{"inherit", "proxy"} {
		t.Run(kind, func(t *testing.T) {
			parallel(t)
			test(t, env("AGENTIC_TTY="+kind))
		})
	}
}

func TestS4Terminal(t *testing.T) {
	onTerminals(t, func(t *testing.T, tty option) {
		w := create(t, image, []string{"bash", "--norc"}, withTerminal, tty)
		p := w.attach()
		w.start()
		begin := p.expect("prompt> ")
		wantIn(t, begin, "agent-init: workspace is ready")
		for _, bad := range []string{"no job control", "cannot set terminal", "event_type", "{"} {
			if strings.Contains(begin, bad) {
				t.Errorf("the terminal shows %q:\n%s", bad, begin)
			}
		}
		p.worksInShell(func(size container.ResizeOptions) { w.must(w.ContainerResize(w.ctx, w.id, size)) })
		p.types("exit 7\n")
		wantCode(t, w.wait(), 7)
	})
}

// worksInShell is what a person does at the prompt of a shell. Quotes in what is
// typed keep its echo from being taken for its output.
func (p *terminal) worksInShell(resize func(container.ResizeOptions)) {
	p.w.t.Helper()
	for _, size := range []container.ResizeOptions{{Height: 40, Width: 120}, {Height: 25, Width: 90}} {
		p.types("trap 'size=$(stty size)' WINCH; echo se''t\n")
		p.expect("set\r\n")
		resize(size)
		want := fmt.Sprintf("%d %d", size.Height, size.Width)
		// bash runs a trap between two commands. The loop has no program in it, which
		// would be in the foreground and get the signal instead.
		p.types("until [ \"$size\" = '" + want + "' ]; do :; done; echo the window is no''w $size\n")
		p.expect("the window is now " + want + "\r\n")
	}

	p.types("bash -c 'echo sle\"\"eps; exec sleep 1000'\n")
	p.expect("sleeps\r\n")
	p.types("\x03")
	p.types("echo co''de: $?\n")
	p.expect("code: 130\r\n")

	p.types("bash -c 'echo rea\"\"ds; read -r word; echo got $word'\n")
	p.expect("reads\r\n")
	p.types("\x1a")
	p.expect("Stopped")
	p.expect("prompt> ")
	p.types("fg\n")
	p.expect("fg\r\nbash -c")
	p.types("it\n")
	p.expect("got it\r\n")
}

// execTerminal is a person at docker exec -it.
func (w *workspace) execTerminal(entries []string, command ...string) (p *terminal, id string) {
	w.t.Helper()
	size := &[2]uint{24, 80}
	made, err := w.ContainerExecCreate(w.ctx, w.id, container.ExecOptions{Tty: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
		ConsoleSize: size, Env: append(entries, "PS1=prompt> "), Cmd: command})
	w.must(err)
	stream, err := w.ContainerExecAttach(w.ctx, made.ID, container.ExecAttachOptions{Tty: true, ConsoleSize: size})
	w.must(err)
	w.t.Cleanup(stream.Close)
	if deadline, ok := w.ctx.Deadline(); ok {
		stream.Conn.SetDeadline(deadline)
	}
	return &terminal{w: w, stream: stream}, made.ID
}

// execEnd reads to the end of what an exec shows and returns its exit code.
func (p *terminal) execEnd(id string) int {
	p.w.t.Helper()
	_, err := io.Copy(io.Discard, p.stream.Reader)
	p.w.must(err)
	ended, err := p.w.ContainerExecInspect(p.w.ctx, id)
	p.w.must(err)
	return ended.ExitCode
}

func TestS4ExecTerminal(t *testing.T) {
	onTerminals(t, func(t *testing.T, _ option) {
		kind := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
		w := start(t, []string{"sleep", "1000"})
		w.await("agent_started")
		p, id := w.execTerminal([]string{"TERM=dumb"}, "agent-init", "exec", "--tty", kind, "bash", "--norc")
		p.expect("prompt> ")
		p.worksInShell(func(size container.ResizeOptions) { w.must(w.ContainerExecResize(w.ctx, id, size)) })
		p.types("exit 7\n")
		if code := p.execEnd(id); code != 7 {
			t.Error(code)
		}
	})
}

// What a crash leaves behind, as the shell sees it that somebody works in.
func TestS4ModesAfterACrash(t *testing.T) {
	onTerminals(t, func(t *testing.T, _ option) {
		kind := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
		w := start(t, []string{"sleep", "1000"})
		w.await("agent_started")
		p, id := w.execTerminal([]string{"TERM=dumb"}, "bash", "--norc")
		modes := func() string {
			p.expect("prompt> ")
			p.types("echo mo''des $(stty -g)\n")
			p.expect("modes ")
			return p.expect("\r\n")
		}
		before := modes()
		for _, victim := range []string{"$$", "$PPID"} {
			p.expect("prompt> ")
			p.types("agent-init exec --tty " + kind + " -- bash -c 'stty raw -echo; echo ra\"\"w; read -r -d . x; kill -9 " + victim + "; exec sleep 1000'\n")
			p.expect("raw")
			p.types(".")
			if after := modes(); after != before {
				t.Errorf("%s: %s, not %s", victim, after, before)
			}
		}
		p.types("exit\n")
		p.execEnd(id)
	})
}

func TestS4DetachAndAttachAgain(t *testing.T) {
	onTerminals(t, func(t *testing.T, tty option) {
		w := create(t, image, []string{"bash", "--norc"}, withTerminal, tty)
		p := w.attach()
		w.start()
		p.expect("prompt> ")
		p.types("there=here; echo fi''rst\n")
		p.expect("first\r\n")
		p.stream.Close()

		p = w.attach()
		p.types("echo still $there\n")
		p.expect("still here\r\n")
		// Docker's own keys for it.
		p.types("\x10\x11")
		_, err := io.Copy(io.Discard, p.stream.Reader)
		w.must(err)

		p = w.attach()
		w.must(w.ContainerResize(w.ctx, w.id, container.ResizeOptions{Height: 31, Width: 99}))
		p.types("echo si''ze $(stty size)\n")
		p.expect("size 31 99\r\n")
		p.types("exit 200\n")
		wantCode(t, w.wait(), 200)
	})
}

func TestS4StopWithATerminal(t *testing.T) {
	onTerminals(t, func(t *testing.T, tty option) {
		// An interactive bash ignores TERM: it is the sweep's and the grace's case.
		w := create(t, image, []string{"--stop-grace", "2s", "bash", "--norc"}, withTerminal, tty)
		p := w.attach()
		w.start()
		p.expect("prompt> ")
		wantCode(t, w.stop(), 137)
		w.wantNoKill()
	})
}

func TestS4TerminalWithoutStdin(t *testing.T) {
	onTerminals(t, func(t *testing.T, tty option) {
		r := run(t, bash("stty size >/dev/null && echo a terminal", "exit 7"), func(c *container.Config, _ *container.HostConfig) { c.Tty = true }, tty)
		wantCode(t, r, 7)
		wantIn(t, r.stdout, "agent-init: workspace is ready", "a terminal\r\n")
	})
}

// Without -t the events are on stderr, and the agent is on a terminal all the
// same.
func TestS4ProxyWithoutATerminal(t *testing.T) {
	parallel(t)
	r := run(t, bash("stty size", "exit 7"), env("AGENTIC_TTY=proxy"))
	wantCode(t, r, 7)
	wantIn(t, r.stderr, `"event_type":"agent_exited"`)
	if r.stdout != "24 80\r\n" {
		t.Errorf("%q", r.stdout)
	}
}

// copyIn writes a file of the agent's into a container that has not started.
func (w *workspace) copyIn(dir, name, text string) {
	w.t.Helper()
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	w.must(out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Uid: 1000, Gid: 1000, Size: int64(len(text))}))
	_, err := out.Write([]byte(text))
	w.must(err)
	w.must(out.Close())
	w.must(w.CopyToContainer(w.ctx, w.id, dir, &archive, container.CopyToContainerOptions{}))
}

// withAnswers is what a first run of the agent CLI would ask: theme, key and
// trust.
func (w *workspace) withAnswers() {
	w.t.Helper()
	w.copyIn("/home/agent", ".claude.json", `{"hasCompletedOnboarding": true,
		"customApiKeyResponses": {"approved": ["and-in-without-a-key"]},
		"projects": {"/workspace": {"hasTrustDialogAccepted": true}}}`)
}

// talks is what a person does in the agent's own interface.
func (p *terminal) talks() {
	p.w.t.Helper()
	p.expect("shortcuts")
	p.types("greetings")
	p.expect("greetings")
	p.types("\r")
	p.expect("said")
}

// The agent's own terminal interface, as a person uses it.
func TestS4RealAgentInATerminal(t *testing.T) {
	onTerminals(t, func(t *testing.T, tty option) {
		m := startModel(t, "")
		w := create(t, image, []string{"claude"}, withTerminal, m.talk(), mounted(t), env("TERM=xterm"), tty,
			host(func(h *container.HostConfig) { h.ConsoleSize = [2]uint{40, 120} }))
		w.withAnswers()
		p := w.attach()
		w.start()
		p.talks()
		// Nobody could resume an agent here.
		p.types("\x1a")
		p.expect("has been suspended")
		p.expect("shortcuts")
		p.types("/exit\r")
		wantCode(t, w.wait(), 0)
		// MCP servers may still be connecting at the first turn; plugins are loaded.
		requests := m.requests()
		if len(requests) == 0 || requests[0].Prompt != "greetings" {
			t.Fatalf("%d requests, not one with the prompt", len(requests))
		}
		if !bytes.Contains(requests[0].Body, []byte("greeter:greet")) {
			t.Error("the request does not offer the plugin's skill")
		}
	})
}

// The same by docker exec -it, recorded where it is on a terminal of its own;
// Ctrl-Z gives the shell its prompt back.
func TestS4RealAgentInAnExecTerminal(t *testing.T) {
	onTerminals(t, func(t *testing.T, _ option) {
		kind := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
		m := startModel(t, "")
		w := create(t, image, []string{"sleep", "1000"}, m.talk())
		w.withAnswers()
		w.start()
		w.await("agent_started")
		p, id := w.execTerminal([]string{"TERM=xterm", "INPUTRC=/dev/null"}, "bash", "--norc")
		p.expect("prompt> ")
		command := "agent-init exec claude"
		if kind == "proxy" {
			command = "agent-init exec --record /tmp/session.cast claude"
		}
		p.types(command + "\n")
		p.talks()
		p.types("\x1a")
		p.expect("Stopped")
		p.expect("prompt> ")
		p.types("fg\n")
		p.expect(command)
		p.expect("said")
		p.types("/exit\r")
		p.expect("prompt> ")
		p.types("echo co''de $?; exit\n")
		p.expect("code 0\r\n")
		p.execEnd(id)
		if kind == "proxy" {
			wantIn(t, w.files("/tmp/session.cast")["session.cast"], `{"version":2,"width":80,"height":24,`, "greetings")
		}
	})
}

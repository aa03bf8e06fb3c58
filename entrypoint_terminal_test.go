package entrypoint_test

import (
	"archive/tar"
	"bytes"
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

// Quotes in what is typed keep its echo from being taken for its output.
func TestS4Terminal(t *testing.T) {
	parallel(t)
	w := create(t, image, []string{"bash", "--norc"}, withTerminal)
	p := w.attach()
	w.start()
	begin := p.expect("prompt> ")
	wantIn(t, begin, "agent-init: workspace is ready")
	for _, bad := range []string{"no job control", "cannot set terminal", "event_type", "{"} {
		if strings.Contains(begin, bad) {
			t.Errorf("the terminal shows %q:\n%s", bad, begin)
		}
	}

	for _, size := range []container.ResizeOptions{{Height: 40, Width: 120}, {Height: 25, Width: 90}} {
		p.types("trap 'echo the window is no\"\"w $(stty size)' WINCH; echo se''t\n")
		p.expect("set\r\n")
		w.must(w.ContainerResize(w.ctx, w.id, size))
		want := map[uint]string{40: "40 120", 25: "25 90"}[size.Height]
		// bash runs a trap between two commands.
		p.types(":\n")
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

	p.types("exit 7\n")
	r := w.wait()
	wantCode(t, r, 7)
}

func TestS4DetachAndAttachAgain(t *testing.T) {
	parallel(t)
	w := create(t, image, []string{"bash", "--norc"}, withTerminal)
	p := w.attach()
	w.start()
	p.expect("prompt> ")
	p.types("there=here; echo fi''rst\n")
	p.expect("first\r\n")
	p.stream.Close()

	p = w.attach()
	p.types("echo still $there\n")
	p.expect("still here\r\n")
	p.types("exit 200\n")
	wantCode(t, w.wait(), 200)
}

func TestS4StopWithATerminal(t *testing.T) {
	parallel(t)
	// An interactive bash ignores TERM: it is the sweep's and the grace's case.
	w := create(t, image, []string{"--stop-grace", "2s", "bash", "--norc"}, withTerminal)
	p := w.attach()
	w.start()
	p.expect("prompt> ")
	wantCode(t, w.stop(), 137)
	w.wantNoKill()
}

func TestS4TerminalWithoutStdin(t *testing.T) {
	parallel(t)
	r := run(t, bash("stty size >/dev/null && echo a terminal", "exit 7"), func(c *container.Config, _ *container.HostConfig) { c.Tty = true })
	wantCode(t, r, 7)
	wantIn(t, r.stdout, "agent-init: workspace is ready", "a terminal\r\n")
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

// The agent's own terminal interface, as a person uses it.
func TestS4RealAgentInATerminal(t *testing.T) {
	parallel(t)
	m := startModel(t, "")
	w := create(t, image, []string{"claude"}, withTerminal, m.talk(), mounted(t), env("TERM=xterm"),
		host(func(h *container.HostConfig) { h.ConsoleSize = [2]uint{40, 120} }))
	// What a first run would ask: theme, key and trust.
	w.copyIn("/home/agent", ".claude.json", `{"hasCompletedOnboarding": true,
		"customApiKeyResponses": {"approved": ["and-in-without-a-key"]},
		"projects": {"/workspace": {"hasTrustDialogAccepted": true}}}`)
	p := w.attach()
	w.start()
	p.expect("shortcuts")
	p.types("greetings")
	p.expect("greetings")
	p.types("\r")
	p.expect("said")
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
}

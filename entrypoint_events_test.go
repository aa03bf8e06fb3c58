package entrypoint_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/pkg/stdcopy"
)

// recording is what the handlers of testdata/recorder wrote to their stderr, one
// file a process, written by the handlers themselves.
type recording struct {
	t   *testing.T
	dir string
}

func record(t *testing.T) recording {
	t.Helper()
	dir := t.TempDir()
	// The handlers are another user's.
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return recording{t, dir}
}

// keep gives a container the directory of the recording.
func (r recording) keep() option {
	return host(func(h *container.HostConfig) {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: r.dir, Target: "/recorded"})
	})
}

// options are what a container needs for the recorder and the stand-in.
func (r recording) options(m model) option {
	r.t.Helper()
	plugin, talk, keep := bind(r.t, "testdata/recorder", "/opt/agentic/plugins/recorder"), m.talk(), r.keep()
	return func(c *container.Config, h *container.HostConfig) {
		for _, change := range []option{plugin, talk, keep} {
			change(c, h)
		}
	}
}

// start starts a container with the recorder. whole puts what it wrote into its
// result as it is: Docker's logs keep no bytes that are no UTF-8, or no newline
// after 16 KiB, according to the driver.
func (r recording) start(from string, m model, command []string, more ...option) (w *workspace, whole func(result) result) {
	r.t.Helper()
	w = create(r.t, from, command, append([]option{r.options(m)}, more...)...)
	whole = w.capture()
	w.start()
	return w, whole
}

func (w *workspace) capture() (whole func(result) result) {
	w.t.Helper()
	stream, err := w.ContainerAttach(w.ctx, w.id, container.AttachOptions{Stream: true, Stdout: true, Stderr: true})
	w.must(err)
	w.t.Cleanup(stream.Close)
	var out, stderr bytes.Buffer
	copied := make(chan error, 1)
	go func() {
		_, err := stdcopy.StdCopy(&out, &stderr, stream.Reader)
		copied <- err
	}()
	return func(r result) result {
		w.t.Helper()
		select {
		case err := <-copied:
			w.must(err)
		case <-w.ctx.Done():
			w.t.Fatal("Docker does not end the streams of a container that has ended")
		}
		r.stdout, r.stderr = out.String(), stderr.String()
		return r
	}
}

// raw is what each process wrote; the names are SESSION.HANDLER.PID.
func (r recording) raw(session string) map[string]string {
	r.t.Helper()
	paths, err := filepath.Glob(filepath.Join(r.dir, session+"*.*.*"))
	if err != nil {
		r.t.Fatal(err)
	}
	found := make(map[string]string)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			r.t.Fatal(err)
		}
		found[filepath.Base(path)] = string(data)
	}
	return found
}

// recorded stands in each event of the recorder's, and nowhere else: within a
// JSON string the quotes have backslashes.
const recorded = `"session_id": "rec:`

func recordedLines(text string) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, recorded) {
			lines = append(lines, line)
		}
	}
	return lines
}

// wantOnce checks that text holds each event of a session (all sessions if it is
// empty) exactly once, byte for byte, in the order of its process, and no other
// line of the handlers.
func (r recording) wantOnce(where, text, session string) {
	r.t.Helper()
	places := make(map[string][]int)
	for i, line := range recordedLines(text) {
		places[line] = append(places[line], i)
	}
	events, missing := 0, 0
	for process, wrote := range r.raw(session) {
		last := -1
		for _, line := range recordedLines(wrote) {
			events++
			at := places[line]
			delete(places, line)
			switch {
			case len(at) == 0:
				if missing++; missing <= 5 {
					r.t.Errorf("%s: lost of %s: %.150q", where, process, line)
				}
			case len(at) > 1:
				r.t.Errorf("%s: %d times there, of %s: %.150q", where, len(at), process, line)
			case at[0] < last:
				r.t.Errorf("%s: out of order, of %s: %.150q", where, process, line)
			default:
				last = at[0]
			}
		}
	}
	if events == 0 || missing > 0 {
		r.t.Errorf("%s: %d of %d events are lost", where, missing, events)
	}
	for line := range places {
		r.t.Errorf("%s: nobody wrote %.150q", where, line)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "noise") || strings.HasPrefix(line, `{"noise`) {
			r.t.Errorf("%s: no event, but there: %.150q", where, line)
		}
	}
}

// Handlers of a session with one call of the Bash tool.
var (
	execForms = []string{"ArgsPostToolUse", "ArgsPreToolUse", "ArgsSessionEnd", "ArgsStop"}
	inShell   = []string{"Async", "Bash", "ChildOfHook", "PreToolUse", "SessionEnd", "SessionStart", "Stop", "inline"}
	inPython  = []string{"EmitterPreToolUse", "PostToolUse", "UserPromptSubmit"}
	all       = slices.Concat(execForms, inShell, inPython)
)

// wantHandlers checks which handlers a session has run.
func (r recording) wantHandlers(session string, want ...string) {
	r.t.Helper()
	var ran []string
	for name := range r.raw(session) {
		ran = append(ran, strings.Split(name, ".")[1])
	}
	slices.Sort(ran)
	want = slices.Sorted(slices.Values(want))
	if ran = slices.Compact(ran); !slices.Equal(ran, want) {
		r.t.Errorf("the handlers that ran are %q, not %q", ran, want)
	}
}

func (w *workspace) journal() string {
	w.t.Helper()
	return w.files("/run/agentic/events.jsonl")["events.jsonl"]
}

// wantEverywhere checks the journal and the stderr of an ended container.
func (r recording) wantEverywhere(w *workspace, got result) {
	r.t.Helper()
	r.wantOnce("stderr", got.stderr, "")
	r.wantOnce("journal", w.journal(), "")
	if r.t.Failed() {
		r.t.Logf("%.4000s", got)
	}
}

// agent is a session that calls the Bash tool once.
func agent(flags ...string) []string {
	return slices.Concat([]string{"claude", "-p", "--allowedTools=Bash"}, flags, []string{"--", "go"})
}

func TestE3PrintedText(t *testing.T) {
	parallel(t)
	rec, m := record(t), startModel(t, "testdata/standin-bash.json")
	w, whole := rec.start(image, m, agent())
	r := whole(w.wait())
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "The tool said: {\"event_type\"", "noise of Bash", "\ndone\n")
	rec.wantHandlers("", all...)
	rec.wantEverywhere(w, r)
}

// The CLI still gets what its hooks write, to the byte.
func TestE3StreamJSON(t *testing.T) {
	parallel(t)
	rec, m := record(t), startModel(t, "testdata/standin-bash.json")
	w, whole := rec.start(image, m, agent("--output-format=stream-json", "--verbose", "--include-hook-events"))
	r := whole(w.wait())
	wantCode(t, r, 0)
	rec.wantHandlers("", all...)
	rec.wantEverywhere(w, r)

	shown := make(map[string]bool)
	for line := range strings.Lines(r.stdout) {
		var hook struct{ Subtype, Stderr string }
		if err := json.Unmarshal([]byte(line), &hook); err != nil {
			t.Fatalf("%v: %.200s", err, line)
		}
		shown[hook.Stderr] = shown[hook.Stderr] || hook.Subtype == "hook_response"
	}
	for process, wrote := range rec.raw("") {
		// The CLI says nothing of SessionEnd, and the Bash tool is no hook.
		if strings.Contains(process, "SessionEnd.") || strings.Contains(process, ".Bash.") {
			continue
		}
		// Each byte that is no UTF-8 is a U+FFFD in JSON.
		if text := string([]rune(wrote)); !shown[text] {
			t.Errorf("the CLI did not get what %s wrote: %.300q", process, text)
		}
	}
}

func TestE3InATerminal(t *testing.T) {
	parallel(t)
	rec, m := record(t), startModel(t, "testdata/standin-bash.json")
	w := create(t, image, []string{"claude", "--allowedTools=Bash"}, withTerminal, rec.options(m), env("TERM=xterm"),
		host(func(h *container.HostConfig) { h.ConsoleSize = [2]uint{40, 120} }))
	w.copyIn("/home/agent", ".claude.json", firstRunDone)
	p := w.attach()
	w.start()
	p.expect("shortcuts")
	p.types("go now")
	p.expect("now")
	p.types("\r")
	p.expect("said")
	p.types("/exit\r")
	r := w.wait()
	wantCode(t, r, 0)
	rec.wantHandlers("", all...)
	rec.wantOnce("journal", w.journal(), "")
	if strings.Contains(r.stdout, "rec:SessionStart") {
		t.Errorf("the terminal shows events:\n%s", r)
	}
}

// A login shell resets PATH; its two sessions run at once.
func TestE3TwoSessionsOfALoginShell(t *testing.T) {
	parallel(t)
	rec, m := record(t), startModel(t, "testdata/standin-bash.json")
	w, whole := rec.start(image, m, []string{"bash", "-lc", strings.Join([]string{
		"claude -p --allowedTools=Bash --session-id " + sessionOne + " -- go &",
		"claude -p --allowedTools=Bash --session-id " + sessionTwo + " -- go &",
		"wait -n; code=$?; wait -n && exit $code"}, "\n")})
	r := whole(w.wait())
	wantCode(t, r, 0)
	rec.wantHandlers(sessionOne, all...)
	rec.wantHandlers(sessionTwo, all...)
	rec.wantEverywhere(w, r)
}

const (
	sessionOne = "11111111-2222-4333-8444-555555555555"
	sessionTwo = "22222222-3333-4444-8555-666666666666"
)

// As an orchestrator does that keeps the container: by way of the shim and of
// agent-init exec, at the same time.
func TestE3DockerExec(t *testing.T) {
	parallel(t)
	rec, m := record(t), startModel(t, "testdata/standin-bash.json")
	w, whole := rec.start(image, m, []string{"sleep", "infinity"})
	w.await(`"event_type":"workspace_ready"`)
	shim := make(chan result)
	go func() { shim <- w.exec(agent("--session-id", sessionOne)...) }()
	byExec := w.exec(append([]string{"agent-init", "exec", "--"}, agent("--session-id", sessionTwo)...)...)
	byShim := <-shim
	for session, r := range map[string]result{sessionOne: byShim, sessionTwo: byExec} {
		wantCode(t, r, 0)
		wantIn(t, r.stdout, "The tool said: ")
		rec.wantHandlers(session, all...)
		if strings.Contains(r.stderr, "workspace_ready") {
			t.Errorf("a second boot:\n%.2000s", r)
		}
	}
	rec.wantOnce("stderr of agent-init exec", byExec.stderr, sessionTwo)
	read := w.exec("agent-init", "events", "--format", "json")
	wantCode(t, read, 0)
	rec.wantOnce("agent-init events", read.stdout, "")
	r := whole(w.stop())
	wantCode(t, r, 143)
	rec.wantOnce("journal", w.journal(), "")
	// The shim becomes the CLI, whose events are the workspace's.
	rec.wantOnce("stderr of the container", r.stderr, sessionOne)
}

// The CLI gives a SessionEnd hook 1.5 s where nobody asks for more.
func TestE3StopInTheMiddleOfATurn(t *testing.T) {
	parallel(t)
	rec, m := record(t), startModel(t, "testdata/standin-bash-hold.json")
	w, whole := rec.start(image, m, agent("--output-format=stream-json", "--verbose"), env("RECORDER_LINGER=3"))
	w.await(`done","is_error":false`)
	r := whole(w.stop())
	wantCode(t, r, 143)
	w.wantNoKill()
	rec.wantHandlers("", slices.DeleteFunc(slices.Clone(all), func(name string) bool { return strings.HasSuffix(name, "Stop") })...)
	rec.wantEverywhere(w, r)
	for process, wrote := range rec.raw("") {
		if strings.Contains(process, ".SessionEnd.") && len(recordedLines(wrote)) != 2 {
			t.Errorf("the slow SessionEnd hook was cut off: %q", wrote)
		}
	}
}

// A git hook's stderr is the Bash tool's; so is that of a child that goes on when
// the command has ended, and that of a command in the background.
func TestE3GitHookAndChildOfAToolCall(t *testing.T) {
	parallel(t)
	rec, m := record(t), startModel(t, "testdata/standin-git.json")
	w, whole := rec.start(image, m, agent())
	r := whole(w.wait())
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "noise of GitHook", "done", "; written")
	rec.wantHandlers("", append([]string{"GitHook", "Background", "InBackground"}, slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == "Bash" })...)...)
	rec.wantEverywhere(w, r)
}

// firstRunDone answers what a first run in a terminal asks: theme, key and trust.
const firstRunDone = `{"hasCompletedOnboarding": true,
	"customApiKeyResponses": {"approved": ["and-in-without-a-key"]},
	"projects": {"/workspace": {"hasTrustDialogAccepted": true}}}`

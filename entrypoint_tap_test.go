package entrypoint_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"agent-init/internal/standin"
)

// A prefix program of the user's is called, and the events arrive as well.
func TestE3PrefixOfTheUsers(t *testing.T) {
	docker(t)
	none := env()
	for name, test := range map[string]struct {
		set   option
		flags []string
	}{
		"in the environment":      {env("CLAUDE_CODE_SHELL_PREFIX=/prefix/prefix"), nil},
		"in the project settings": {bind(t, "testdata/settings/prefix.json", "/workspace/.claude/settings.json"), nil},
		"in settings given":       {none, []string{"--settings", "/settings/prefix.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			rec, m := record(t), startModel(t, "testdata/standin-bash.json")
			w, whole := rec.start(image, m, agent(test.flags...), bind(t, "testdata/prefix", "/prefix"), bind(t, "testdata/settings", "/settings"), test.set)
			r := whole(w.wait())
			wantCode(t, r, 0)
			wantIn(t, r.stdout, "noise of Bash", "\ndone\n")
			rec.wantHandlers("", all...)
			rec.wantEverywhere(w, r)
			noted, err := os.ReadFile(filepath.Join(rec.dir, "prefix"))
			if err != nil {
				t.Fatal("the prefix was not called: ", err)
			}
			for _, part := range []string{"plain.sh\" SessionStart\n", "emitter.py\" EmitterPreToolUse\n", "plain.sh Bash </dev/null"} {
				calls := 0
				for line := range strings.Lines(string(noted)) {
					if strings.HasPrefix(line, "1: ") && strings.Contains(line, part) {
						calls++
					}
				}
				if calls != 1 {
					t.Errorf("%d calls with one argument that holds %q:\n%s", calls, part, noted)
				}
			}
		})
	}
}

func TestE3SettingsThatHideEventsAreReported(t *testing.T) {
	docker(t)
	for file, word := range map[string]string{"off.json": "disableAllHooks", "exec-form.json": `"args"`} {
		t.Run(file, func(t *testing.T) {
			parallel(t)
			r := run(t, []string{"claude", "--version"}, bind(t, "testdata/settings/"+file, "/workspace/.claude/settings.json"))
			wantCode(t, r, 0)
			wantWarning(t, r, "/workspace/.claude/settings.json:1:", word)
		})
	}
}

// A hook of a settings file's. The CLI gets what it wrote, everybody else without
// the secret.
func TestE3B1SecretInAnEvent(t *testing.T) {
	parallel(t)
	const secret = "kept-3f9a81c27d55"
	m := startModel(t, "")
	w := start(t, []string{"claude", "-p", "--output-format=stream-json", "--verbose", "--", "go"}, m.talk(), env("STOCK_TOKEN="+secret),
		bind(t, "testdata/settings/leak.json", "/workspace/.claude/settings.json"))
	r := w.wait()
	wantCode(t, r, 0)
	wantIn(t, r.stdout, `\"value\": \"`+secret+`\"}\n`)
	for where, text := range map[string]string{"stderr": r.stderr, "journal": w.journal()} {
		if n := strings.Count(text, `{"event_type": "leak", "value": "`); n != 1 || strings.Contains(text, secret) {
			t.Errorf("%s has the event %d times, or the secret:\n%s", where, n, text)
		}
	}
}

// Without a directory for the tap all else works, and boot says so.
func TestE3NowhereToWrite(t *testing.T) {
	parallel(t)
	rec, m := record(t), startModel(t, "testdata/standin-bash.json")
	nothing := t.TempDir()
	w, whole := rec.start(image, m, agent(), bind(t, nothing, "/run/agentic"), bind(t, nothing, "/tmp/.agentic-1000"))
	r := whole(w.wait())
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "The tool said: ", "noise of Bash", "\ndone\n")
	rec.wantHandlers("", all...)
	wantWarning(t, r, "events")
}

// Hooks and tools go on without the socket, and what they had sent is there.
func TestE3SocketIsGone(t *testing.T) {
	parallel(t)
	rec, m := record(t), startModel(t, "testdata/standin-socket.json")
	w, whole := rec.start(image, m, agent())
	r := whole(w.wait())
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "The tools said: ", "agent-tap", "noise of Bash", "\ndone\n")
	rec.wantHandlers("", all...)
	journal := w.journal()
	for process, wrote := range rec.raw("") {
		if name := strings.Split(process, ".")[1]; name == "SessionStart" || name == "UserPromptSubmit" {
			for _, line := range recordedLines(wrote) {
				if strings.Count(journal, line+"\n") != 1 {
					t.Errorf("an event of %s is not in the journal: %s", process, line)
				}
			}
		}
	}
}

// The CLI in a Bash tool call of the CLI: it gets plugins by way of the shim, and
// its events are not taken for the outer session's too.
func TestE3SessionWithinAToolCall(t *testing.T) {
	parallel(t)
	rec, m := record(t), startModel(t, "testdata/standin-nested.json")
	w, whole := rec.start(image, m, agent("--session-id", sessionOne), bind(t, "testdata/probe", "/probe"))
	r := whole(w.wait())
	wantCode(t, r, 0)
	rec.wantHandlers(sessionOne, slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == "Bash" })...)
	rec.wantHandlers(sessionTwo, all...)
	rec.wantEverywhere(w, r)
	server, err := os.ReadFile(filepath.Join(rec.dir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	wantIn(t, string(server), "\nparents: ['claude']\n", `['two words', 'it\'s "quoted" $HOME `)
}

// fromImage takes a file out of an image.
func fromImage(t *testing.T, from, path string) string {
	t.Helper()
	w := create(t, from, []string{"none"})
	archive, _, err := w.CopyFromContainer(w.ctx, w.id, path)
	w.must(err)
	defer archive.Close()
	r := tar.NewReader(archive)
	_, err = r.Next()
	w.must(err)
	target := filepath.Join(t.TempDir(), filepath.Base(path))
	out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o755)
	w.must(err)
	_, err = io.Copy(out, r)
	w.must(errors.Join(err, out.Close()))
	return target
}

// The binary and the CLI in an image that knows neither shim nor plugins.
func TestE3ImageWithoutTheShim(t *testing.T) {
	parallel(t)
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	rec, m := record(t), startModel(t, "testdata/standin-bash.json")
	w, whole := rec.start(baseArgument.FindStringSubmatch(string(dockerfile))[1], m,
		bash(strings.Join(agent(), " ")+"; exit $?"), entrypoint("/agent-init"), env("IS_SANDBOX=1"),
		bind(t, fromImage(t, binaryImage, "/agent-init"), "/agent-init"),
		bind(t, fromImage(t, image, "/opt/agentic/libexec/claude"), "/usr/local/bin/claude"))
	r := whole(w.wait())
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "The tool said: ", "\ndone\n")
	// Python and its emitter are not in the image.
	ran := rec.raw("")
	for _, name := range append([]string{"ArgsPreToolUse", "ArgsSessionEnd"}, inShell...) {
		if !slices.ContainsFunc(keys(ran), func(process string) bool { return strings.Contains(process, "."+name+".") }) {
			t.Errorf("%s did not run, only %q", name, keys(ran))
		}
	}
	rec.wantEverywhere(w, r)
	wantWarning(t, r, "login shell")
}

func keys(m map[string]string) (all []string) {
	for key := range m {
		all = append(all, key)
	}
	return all
}

// probed is what a session with testdata/probe showed.
type probed struct {
	result
	records map[string]string
	answers []standin.ToolResult
	took    time.Duration
}

// added are the lines of records that only agent-init's environment has.
var added = regexp.MustCompile(`(?m)^env (AGENTIC_|KAIRO_|CLAUDE_CODE_SHELL_PREFIX=|CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS=).*\n`)

// varying differs from one session to the next.
var varying = regexp.MustCompile(`"prompt_id":"[^"]*"|"tool_use_id":"[^"]*"|"duration_ms":[0-9]+`)

// ofTapped are the two differences of a hook: with any prefix the CLI's own shell
// stays above the one that runs the command, and a pipe takes its errors.
var ofTapped = strings.NewReplacer(
	"parents: ['sh', 'sh', 'claude']\n", "parents: ['sh', 'claude']\n",
	"2: 'pipe 1 '}", "2: 'socket 2 '}")

func probe(t *testing.T, m model, prompt string, options ...option) (p probed) {
	t.Helper()
	rec := record(t)
	w := start(t, []string{"claude", "--plugin-dir=/probe", "--mcp-config=/probe/mcp.json", "-p", "--session-id=" + sessionOne,
		"--allowedTools=Bash,mcp__probe__ask", "--", prompt},
		append(options, m.talk(), rec.keep(), bind(t, "testdata/probe", "/probe"))...)
	p.result = w.wait()
	wantCode(t, p.result, 0)
	ended, err := w.ContainerInspect(w.ctx, w.id)
	w.must(err)
	begin, err := time.Parse(time.RFC3339Nano, ended.State.StartedAt)
	w.must(err)
	end, err := time.Parse(time.RFC3339Nano, ended.State.FinishedAt)
	w.must(err)
	p.took = end.Sub(begin)

	p.records = make(map[string]string)
	for _, name := range []string{"PreToolUse", "PostToolUse", "bash", "server"} {
		data, err := os.ReadFile(filepath.Join(rec.dir, name))
		w.must(err)
		text := varying.ReplaceAllString(added.ReplaceAllString(string(data), ""), "...")
		if strings.HasSuffix(name, "ToolUse") {
			text = ofTapped.Replace(text)
		}
		p.records[name] = text
	}
	for _, request := range m.requests() {
		if request.Prompt == prompt {
			p.answers = request.ToolResults
			for i := range p.answers {
				p.answers[i].ToolUseID = ""
			}
		}
	}
	return p
}

// A hook, a Bash tool call and an MCP server are given the same by the CLI alone,
// and the model is told the same of them.
func TestE3SameAsWithoutTheTap(t *testing.T) {
	t.Parallel()
	m := startModel(t, "testdata/standin-probe.json")
	var bare, tapped probed
	t.Run("sessions", func(t *testing.T) {
		t.Run("bare", func(t *testing.T) {
			parallel(t)
			bare = probe(t, m, "go bare", func(c *container.Config, _ *container.HostConfig) {
				c.Entrypoint, c.Cmd = []string{"/opt/agentic/libexec/claude"}, c.Cmd[1:]
			})
		})
		t.Run("tapped", func(t *testing.T) {
			parallel(t)
			tapped = probe(t, m, "go tapped", env("AGENTIC_PLUGINS_DIR=/repos"))
		})
	})
	if bare.records == nil || tapped.records == nil {
		t.FailNow()
	}
	for name, want := range bare.records {
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(tapped.records[name], "\n")); diff != "" {
			t.Errorf("%s (-bare +tapped):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(bare.answers, tapped.answers); diff != "" || len(bare.answers) != 4 {
		t.Errorf("tool results (-bare +tapped):\n%s", diff)
	}
	if tapped.stdout != bare.stdout {
		t.Errorf("stdout is %q, not %q", tapped.stdout, bare.stdout)
	}
	// What the tap sees on the way, the blocked call's reason among it.
	wantIn(t, tapped.stderr, `{"event_type": "security_decision", "decision": "block"}`+"\n")
	for _, number := range []string{"1", "40"} {
		if n := strings.Count(tapped.stderr, `{"event_type": "counted", "number": `+number+"}\n"); n != 1 {
			t.Errorf("event %s of the Bash tool arrived %d times", number, n)
		}
	}
	// An MCP server that does not get the CLI's signals outlives it by seconds.
	if strings.Contains(tapped.stderr, "orphans_ended") {
		t.Errorf("the CLI left something behind:\n%s", tapped.stderr)
	}
	if tapped.took > bare.took+3*time.Second {
		t.Errorf("the session took %v, and %v without agent-init", tapped.took, bare.took)
	}
}

// A workspace is one user's. Another one who types the CLI's name, root too, is
// told what it does not get.
func TestP4AnotherUserIsToldWhatItMisses(t *testing.T) {
	parallel(t)
	w := start(t, []string{"sleep", "infinity"})
	w.await(`"event_type":"agent_started"`)
	for _, user := range []string{"0", "1234"} {
		r := w.execAs(user, "claude", "--version")
		wantCode(t, r, 0)
		wantIn(t, r.stderr, "/run/agentic", "uid 1000", "docker exec -u 1000", "without plugins")
		r = w.execAs(user, "agent-init", "exec", "true")
		wantCode(t, r, 78)
		wantIn(t, r.stderr, "/run/agentic", "uid 1000", "docker exec -u 1000")
		r = w.execAs(user, "agent-init", "status")
		wantCode(t, r, 1)
		wantIn(t, r.stderr, "/run/agentic", "uid 1000")
	}
	wantCode(t, w.stop(), 143)
}

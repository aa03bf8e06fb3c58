package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-init/internal/clitest"
	"agent-init/internal/standin"
)

const (
	workspace = "plugins/workspace"
	emit      = workspace + "/hooks/handlers/emit.sh"
)

// agentInit builds agent-init and returns the directory that it is in.
func agentInit(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "agent-init"), "../cmd/agent-init")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// handle runs the plugin's handler and returns what it wrote to stderr; it must
// exit with 0 and keep stdout empty.
func handle(t *testing.T, path, stdin string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", emit)
	cmd.Env = []string{"PATH=" + path}
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%.200s: %v\n%s", stdin, err, stderr.String())
	}
	if stdout.Len() > 0 {
		t.Errorf("%.200s: stdout %q", stdin, stdout.String())
	}
	return stderr.String()
}

var timestamp = regexp.MustCompile(`"timestamp": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00"`)

// TestE7HandlerWritesWhatThePythonEmitterWrites compares byte for byte, time and
// metadata aside.
func TestE7HandlerWritesWhatThePythonEmitterWrites(t *testing.T) {
	path := agentInit(t) + ":/usr/bin:/bin"
	long := strings.Repeat("ä🔑", 700)
	for _, hook := range []map[string]any{
		{"hook_event_name": "SessionStart", "source": "resume"},
		{"hook_event_name": "SessionStart"},
		{"hook_event_name": "SessionEnd", "reason": "other"},
		{"hook_event_name": "UserPromptSubmit", "prompt": long},
		{"hook_event_name": "UserPromptSubmit", "prompt": "\x00\x01\x1f\b\f\n\r\t\"\\/\x7f\u0080\u2028<&>"},
		{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1", "tool_input": "text"},
		{"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t1", "tool_response": long},
		{"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t1", "tool_response": ""},
		{"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_use_id": "t1", "error": "exit 1"},
		{"hook_event_name": "Notification", "message": "m"},
		{"hook_event_name": "SubagentStart", "agent_id": "a", "agent_type": "Plan"},
		{"hook_event_name": "SubagentStop", "agent_id": "a"},
		{"hook_event_name": "Stop"},
		{"hook_event_name": "PreCompact", "trigger": "auto"},
		{"hook_event_name": "PermissionRequest", "tool_name": "Bash"},
		{"hook_event_name": "TeammateIdle", "teammate_name": "x"},
		{"hook_event_name": "TaskCompleted", "task_id": "7"},
		{"hook_event_name": "Unknown"},
	} {
		hook["session_id"] = "s1"
		input := toJSON(t, hook)
		_, want := python(t, true, observe, input)
		want = strings.TrimSuffix(want, ", \"metadata\": null}\n")
		if !strings.HasSuffix(want, "\n") && want != "" {
			want += "}\n"
		}
		got := handle(t, path, input)
		if timestamp.MatchString(got) != (got != "") {
			t.Errorf("no timestamp: %s", got)
		}
		if d := cmp.Diff(timestamp.ReplaceAllString(want, "T"), timestamp.ReplaceAllString(got, "T")); d != "" {
			t.Errorf("%s: %s", hook["hook_event_name"], d)
		}
	}
}

func TestI3HandlerSaysThatAgentInitIsNotThere(t *testing.T) {
	want := "workspace: no event for this hook: agent-init is not installed\n"
	if got := handle(t, "/usr/bin:/bin", `{"hook_event_name":"Stop"}`); got != want {
		t.Errorf("got %q", got)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// session runs the real agent CLI with the workspace plugin through a few tool
// calls, and returns the payloads that its handlers got and what they wrote.
func session(t *testing.T, path string) (payloads []map[string]json.RawMessage, stderr string) {
	t.Helper()
	bash := func(command string) standin.ToolUse {
		return standin.ToolUse{Name: "Bash", Input: map[string]any{"command": command, "description": "some <work> for ä"}}
	}
	s, err := standin.Start(standin.Script{Turns: []standin.Turn{
		{Text: "a tool", ToolUses: []standin.ToolUse{bash("echo $((20 + 3))")}},
		{ToolUses: []standin.ToolUse{bash("echo broken >&2; exit 3")}},
		{ToolUses: []standin.ToolUse{{Name: "Agent", Input: map[string]any{"description": "d", "prompt": "p", "subagent_type": "general-purpose"}}}},
		{Text: "done"},
	}}, "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	home := t.TempDir()
	prefix := filepath.Join(home, "prefix")
	script := "#!/bin/bash\ncase $1 in\n*emit.sh*) tee -a " + home + "/payloads | sh -c \"$1\" 2>>" + home + "/stderr ;;\n*) exec bash -c \"$1\" ;;\nesac\n"
	if err := os.WriteFile(prefix, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), clitest.Path(t), "--plugin-dir="+absolute(t, workspace), "--allowedTools=Bash,Agent", "-p", "count, please")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + path, "ANTHROPIC_API_KEY=any", "ANTHROPIC_BASE_URL=" + s.URL(),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_SHELL_PREFIX=" + prefix}
	if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != "done" {
		t.Fatalf("the CLI printed %q: %v", out, err)
	}
	text := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for dec := json.NewDecoder(bytes.NewReader(text("payloads"))); ; {
		var p map[string]json.RawMessage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return payloads, string(text("stderr"))
		} else if err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, p)
	}
}

// wanted is the event for a payload of the real CLI; each field that it names
// must be there.
func wanted(t *testing.T, p map[string]json.RawMessage) event {
	t.Helper()
	field := func(name string) (value any) {
		if err := json.Unmarshal(p[name], &value); err != nil {
			t.Errorf("%s of %s: %v", name, p["hook_event_name"], err)
		}
		return value
	}
	preview := func(name string) string {
		text, isString := field(name).(string)
		if !isString {
			var compact bytes.Buffer
			if err := json.Compact(&compact, p[name]); err != nil {
				t.Error(err)
			}
			text = compact.String()
		}
		characters := []rune(text)
		return string(characters[:min(500, len(characters))])
	}
	e := event{Provider: "claude"}
	e.SessionID, _ = field("session_id").(string)
	switch name := field("hook_event_name"); name {
	case "SessionStart":
		e.EventType, e.Context = "session_started", map[string]any{"source": field("source")}
	case "SessionEnd":
		e.EventType, e.Context = "session_completed", map[string]any{"reason": field("reason")}
	case "UserPromptSubmit":
		e.EventType, e.Context = "user_prompt_submitted", map[string]any{"prompt_preview": field("prompt")}
	case "PreToolUse":
		e.EventType, e.Context = "tool_execution_started", map[string]any{"tool_name": field("tool_name"), "tool_use_id": field("tool_use_id"), "input_preview": preview("tool_input")}
	case "PostToolUse":
		e.EventType, e.Context = "tool_execution_completed", map[string]any{"tool_name": field("tool_name"), "tool_use_id": field("tool_use_id"), "success": true,
			"duration_ms": field("duration_ms"), "output_preview": preview("tool_response")}
	case "PostToolUseFailure":
		e.EventType, e.Context = "tool_execution_failed", map[string]any{"tool_name": field("tool_name"), "tool_use_id": field("tool_use_id"), "error": field("error")}
	case "SubagentStart":
		e.EventType, e.Context = "subagent_started", map[string]any{"subagent_id": field("agent_id"), "agent_type": field("agent_type")}
	case "SubagentStop":
		e.EventType, e.Context = "subagent_stopped", map[string]any{"subagent_id": field("agent_id"), "reason": "normal"}
	case "Stop":
		e.EventType, e.Context = "agent_stopped", map[string]any{"reason": "normal"}
	default:
		t.Errorf("unexpected hook %v", name)
	}
	return e
}

func TestE7RealSessionGivesOneEventAHook(t *testing.T) {
	payloads, stderr := session(t, agentInit(t)+":"+os.Getenv("PATH"))
	var want, got []event
	var kinds []string
	for _, p := range payloads {
		want = append(want, wanted(t, p))
	}
	for line := range strings.Lines(stderr) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		e.Timestamp = ""
		got, kinds = append(got, e), append(kinds, e.EventType)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, kind := range []string{"session_started", "user_prompt_submitted", "tool_execution_started", "tool_execution_completed",
		"tool_execution_failed", "subagent_started", "subagent_stopped", "agent_stopped", "session_completed"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("no %s in %q", kind, kinds)
		}
	}
}

func TestI3RealSessionWithoutAgentInit(t *testing.T) {
	payloads, stderr := session(t, "/usr/bin:/bin")
	if n := strings.Count(stderr, "agent-init is not installed\n"); n == 0 || n < len(payloads) {
		t.Errorf("%d of %d hooks said so:\n%s", n, len(payloads), stderr)
	}
}

// BenchmarkE7Handlers compares emit, bare and as the plugin calls it, with the
// Python handler that does the same.
func BenchmarkE7Handlers(b *testing.B) {
	dir := agentInit(b)
	input := `{"session_id":"s1","hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"t1","tool_response":"` + strings.Repeat("x", 4000) + `"}`
	for _, c := range []struct {
		name string
		argv []string
	}{
		{"emit", []string{filepath.Join(dir, "agent-init"), "emit"}},
		{"plugin", []string{"/bin/sh", "-c", `sh "` + emit + `"`}},
		{"python", []string{"/bin/sh", "-c", `/usr/bin/python3 "` + observe + `"`}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command(c.argv[0], c.argv[1:]...)
				cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1"}
				cmd.Stdin = strings.NewReader(input)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Run(); err != nil || !strings.Contains(stderr.String(), "tool_execution_completed") {
					b.Fatalf("%v: %s", err, stderr.String())
				}
			}
		})
	}
}

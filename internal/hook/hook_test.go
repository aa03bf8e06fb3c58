package hook

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var at = time.Date(2026, 11, 21, 8, 45, 47, 785947123, time.FixedZone("", 3600))

// line is the event line for an input, "" for no event.
func line(t *testing.T, input string) string {
	t.Helper()
	p, bad := Read(strings.NewReader(input))
	if bad != nil {
		t.Fatalf("%.200s: %v", input, bad)
	}
	e := p.Event(at)
	if e == nil {
		return ""
	}
	return string(AppendLine(nil, e))
}

func TestE7EachHookHasItsEvent(t *testing.T) {
	for _, c := range []struct{ hook, fields, kind, context string }{
		{"SessionStart", `"source":"resume"`, "session_started", `"source": "resume"`},
		{"SessionStart", `"source":null`, "session_started", `"source": "startup"`},
		{"SessionEnd", `"reason":"other"`, "session_completed", `"reason": "other"`},
		{"SessionEnd", `"duration_ms":12.5`, "session_completed", `"reason": "normal", "duration_ms": 12.5`},
		{"UserPromptSubmit", `"prompt":"hi \"you\"\n"`, "user_prompt_submitted", `"prompt_preview": "hi \"you\"\n"`},
		{"PreToolUse", `"tool_name":"Bash","tool_input":{ "command" : "ls", "n": [1, 2.50, {}, [], null, true, "<&>"] },"tool_use_id":"t1"`,
			"tool_execution_started", `"tool_name": "Bash", "tool_use_id": "t1", "input_preview": "{\"command\":\"ls\",\"n\":[1,2.50,{},[],null,true,\"<&>\"]}"`},
		{"PreToolUse", `"tool_name":"Bash","tool_input":"as it is"`, "tool_execution_started", `"tool_name": "Bash", "tool_use_id": "", "input_preview": "as it is"`},
		{"PostToolUse", `"tool_name":"Bash","tool_use_id":"t1","tool_response":{"stdout":"23"},"duration_ms":41`,
			"tool_execution_completed", `"tool_name": "Bash", "tool_use_id": "t1", "success": true, "duration_ms": 41, "output_preview": "{\"stdout\":\"23\"}"`},
		{"PostToolUse", `"tool_name":"Bash","tool_use_id":"t1","tool_response":"","duration_ms":"41"`,
			"tool_execution_completed", `"tool_name": "Bash", "tool_use_id": "t1", "success": true`},
		{"PostToolUseFailure", `"tool_name":"Bash","tool_use_id":"t1","error":"Exit code 1"`,
			"tool_execution_failed", `"tool_name": "Bash", "tool_use_id": "t1", "error": "Exit code 1"`},
		{"PermissionRequest", `"tool_name":"Write"`, "permission_requested", `"tool_name": "Write", "permission_type": "tool_use"`},
		{"PermissionDenied", `"tool_name":"Bash","tool_use_id":"t1","reason":"no"`, "security_decision", `"tool_name": "Bash", "decision": "block", "reason": "no", "tool_use_id": "t1"`},
		{"Notification", `"message":"m","notification_type":"idle"`, "system_notification", `"message": "m", "level": "info"`},
		{"SubagentStart", `"agent_id":"a","agent_type":"Plan"`, "subagent_started", `"subagent_id": "a", "agent_type": "Plan"`},
		{"SubagentStop", `"agent_id":"a"`, "subagent_stopped", `"subagent_id": "a", "reason": "normal"`},
		{"Stop", `"stop_hook_active":false`, "agent_stopped", `"reason": "normal"`},
		{"StopFailure", `"error":"rate_limit"`, "agent_stopped", `"reason": "rate_limit"`},
		{"PreCompact", `"trigger":"auto"`, "context_compacted", `"trigger": "auto"`},
		{"TeammateIdle", `"teammate_name":"x"`, "teammate_idle", `"teammate_id": "x"`},
		{"TaskCompleted", `"task_id":"7"`, "task_completed", `"task_id": "7"`},
		// The name may come last, and the last of two counts.
		{"Stop", `"hook_event_name":"SessionEnd","source":"clear","hook_event_name":"SessionStart"`, "session_started", `"source": "clear"`},
	} {
		want := `{"event_type": "` + c.kind + `", "timestamp": "2026-11-21T07:45:47.785947+00:00", "session_id": "s1", "provider": "claude", "context": {` + c.context + "}}\n"
		if got := line(t, `{"hook_event_name":"`+c.hook+`","session_id":"s1",`+c.fields+"}\n"); got != want {
			t.Errorf("%s %s:\ngot  %swant %s", c.hook, c.fields, got, want)
		}
	}
}

func TestE7UnknownHookHasNoEvent(t *testing.T) {
	for _, input := range []string{`{"hook_event_name":"MessageDisplay","delta":"x"}`, `{"hook_event_name":"Later"}`, `{"hook_event_name":7}`} {
		if got := line(t, input); got != "" {
			t.Errorf("%s: %s", input, got)
		}
	}
}

// previewOf is the text of one context member.
func previewOf(t *testing.T, name, input string) string {
	t.Helper()
	var e struct{ Context map[string]any }
	got := line(t, input)
	if err := json.Unmarshal([]byte(got), &e); err != nil {
		t.Fatalf("%.300q: %v", got, err)
	}
	return e.Context[name].(string)
}

func TestE7PreviewsAreCutInCharacters(t *testing.T) {
	for _, c := range []string{"a", "ä", "🔑"} {
		long := strings.Repeat(c, 900_000/len(c))
		escaped := ""
		for _, unit := range utf16Of(c) {
			escaped += fmt.Sprintf(`\u%04x`, unit)
		}
		for _, text := range []string{long, strings.Repeat(escaped, 900_000/len(escaped))} {
			if got := previewOf(t, "prompt_preview", `{"hook_event_name":"UserPromptSubmit","prompt":"`+text+`"}`); got != strings.Repeat(c, 200) {
				t.Errorf("%s: prompt of %d characters: %.50q", c, utf8.RuneCountInString(got), got)
			}
			if got := previewOf(t, "output_preview", `{"hook_event_name":"PostToolUse","tool_response":"`+text+`"}`); got != strings.Repeat(c, 500) {
				t.Errorf("%s: output of %d characters: %.50q", c, utf8.RuneCountInString(got), got)
			}
			if got := previewOf(t, "input_preview", `{"hook_event_name":"PreToolUse","tool_input":{"x":"`+text+`"}}`); got != `{"x":"`+strings.Repeat(c, 494) {
				t.Errorf("%s: input of %d characters: %.50q", c, utf8.RuneCountInString(got), got)
			}
			if got := previewOf(t, "error", `{"hook_event_name":"PostToolUseFailure","error":"`+text+`"}`); got != strings.Repeat(c, maxText) {
				t.Errorf("%s: error of %d characters: %.50q", c, utf8.RuneCountInString(got), got)
			}
		}
	}
	if got := previewOf(t, "prompt_preview", `{"hook_event_name":"UserPromptSubmit","prompt":"`+strings.Repeat("ä", 200)+`"}`); got != strings.Repeat("ä", 200) {
		t.Errorf("a prompt of 200 characters is cut: %q", got)
	}
}

func utf16Of(s string) []rune {
	if r := []rune(s)[0]; r > 0xffff {
		return []rune{0xd800 + (r-0x10000)>>10, 0xdc00 + (r-0x10000)&0x3ff}
	}
	return []rune(s)
}

func TestE7OddStrings(t *testing.T) {
	for in, want := range map[string]string{
		`\ud83d alone`:            "\ufffd alone",
		"\xff\xfe bytes":          "\ufffd\ufffd bytes",
		`\u0000\u007f\u2028<&>\/`: "\x00\x7f\u2028<&>/",
	} {
		got := previewOf(t, "prompt_preview", `{"hook_event_name":"UserPromptSubmit","prompt":"`+in+`"}`)
		if got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
	raw := line(t, "{\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"\x7fä🔑\\u0001\"}")
	if !strings.Contains(raw, `"\u007f\u00e4\ud83d\udd11\u0001"`) {
		t.Errorf("not as Python writes it: %s", raw)
	}
}

func TestE7BadInputIsOneFinding(t *testing.T) {
	secret := "hunter2hunter2"
	for input, why := range map[string]string{
		"":                                    "it is empty",
		" \n":                                 "it is empty",
		"{":                                   "it ends in the middle of a value",
		`{"hook_event_name":"Stop"`:           "it ends in the middle of a value",
		`{"hook_event_name":"Sto`:             "it ends in the middle of a value",
		`[]`:                                  "it is no JSON object",
		`null`:                                "it is no JSON object",
		`{}`:                                  "it has no hook_event_name",
		`{"hook_event_name":null}`:            "it has no hook_event_name",
		`{"hook_event_name":"Stop"} x`:        "there is more after its end",
		`{"hook_event_name":"Stop"}{}`:        "there is more after its end",
		"\xef\xbb\xbf{}":                      "invalid character",
		`{"` + secret + `":{"hunter2":[1,]}}`: "invalid character",
		`{"a":` + strings.Repeat("1", 10<<20) + `}`:       "a number in it is too long",
		`{"a":` + strings.Repeat("[", 20000) + `}`:        "depth",
		`{"hook_event_name":"Stop","a":"` + "\n" + `"}`:   "invalid character",
		`{"hook_event_name":"Stop","tool_input":{"a" 1}}`: "invalid character",
	} {
		src := strings.NewReader(input)
		_, bad := Read(src)
		if bad == nil || !strings.Contains(bad.Why, why) {
			t.Errorf("%.60q: got %v, want %s", input, bad, why)
			continue
		}
		if text := bad.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, "\n") || !strings.HasPrefix(text, "cannot read hook input: ") {
			t.Errorf("%.60q: %q", input, text)
		}
		if src.Len() != 0 {
			t.Errorf("%.60q: %d bytes are left", input, src.Len())
		}
	}
}

// repeated is text again and again, at least left bytes of it.
type repeated struct {
	text string
	left int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n+len(r.text) <= len(p) && r.left > 0 {
		n += copy(p[n:], r.text)
		r.left -= len(r.text)
	}
	return n, nil
}

func TestE7HugeInputTakesLittleMemory(t *testing.T) {
	for name, c := range map[string]struct {
		begin, fill, end string
		size             int
	}{
		"string":  {`"`, "some text, a line\\n and a key 🔑 ", `"`, 64 << 20},
		"strings": {`[""`, `,"` + strings.Repeat("x", 8<<10) + `"`, `]`, 64 << 20},
		// Each token costs its time, with the race detector most of all.
		"object": {`{"x":1`, `,"some name":[true,"some text"]`, `}`, 8 << 20},
		"nested": {`[0`, `,{"a":{"b":["c"]}}`, `]`, 8 << 20},
		"blanks": {`[`, "    \n", `]`, 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			in := io.MultiReader(strings.NewReader(`{"hook_event_name":"PostToolUse","tool_response":`+c.begin), &repeated{c.fill, c.size},
				strings.NewReader(c.end+`,"tool_use_id":"t1"}`))
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, bad := Read(in)
			runtime.ReadMemStats(&after)
			if bad != nil || p.text("tool_use_id", "") != "t1" {
				t.Fatalf("%v %v", bad, p.text("tool_use_id", ""))
			}
			if n := utf8.RuneCountInString(p.text("tool_response", "")); n != maxPreview && name != "blanks" {
				t.Errorf("a preview of %d characters", n)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
				t.Errorf("%d MiB allocated", grown>>20)
			}
		})
	}
}

// FuzzRead compares with encoding/json: what that accepts gives an event, one
// line of JSON, with the same text.
func FuzzRead(f *testing.F) {
	f.Add(`{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls","a":[1,{"b":null}]},"tool_use_id":"t"}`)
	f.Add(`{"hook_event_name":"UserPromptSubmit","prompt":"\ud83d\udd11\u00e4\\\"\/"}`)
	f.Add("{\"hook_event_name\":\"Stop\",\"x\":\"\xff\"} ")
	f.Add(`{"hook_event_name":"PostToolUse","tool_response":[-0.5e+7, true , {} ],"duration_ms":3}`)
	f.Fuzz(func(t *testing.T, input string) {
		p, bad := Read(strings.NewReader(input))
		var object map[string]json.RawMessage
		valid := json.Unmarshal([]byte(input), &object) == nil && object != nil
		name, named := object["hook_event_name"]
		if valid != (bad == nil) && !(valid && (!named || string(name) == "null")) {
			t.Fatalf("%q: valid %v, but %v", input, valid, bad)
		}
		if bad != nil {
			return
		}
		var prompt string
		if json.Unmarshal(object["prompt"], &prompt) == nil && object["prompt"] != nil && string(object["prompt"]) != "null" {
			if got := p.text("prompt", ""); got != cut(prompt, maxPrompt) {
				t.Fatalf("%q: prompt %q, want %q", input, got, prompt)
			}
		}
		if e := p.Event(at); e != nil {
			out := AppendLine(nil, e)
			if !json.Valid(out) || strings.Count(string(out), "\n") != 1 {
				t.Fatalf("%q: %q", input, out)
			}
		}
	})
}

func BenchmarkRead64MiB(b *testing.B) {
	for b.Loop() {
		in := io.MultiReader(strings.NewReader(`{"hook_event_name":"PostToolUse","tool_response":"`), &repeated{"some text ", 64 << 20}, strings.NewReader(`"}`))
		if _, bad := Read(in); bad != nil {
			b.Fatal(bad)
		}
	}
}

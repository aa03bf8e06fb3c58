package plugin

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
)

// tapped are options under which every reason counts.
var tapped = ViewOptions{Dir: "/run/views", TapExec: "/run/taps/run/agent-tap-exec", SessionEndTimeout: 5}

// viewOf is the view of the only plugin in a directory.
func viewOf(t *testing.T, dir string, o ViewOptions) (View, bool) {
	t.Helper()
	plugins, found := Scan(dir, Options{})
	if len(plugins) != 1 || found.Refuses() {
		t.Fatal(len(plugins), found)
	}
	v, ok, found := plugins[0].View(o)
	if len(found) != 0 {
		t.Error(texts(dir, found))
	}
	return v, ok
}

// files are a view's by their paths in it, and links as "-> target".
func layout(dir string, v View) map[string]string {
	out := map[string]string{}
	for _, f := range v.Files {
		out[strings.TrimPrefix(f.Path, v.Path+"/")] = string(f.Data)
	}
	for _, l := range v.Links {
		out[strings.TrimPrefix(l.Path, v.Path+"/")] = "-> " + strings.ReplaceAll(l.Target, dir, "DIR")
	}
	return out
}

func TestE3APluginThatNeedsNoneHasNoView(t *testing.T) {
	dir := tree(t, map[string]string{
		"p" + manifest: `{"name": "p", "description": "not for ${KAIRO_PLUGIN_ROOT}", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}`,
		"p/hooks/hooks.json": `{"description": "${KAIRO_PLUGIN_ROOT}", "hooks": {
			"SessionEnd": [{"hooks": [{"type": "command", "command": "x", "timeout": 3}, {"type": "prompt", "prompt": "y"}]}],
			"PreToolUse": [{"hooks": [{"type": "http", "url": "http://x", "args": ["a"]}]}]}}`,
	})
	if v, ok := viewOf(t, dir, tapped); ok {
		t.Errorf("%+v", v)
	}
	dir = tree(t, map[string]string{
		"p" + manifest:       `{"name": "p"}`,
		"p/hooks/hooks.json": `{"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "x", "args": []}]}]}}`,
	})
	if v, ok := viewOf(t, dir, ViewOptions{Dir: "/run/views"}); ok {
		t.Errorf("without a tap: %+v", v)
	}
}

func TestE3ExecFormHooksStartThroughTheTap(t *testing.T) {
	dir := tree(t, map[string]string{
		"p q" + manifest:                `{"name": "p", "hooks": ["./config/more.json", "./hooks/hooks.json", {"Stop": [{"hooks": [{"type": "command", "command": "c", "args": []}]}]}], "requires_env": {}}`,
		"p q/.claude-plugin/other.json": "{}",
		"p q/hooks/hooks.json": `{"x": 1.50e+1, "hooks": {
  "PreToolUse": [{"matcher": "Bash", "hooks": [
    {"type": "command", "args": [ "a\u00e9", "${CLAUDE_PLUGIN_ROOT}/y" ], "command": "${CLAUDE_PLUGIN_ROOT}\/s h.sh", "unknown": [1e2]},
    {"type": "command", "command": "shell form"}
  ]}],
  "SessionEnd": [{"hooks": [{"type": "command", "command": "x"}, {"type": "command", "command": "y", "args": ["z"], "timeout": 60}]}]}}
`,
		"p q/hooks/run.sh":      "#!/bin/sh\n",
		"p q/config/more.json":  `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"m","args":["n"]}]}]}}`,
		"p q/config/data":       "",
		"p q/skills/s/SKILL.md": "",
		"p q/.hidden":           "",
		"p q/link":              "-> ../elsewhere",
		"p q/commands/c.md":     "c",
	})
	v, ok := viewOf(t, dir, tapped)
	if !ok || v.Path != "/run/views/p q" || v.Plugin != "p" || !slices.Equal(v.Reasons, []Reason{ExecHooks, SessionEndTimeout}) {
		t.Fatalf("%v %+v", ok, v)
	}
	tap := `"/run/taps/run/agent-tap-exec"`
	want := map[string]string{
		".claude-plugin/plugin.json": `{"name": "p", "hooks": ["./config/more.json", "./hooks/hooks.json", {"Stop": [{"hooks": [{"type": "command", "command": ` + tap + `, "args": ["c"]}]}]}], "requires_env": {}}`,
		".claude-plugin/other.json":  "-> DIR/p q/.claude-plugin/other.json",
		"hooks/hooks.json": `{"x": 1.50e+1, "hooks": {
  "PreToolUse": [{"matcher": "Bash", "hooks": [
    {"type": "command", "args": ["${CLAUDE_PLUGIN_ROOT}\/s h.sh",  "a\u00e9", "${CLAUDE_PLUGIN_ROOT}/y" ], "command": ` + tap + `, "unknown": [1e2]},
    {"type": "command", "command": "shell form"}
  ]}],
  "SessionEnd": [{"hooks": [{"type": "command", "command": "x", "timeout": 5}, {"type": "command", "command": ` + tap + `, "args": ["y", "z"], "timeout": 60}]}]}}
`,
		"hooks/run.sh":     "-> DIR/p q/hooks/run.sh",
		"config/more.json": `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":` + tap + `,"args":["m", "n"]}]}]}}`,
		"config/data":      "-> DIR/p q/config/data",
		"skills":           "-> DIR/p q/skills",
		".hidden":          "-> DIR/p q/.hidden",
		"link":             "-> DIR/p q/link",
		"commands":         "-> DIR/p q/commands",
	}
	if diff := cmp.Diff(want, layout(dir, v)); diff != "" {
		t.Error(diff)
	}
}

func TestP5AKairoPluginGetsTheNamesThatTheCLIKnows(t *testing.T) {
	dir := tree(t, map[string]string{
		"k/.kairo-plugin/plugin.json": `{"name": "k", "mcpServers": ["./conf/mcp.json"], "commands": "./cmd", "hooks": {"PRE_COMPLETE": []}}`,
		"k/.kairo-plugin/readme":      "x",
		"k/hooks/hooks.json": `{"hooks": {
  "PRE_ACTING": [{"hooks": [{"type": "command", "command": "\u0024{KAIRO_PLUGIN_ROOT}/a\u00e9", "args": ["${KAIRO_PLUGIN_DATA}", "${KAIRO_OTHER}"]}]}],
  "NOTIFICATION": [], "SessionStart": [], "STOP": [],
  "PreToolUse": [{"hooks": []}] , "SESSION_START": []
}}`,
		"k/conf/mcp.json":     `{"mcpServers": {"m": {"command": "${KAIRO_PLUGIN_ROOT}/m", "env": {"P": "${KAIRO_PROJECT_DIR}"}}}}`,
		"k/.lsp.json":         `{"go": {"command": "${KAIRO_PLUGIN_ROOT}/gopls"}}`,
		"k/skills/s/SKILL.md": "run ${KAIRO_PLUGIN_ROOT}/x and $KAIRO_PLUGIN_ROOT\n",
		"k/skills/s/notes.md": "${KAIRO_PLUGIN_ROOT}",
		"k/skills/t/SKILL.md": "plain",
		"k/cmd/one.md":        "one",
		"k/cmd/sub/two.md":    "${KAIRO_PLUGIN_DATA}",
		"k/cmd/sub/link.md":   "-> two.md",
		"k/agents/a.md":       "plain",
		"k/bin/tool":          "${KAIRO_PLUGIN_ROOT}",
		"k/README.md":         "${KAIRO_PLUGIN_ROOT}",
	})
	v, ok := viewOf(t, dir, ViewOptions{Dir: "/run/views"})
	if !ok || !slices.Equal(v.Reasons, []Reason{KairoManifest, KairoNames}) {
		t.Fatalf("%v %+v", ok, v.Reasons)
	}
	want := map[string]string{
		".claude-plugin/plugin.json": `{"name": "k", "mcpServers": ["./conf/mcp.json"], "commands": "./cmd", "hooks": {"Stop": []}}`,
		".kairo-plugin":              "-> DIR/k/.kairo-plugin",
		"hooks/hooks.json": `{"hooks": {
  "PreToolUse": [{"hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/aé", "args": ["${CLAUDE_PLUGIN_DATA}", "${KAIRO_OTHER}"]}]}, {"hooks": []}],
  "Notification": [], "SessionStart": [], "STOP": []
}}`,
		"conf/mcp.json":     `{"mcpServers": {"m": {"command": "${CLAUDE_PLUGIN_ROOT}/m", "env": {"P": "${CLAUDE_PROJECT_DIR}"}}}}`,
		".lsp.json":         `{"go": {"command": "${CLAUDE_PLUGIN_ROOT}/gopls"}}`,
		"skills/s/SKILL.md": "run ${CLAUDE_PLUGIN_ROOT}/x and $KAIRO_PLUGIN_ROOT\n",
		"skills/s/notes.md": "-> DIR/k/skills/s/notes.md",
		"skills/t":          "-> DIR/k/skills/t",
		"cmd/one.md":        "one",
		"cmd/sub/two.md":    "${CLAUDE_PLUGIN_DATA}",
		"cmd/sub/link.md":   "-> DIR/k/cmd/sub/link.md",
		"agents":            "-> DIR/k/agents",
		"bin":               "-> DIR/k/bin",
		"README.md":         "-> DIR/k/README.md",
	}
	if diff := cmp.Diff(want, layout(dir, v)); diff != "" {
		t.Error(diff)
	}
}

func TestP5KairoNamesWorkInAClaudePluginToo(t *testing.T) {
	dir := tree(t, map[string]string{
		"p" + manifest:             `{"name": "p"}`,
		"p/hooks/hooks.json":       `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "${KAIRO_PLUGIN_ROOT}/x"}]}]}}`,
		"p/commands/c.md":          "${KAIRO_PLUGIN_ROOT}",
		"p/agents/a.md":            "${KAIRO_PROJECT_DIR}",
		"p/monitors/monitors.json": `[{"name": "m", "command": "${KAIRO_PLUGIN_ROOT}/m"}]`,
	})
	v, ok := viewOf(t, dir, ViewOptions{Dir: "/run/views"})
	if !ok || !slices.Equal(v.Reasons, []Reason{KairoNames}) {
		t.Fatalf("%v %+v", ok, v.Reasons)
	}
	want := map[string]string{
		".claude-plugin":         "-> DIR/p/.claude-plugin",
		"hooks/hooks.json":       `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/x"}]}]}}`,
		"commands/c.md":          "${CLAUDE_PLUGIN_ROOT}",
		"agents/a.md":            "${CLAUDE_PROJECT_DIR}",
		"monitors/monitors.json": `[{"name": "m", "command": "${CLAUDE_PLUGIN_ROOT}/m"}]`,
	}
	if diff := cmp.Diff(want, layout(dir, v)); diff != "" {
		t.Error(diff)
	}
}

// The CLI passes over symlinks in a directory of commands or agents.
func TestE3DirectoriesOfCommandsAreCopiedWhereTheyHoldARewrittenFile(t *testing.T) {
	dir := tree(t, map[string]string{
		"p" + manifest:        `{"name": "p", "commands": ["./", "./more/x.md"], "hooks": "./agents/hooks.json"}`,
		"p/agents/hooks.json": `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "m", "args": []}]}]}}`,
		"p/agents/deep/a.md":  "a",
		"p/one.md":            "one", "p/sub/two.md": "two", "p/more/x.md": "x", "p/sub/script": "s",
	})
	os.Chmod(filepath.Join(dir, "p/one.md"), 0o755)
	v, _ := viewOf(t, dir, tapped)
	got := layout(dir, v)
	delete(got, "agents/hooks.json")
	want := map[string]string{
		".claude-plugin": "-> DIR/p/.claude-plugin", "agents/deep/a.md": "a", "one.md": "one", "sub/two.md": "two", "more/x.md": "x",
		"sub/script": "-> DIR/p/sub/script",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, f := range v.Files {
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[filepath.Base(f.Path) == "one.md"]; f.Mode != want {
			t.Errorf("%s: mode %v", f.Path, f.Mode)
		}
	}
}

func TestE3AViewIsWrittenWithItsLinks(t *testing.T) {
	name := "a \"b'\n$(x)"
	dir := tree(t, map[string]string{
		name + manifest:              `{"name": "p"}`,
		name + "/hooks/hooks.json":   `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "m", "args": []}]}]}}`,
		name + "/hooks/deep/in/file": "content",
		name + "/relative":           "-> ../target",
		"target":                     "",
	})
	os.Remove(filepath.Join(dir, "target"))
	if err := os.WriteFile(filepath.Join(dir, ".target"), []byte("elsewhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(dir, name, "relative"))
	if err := os.Symlink("../.target", filepath.Join(dir, name, "relative")); err != nil {
		t.Fatal(err)
	}
	v, _ := viewOf(t, dir, ViewOptions{Dir: filepath.Join(t.TempDir(), "views"), TapExec: "/tap"})
	if err := v.Write(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"hooks/deep/in/file": "content", "relative": "elsewhere"} {
		if got, err := os.ReadFile(filepath.Join(v.Path, file)); string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	if filepath.Base(v.Path) != name {
		t.Errorf("%q", v.Path)
	}
	for _, dir := range []string{v.Path, filepath.Join(v.Path, "hooks"), filepath.Dir(v.Path)} {
		if info, err := os.Lstat(dir); err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Error(dir, info.Mode(), err)
		}
	}
	if err := v.Write(); err == nil {
		t.Error("a second view in the same place")
	}
}

func TestP1HooksFilesThatAManifestNames(t *testing.T) {
	dir := tree(t, map[string]string{
		"a" + manifest: `{"name": "a", "hooks": ["./x/h.json", "./x/h.json", "./none.json"]}`,
		"a/x/h.json":   `{"hooks": {"Stop": [], "PreToolUse": []}}`,
		"b" + manifest: `{"name": "b", "hooks": "./bad.json"}`,
		"b/bad.json":   `{"hooks": {"Stop": [],}}`,
		"c" + manifest: `{"name": "c", "hooks": ["hooks.json", "./../x.json"]}`,
	})
	plugins, found := Scan(dir, Options{})
	want := []string{
		`warning: plugin manifest DIR/a` + manifest + `:1:53: there is no hooks file "./none.json"`,
		`error: cannot read hooks file DIR/b/bad.json:1:22: there is a comma before the closing }`,
		`error: cannot use plugin manifest DIR/c` + manifest + `:1:25: Claude Code takes no hooks from "hooks.json" (write a path that begins with "./" and stays in the plugin)`,
		`error: cannot use plugin manifest DIR/c` + manifest + `:1:39: Claude Code takes no hooks from "./../x.json" (write a path that begins with "./" and stays in the plugin)`,
	}
	if diff := cmp.Diff(want, texts(dir, found)); diff != "" {
		t.Error(diff)
	}
	if len(plugins) != 1 || !slices.Equal(plugins[0].Components.Hooks, []string{"Stop", "PreToolUse"}) {
		t.Errorf("%+v", plugins)
	}
}

func TestP5BrokenFilesOfAKairoPluginAreWarnings(t *testing.T) {
	dir := tree(t, map[string]string{
		"k/.kairo-plugin/plugin.json": `{"name": "k", "lspServers": "./lsp.json", "mcpServers": "./m.mcpb"}`, "k/lsp.json": "{", "k/m.mcpb": "PK",
	})
	plugins, _ := Scan(dir, Options{})
	_, ok, found := plugins[0].View(tapped)
	if !ok || len(found) != 1 || found[0].Severity != problem.Warning {
		t.Error(ok, found)
	}
}

func TestP5KairoConstantsOfEvents(t *testing.T) {
	for constant, want := range map[string]string{
		"PRE_ACTING": "PreToolUse", "POST_ACTING": "PostToolUse", "POST_TOOL_FAILURE": "PostToolUseFailure", "PRE_COMPLETE": "Stop",
		"SESSION_START": "SessionStart", "NOTIFICATION": "Notification", "SETUP": "Setup", "STOP_FAILURE": "StopFailure",
		"POST_TOOL_BATCH": "PostToolBatch", "USER_PROMPT_SUBMIT": "UserPromptSubmit", "CWD_CHANGED": "CwdChanged",
		"PRE_TOOL_USE": "", "STOP": "", "Setup": "", "ELICITATION": "", "": "",
	} {
		if got, ok := eventOf(constant); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", constant, got, ok)
		}
	}
}

// FuzzRewrite compares the text's rewrite with one of the decoded value.
func FuzzRewrite(f *testing.F) {
	for _, s := range []string{
		`{"PreToolUse":[{"hooks":[{"type":"command","command":"a","args":["b"]}]}],"PRE_ACTING":[{}]}`,
		`{"SESSION_END":[{"hooks":[{"type":"command","command":"\u0024{KAIRO_PLUGIN_ROOT}","args":[]}]}],"SessionEnd":[{"hooks":[{"type":"command","command":"x"}]}]}`,
		`{"SessionEnd":[ ],"SESSION_END":[1, 2 ],"x":{"args":["${KAIRO_PLUGIN_DATA}\\"]}}`,
		`{"PRE_ACTING":[],"\u0050RE_ACTING2":{},"PreToolUse":[{"hooks":[{"type":"command","args":["${KAIRO_PROJECT_DIR}"],"command":"${KAIRO_PLUGIN_ROOT}"}]}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, bad := jsondoc.Parse("hooks file", "f", data)
		if bad != nil {
			return
		}
		var why reasons
		r := &rewrite{doc: doc, options: tapped, reasons: &why}
		r.events(doc.Root)
		out := r.result()
		if len(why) == 0 && !bytes.Equal(out, data) {
			t.Fatalf("changed without a reason:\n%s\n%s", data, out)
		}
		if _, bad := jsondoc.Parse("hooks file", "f", out); bad != nil {
			t.Fatalf("%v\n%s\n%s", bad, data, out)
		}
		if diff := cmp.Diff(rewritten(doc.Root, decode(t, data)), decode(t, out)); diff != "" {
			t.Fatalf("%s\n%s\n%s", diff, data, out)
		}
	})
}

func decode(t *testing.T, data []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// rewritten is what a decoded object of events is to become.
func rewritten(order jsondoc.Value, v any) any {
	events, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for _, m := range order.Members {
		name := nameOf(order, m)
		list, ok := events[m.Name].([]any)
		if !ok {
			out[name] = events[m.Name]
			continue
		}
		for _, group := range list {
			members, _ := group.(map[string]any)
			hooks, _ := members["hooks"].([]any)
			for _, hook := range hooks {
				if h, ok := hook.(map[string]any); ok {
					rewrittenHook(name, h)
				}
			}
		}
		if before, ok := out[name].([]any); ok {
			list = append(before, list...)
		}
		out[name] = list
	}
	return out
}

func rewrittenHook(event string, h map[string]any) {
	for name, v := range h {
		h[name] = renamedStrings(v)
	}
	command, ok := h["command"].(string)
	if h["type"] != "command" || !ok {
		return
	}
	args, ok := h["args"].([]any)
	if ok && !slices.ContainsFunc(args, func(a any) bool { _, ok := a.(string); return !ok }) {
		h["command"], h["args"] = tapped.TapExec, append([]any{command}, args...)
	}
	if _, ok := h["timeout"]; !ok && event == "SessionEnd" {
		h["timeout"] = json.Number("5")
	}
}

func renamedStrings(v any) any {
	switch v := v.(type) {
	case string:
		return claudeNames.Replace(v)
	case []any:
		for i := range v {
			v[i] = renamedStrings(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = renamedStrings(v[name])
		}
	}
	return v
}

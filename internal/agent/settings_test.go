package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
)

// write puts files, by their path below a new directory, and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func session(root string, env map[string]string, args ...string) Session {
	return Session{Root: root, Dir: filepath.Join(root, "work"), Args: args, Env: func(name string) string {
		if name == "HOME" {
			return filepath.Join(root, "home")
		}
		return env[name]
	}}
}

func setting(prefix string) string {
	return `{"env":{"CLAUDE_CODE_SHELL_PREFIX":"` + prefix + `"}}`
}

func texts(found problem.List) (out []string) {
	for _, p := range found {
		out = append(out, p.Text())
	}
	return out
}

func TestE3ThePrefixThatCounts(t *testing.T) {
	const user, project, local = "home/.claude/settings.json", "work/.claude/settings.json", "work/.claude/settings.local.json"
	const managed, drop = "etc/claude-code/managed-settings.json", "etc/claude-code/managed-settings.d/"
	env := map[string]string{PrefixVariable: "/env"}
	all := map[string]string{user: setting("/user"), project: setting("/project"), local: setting("/local")}
	for _, tt := range []struct {
		name  string
		files map[string]string
		args  []string
		want  string
	}{
		{"environment", nil, nil, "/env"},
		{"user", map[string]string{user: setting("/user")}, nil, "/user"},
		{"project", map[string]string{user: setting("/user"), project: setting("/project")}, nil, "/project"},
		{"local", all, nil, "/local"},
		{"flag", all, []string{"--settings", setting("/flag")}, "/flag"},
		{"last flag", all, []string{"--settings", setting("/flag"), "-p", "--settings=" + setting("/flag2")}, "/flag2"},
		{"empty flag", all, []string{"--settings=" + setting("/flag"), "--settings="}, "/local"},
		{"after --", all, []string{"-p", "--", "--settings=" + setting("/flag")}, "/local"},
		{"flag file", map[string]string{"work/s.json": "\xef\xbb\xbf" + setting("/file")}, []string{"--settings=s.json"}, "/file"},
		{"sources", all, []string{"--setting-sources", "project, user"}, "/project"},
		{"no sources", all, []string{"--setting-sources="}, "/env"},
		{"empty value", map[string]string{user: setting("")}, nil, ""},
		{"null", map[string]string{user: `{"env":{"CLAUDE_CODE_SHELL_PREFIX":null}}`}, nil, "null"},
		{"broken", map[string]string{user: setting("/user"), local: setting("/local") + "x"}, nil, "/user"},
		{"wrong type", map[string]string{user: setting("/user"), local: `{"disableAllHooks":"yes",` + setting("/local")[1:]}, nil, "/user"},
		{"blank", map[string]string{user: setting("/user"), local: " \n"}, nil, "/user"},
		{"managed", map[string]string{user: setting("/user"), managed: setting("/managed")}, []string{"--settings=" + setting("/flag")}, "/managed"},
		{"drop-in", map[string]string{managed: setting("/managed"), drop + "2.json": setting("/2"), drop + "10.json": setting("/10"), drop + ".x.json": setting("/x")}, nil, "/2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, found := ReadSettings(session(write(t, tt.files), env, tt.args...))
			if got.Prefix != tt.want || got.HooksOff {
				t.Errorf("%+v", got)
			}
			if found.Refuses() {
				t.Error(found)
			}
			if managed := strings.HasPrefix(tt.name, "managed") || tt.name == "drop-in"; got.Managed != managed {
				t.Errorf("managed %v", got.Managed)
			} else if tapped, _ := got.WithTap([]string{"claude"}, "/tap", "/doc"); managed && len(tapped.Argv) != 1 {
				t.Errorf("%q", tapped.Argv)
			}
		})
	}
	dir := write(t, map[string]string{"cfg/settings.json": setting("/cfg"), user: setting("/user")})
	if got, _ := ReadSettings(session(dir, map[string]string{"CLAUDE_CONFIG_DIR": filepath.Join(dir, "cfg")})); got.Prefix != "/cfg" {
		t.Errorf("with CLAUDE_CONFIG_DIR %q", got.Prefix)
	}
}

func TestE3WhatSettingsSilenceIsReported(t *testing.T) {
	const user, local = "home/.claude/settings.json", "work/.claude/settings.local.json"
	const managed = "etc/claude-code/managed-settings.json"
	exec := `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"},
 {"type":"command","command":"b","args":[]}]}]}}`
	for _, tt := range []struct {
		name  string
		files map[string]string
		off   bool
		want  []string
	}{
		{"off", map[string]string{user: "{\n \"disableAllHooks\": true}", local: exec}, true,
			[]string{`settings ROOT/home/.claude/settings.json:2:21: "disableAllHooks" is true: no hook runs, those of plugins neither, and their events are missing`}},
		{"on again", map[string]string{user: `{"disableAllHooks": true}`, local: `{"disableAllHooks": false}`}, false, nil},
		{"managed only", map[string]string{managed: `{"allowManagedHooksOnly": true}`}, true,
			[]string{`settings ROOT/etc/claude-code/managed-settings.json:1:27: "allowManagedHooksOnly" is true: hooks of plugins do not run, and their events are missing`}},
		{"managed only elsewhere", map[string]string{user: `{"allowManagedHooksOnly": true}`}, false, nil},
		{"managed prefix", map[string]string{managed: setting("/m")}, false,
			[]string{`settings ROOT/etc/claude-code/managed-settings.json:1:36: managed settings set CLAUDE_CODE_SHELL_PREFIX, and nothing can override them: events of hooks do not reach agent-init`}},
		{"exec form", map[string]string{local: exec}, false,
			[]string{`settings ROOT/work/.claude/settings.local.json:2:41: a hook for Stop has "args" or runs in PowerShell: what it writes to stderr is not collected`}},
		{"two", map[string]string{local: `{"hooks":{"Stop":[{"hooks":[{"command":"a","shell":"powershell"}]}],"SessionEnd":[{"hooks":[{"command":"b","args":["c"]}]}]}}`}, false,
			[]string{`settings ROOT/work/.claude/settings.local.json:1:52: 2 hooks (Stop, SessionEnd) have "args" or run in PowerShell: what they write to stderr is not collected`}},
		{"broken", map[string]string{local: `{"a":1,}`}, false,
			[]string{`cannot read settings ROOT/work/.claude/settings.local.json:1:7: there is a comma before the closing }`}},
		{"env", map[string]string{local: `{"env":["a"]}`}, false,
			[]string{`settings ROOT/work/.claude/settings.local.json:1:8: "env" is an array, not an object; Claude Code passes over the whole file`}},
		{"large", map[string]string{local: strings.Repeat(" ", 1<<20) + "{}"}, false,
			[]string{`cannot read settings ROOT/work/.claude/settings.local.json: it has 1048578 bytes, more than the limit of 1048576`}},
		{"managed broken is another's", map[string]string{managed: `{`}, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, tt.files)
			got, found := ReadSettings(session(dir, nil))
			for i := range tt.want {
				tt.want[i] = strings.ReplaceAll(tt.want[i], "ROOT", dir)
			}
			if diff := cmp.Diff(tt.want, texts(found)); diff != "" || found.Refuses() || got.HooksOff != tt.off {
				t.Errorf("off %v, %s", got.HooksOff, diff)
			}
		})
	}
}

func TestE3WithTap(t *testing.T) {
	const tap, out = "/run/taps/7/agent-tap", "/run/taps/7/settings.json"
	fresh := setting(tap)
	secret := "{ \"env\": {\"KEY\": \"s3cret\"},\n\"model\":\"m\" }"
	merged := "{ \"env\": {\"CLAUDE_CODE_SHELL_PREFIX\":\"" + tap + "\",\"KEY\": \"s3cret\"},\n\"model\":\"m\" }"
	dir := write(t, map[string]string{
		"work/s.json": secret, "work/rule.json": `{"permissions":{"deny":["Read(/secret)"]}}`, "work/bad.json": "{",
		"work/box.json": `{"sandbox":{"filesystem":{"denyRead":["./x"]}}}`, "work/fine.json": `{"permissions":{"deny":["Read(//etc/x)","Read(~/y)","Bash(/bin/ls)"]}}`,
		"work/done.json": fresh,
	})
	for _, tt := range []struct {
		name     string
		args     []string
		want     []string
		document string
		problem  string
	}{
		{name: "none", args: []string{"-p", "hi"}, want: []string{"--settings=" + fresh, "-p", "hi"}},
		{name: "in the prompt", args: []string{"-p", "--", "--settings=x"}, want: []string{"--settings=" + fresh, "-p", "--", "--settings=x"}},
		{name: "ours", args: []string{"--settings=" + fresh, "-p"}, want: []string{"--settings=" + fresh, "-p"}},
		{name: "our file", args: []string{"--settings=done.json"}, want: []string{"--settings=done.json"}},
		{name: "empty", args: []string{"--settings", "", "x"}, want: []string{"--settings", fresh, "x"}},
		{name: "inline", args: []string{"-p", "--settings", ` {"a":1} `}, want: []string{"-p", "--settings", ` {"env":{"CLAUDE_CODE_SHELL_PREFIX":"` + tap + `"},"a":1} `}},
		{name: "inline with a prefix", args: []string{"--settings=" + setting("/theirs")}, want: []string{"--settings=" + fresh}},
		{name: "file", args: []string{"--settings", "s.json", "x"}, want: []string{"--settings", out, "x"}, document: merged},
		{name: "last", args: []string{"--settings={}", "--settings=s.json"}, want: []string{"--settings={}", "--settings=" + out}, document: merged},
		{name: "fine", args: []string{"--settings=fine.json"}, want: []string{"--settings=" + out},
			document: `{"env":{"CLAUDE_CODE_SHELL_PREFIX":"` + tap + `"},"permissions":{"deny":["Read(//etc/x)","Read(~/y)","Bash(/bin/ls)"]}}`},
		{name: "rule", args: []string{"--settings=rule.json"}, want: []string{"--settings=rule.json"},
			problem: "cannot pass CLAUDE_CODE_SHELL_PREFIX through --settings DIR/rule.json:1:25: this rule is relative to the place of the file, so that no copy of it can be used"},
		{name: "box", args: []string{"--settings=box.json"}, want: []string{"--settings=box.json"},
			problem: "cannot pass CLAUDE_CODE_SHELL_PREFIX through --settings DIR/box.json:1:39: this path is relative to the place of the file, so that no copy of it can be used"},
		{name: "bad", args: []string{"--settings=bad.json"}, want: []string{"--settings=bad.json"}},
		{name: "missing", args: []string{"--settings=nothing"}, want: []string{"--settings=nothing"}},
		{name: "refused", args: []string{"--settings={x}"}, want: []string{"--settings={x}"}},
		{name: "no value", args: []string{"-p", "--settings"}, want: []string{"--settings=" + fresh, "-p", "--settings"}},
		{name: "too long", args: []string{`--settings={"a":"` + strings.Repeat("x", maxArgument-40) + `"}`}, want: []string{`--settings={"a":"` + strings.Repeat("x", maxArgument-40) + `"}`},
			problem: "cannot pass CLAUDE_CODE_SHELL_PREFIX through --settings --settings: with the prefix added, it would be longer than an argument can be"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := session(dir, nil, tt.args...)
			settings, _ := ReadSettings(s)
			argv := append([]string{"claude"}, tt.args...)
			if len(tt.args) > 0 && strings.HasPrefix(tt.name, "inline") {
				// The flags of plugins, inserted after the settings were read.
				argv, tt.want = Insert(argv, []string{"--plugin-dir=/p"}), append([]string{"--plugin-dir=/p"}, tt.want...)
			}
			before := append([]string(nil), argv...)
			got, found := settings.WithTap(argv, tap, out)
			if diff := cmp.Diff(append([]string{"claude"}, tt.want...), got.Argv); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.document, string(got.Document)); diff != "" {
				t.Error(diff)
			}
			var want []string
			if tt.problem != "" {
				want = []string{strings.ReplaceAll(tt.problem, "DIR", s.Dir)}
			}
			if diff := cmp.Diff(want, texts(found)); diff != "" || found.Refuses() {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, argv); diff != "" {
				t.Errorf("the caller's arguments have changed: %s", diff)
			}
		})
	}
}

func FuzzMerge(f *testing.F) {
	for _, s := range []string{`{}`, ` { } `, `{"env":{}}`, `{"env" : { "A":"b" }, "c":[1]}`, `{"env":{"CLAUDE_CODE_SHELL_PREFIX" : null,"B":"c"}}`, "{\"a\":{\"env\":{}},\n\"\\u0065nv\":{}}"} {
		f.Add(s, "/run/a \"b\"/agent-tap")
	}
	f.Fuzz(func(t *testing.T, text, prefix string) {
		s := Settings{flag: option{"--settings", "f", 0, false}, flagFile: "f"}
		doc, found := parseSettings("f", []byte(text))
		if found.Refuses() {
			t.Fatal(found)
		}
		if s.flagDoc = doc; doc == nil {
			return
		}
		got, _ := s.WithTap([]string{"claude", "f"}, prefix, "/out")
		if got.Document == nil {
			return
		}
		again, bad := jsondoc.Parse("settings", "f", got.Document)
		if bad != nil {
			t.Fatalf("%q from %q: %v", got.Document, text, bad)
		}
		if !hasPrefix(again, prefix) {
			t.Fatalf("%q lacks the prefix", got.Document)
		}
		var before, after map[string]any
		if json.Unmarshal(doc.Data, &before) != nil || json.Unmarshal(got.Document, &after) != nil {
			return
		}
		env, _ := before["env"].(map[string]any)
		if env == nil {
			env = map[string]any{}
			before["env"] = env
		}
		env[PrefixVariable] = prefix
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatal(diff)
		}
	})
}

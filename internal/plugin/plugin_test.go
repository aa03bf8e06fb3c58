package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-init/internal/problem"
)

// tree writes files below a new directory; a name that ends in a slash is a
// directory, content that begins with "-> " a symlink.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func names(plugins []Plugin) (out []string) {
	for _, p := range plugins {
		out = append(out, p.Name)
	}
	return out
}

func texts(dir string, l problem.List) (out []string) {
	for _, p := range l {
		out = append(out, p.Severity.String()+": "+strings.ReplaceAll(p.Error(), dir, "DIR"))
	}
	return out
}

const manifest = "/.claude-plugin/plugin.json"

func TestP1PluginsComeInByteOrderWhateverTheirNames(t *testing.T) {
	odd := []string{"Zoo", "a b", "a\"b'c", "line\nbreak", "ünïcode", "$(touch x)", "-dash", "zz"}
	files := map[string]string{}
	for i, name := range odd {
		files[name+manifest] = fmt.Sprintf(`{"name": "p%d"}`, i)
	}
	files["kairo/.kairo-plugin/plugin.json"] = `{"name": "k", "version": "2.0.0"}`
	files["elsewhere/"] = ""
	files[".git/HEAD"] = "x"
	files[".keep"] = ""
	dir := tree(t, files)
	os.Rename(filepath.Join(dir, "zz"), filepath.Join(dir, "elsewhere", "real"))
	os.Symlink("elsewhere/real", filepath.Join(dir, "zlink"))
	plugins, found := Scan(dir, Options{})
	if len(found) != 0 {
		t.Error(found)
	}
	want := []string{"p5", "p6", "p0", "p1", "p2", "k", "p3", "p7", "p4"}
	if diff := cmp.Diff(want, names(plugins)); diff != "" {
		t.Error(diff)
	}
	if plugins[5].Format != Kairo || plugins[5].Version != "2.0.0" {
		t.Errorf("%+v", plugins[5])
	}
	if plugins[7].Path != filepath.Join(dir, "zlink") {
		t.Error(plugins[7].Path)
	}
}

func TestP1EmptyAndAbsentDirectoriesHoldNoPlugins(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		if plugins, found := Scan(dir, Options{}); len(plugins)+len(found) != 0 {
			t.Error(plugins, found)
		}
	}
}

func TestP1EveryBadPluginIsNamedWithItsPlace(t *testing.T) {
	dir := tree(t, map[string]string{
		"a-malformed" + manifest:                     "{\n \"name\": \"x\",,\n}",
		"b-empty" + manifest:                         "",
		"c-large" + manifest:                         `{"name": "x", "description": "` + strings.Repeat("x", 2<<20) + `"}`,
		"d-deep" + manifest:                          strings.Repeat("[", 5000),
		"e-type" + manifest:                          `{"name": 1, "version": 2}`,
		"f-duplicate" + manifest:                     "{\"name\": \"x\",\n\"name\": \"y\"}",
		"g-bom" + manifest:                           "\xef\xbb\xbf{\"name\": \"x\"}",
		"h-latin" + manifest:                         "{\"name\": \"\xe4\"}",
		"i-noname" + manifest:                        "{}",
		"j-list" + manifest:                          "[]",
		"k-dangling":                                 "-> /nowhere",
		"l-file":                                     "zip",
		"m-components/skills/":                       "",
		"n-one" + manifest:                           `{"name": "twin"}`,
		"o-two" + manifest:                           `{"name": "twin"}`,
		"p-hooks" + manifest:                         `{"name": "p"}`,
		"p-hooks/hooks/hooks.json":                   `{"hooks": {"Stop": [], "Stop": []}}`,
		"q-manifest-is-a-directory" + manifest + "/": "",
		"r-dangling-manifest" + manifest:             "-> nowhere",
		"s-homepage" + manifest:                      `{"name": "s", "homepage": "x"}`,
		"t-empty-name" + manifest:                    `{"name": " "}`,
		"u-fine" + manifest:                          `{"name": "u"}`,
	})
	plugins, found := Scan(dir, Options{})
	want := []string{
		"error: cannot read plugin manifest DIR/a-malformed" + manifest + ":2:14: there is a comma before the closing }",
		"error: cannot read plugin manifest DIR/b-empty" + manifest + ":1:1: it is empty",
		"error: cannot read plugin manifest DIR/c-large" + manifest + ": it has 2097184 bytes, more than the limit of 1048576",
		"error: cannot read plugin manifest DIR/d-deep" + manifest + ":1:102: it is nested more than 100 levels deep",
		`error: cannot use plugin manifest DIR/e-type` + manifest + `:1:10: "name" is a number, not a string`,
		`error: cannot use plugin manifest DIR/e-type` + manifest + `:1:24: "version" is a number, not a string`,
		`error: cannot read plugin manifest DIR/f-duplicate` + manifest + `:2:1: duplicate key "name"`,
		"error: cannot read plugin manifest DIR/g-bom" + manifest + ":1:1: it begins with a byte order mark (save it as UTF-8 without BOM)",
		"error: cannot read plugin manifest DIR/h-latin" + manifest + ":1:11: it is not valid UTF-8",
		`error: cannot use plugin manifest DIR/i-noname` + manifest + `:1:1: it has no "name" (add "name": "...")`,
		"error: cannot use plugin manifest DIR/j-list" + manifest + ":1:1: it holds an array, not an object",
		"error: cannot read plugin DIR/k-dangling: it is a symlink to /nowhere, which does not exist",
		"error: cannot use plugin DIR/l-file: it is a file, not a directory (a plugin is a directory with .claude-plugin/plugin.json; unpack it, or move the file away)",
		"warning: directory is no plugin DIR/m-components: it has skills but no .claude-plugin/plugin.json (add a manifest with at least a name)",
		`error: cannot read hooks file DIR/p-hooks/hooks/hooks.json:1:24: duplicate key "Stop"`,
		"error: cannot read plugin manifest DIR/q-manifest-is-a-directory" + manifest + ": it is not a regular file",
		"error: cannot read plugin manifest DIR/r-dangling-manifest" + manifest + ": it does not exist",
		`error: cannot use plugin manifest DIR/s-homepage` + manifest + `:1:27: "homepage" is no URL (write https://...)`,
		`error: cannot use plugin manifest DIR/t-empty-name` + manifest + `:1:10: "name" is empty`,
		`error: cannot load plugin DIR/o-two` + manifest + `:1:10: its name "twin" is also that of DIR/n-one (remove one, or rename it)`,
	}
	if diff := cmp.Diff(want, texts(dir, found)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"twin", "u"}, names(plugins)); diff != "" {
		t.Error(diff)
	}

	plugins, found = Scan(dir, Options{Skip: true})
	if found.Refuses() || len(found) < len(want)-1 {
		t.Errorf("with Skip: %v", texts(dir, found))
	}
	if diff := cmp.Diff([]string{"twin", "u"}, names(plugins)); diff != "" {
		t.Error(diff)
	}
	for _, f := range found {
		if !strings.Contains(f.What, "is left out: ") && !strings.Contains(f.What, "is no plugin") {
			t.Errorf("not said to be left out: %s", f.Text())
		}
	}
}

func TestP1UnreadableDirectoryAndFileInPlaceOfIt(t *testing.T) {
	dir := tree(t, map[string]string{"file": "x"})
	if _, found := Scan(filepath.Join(dir, "file"), Options{}); !found.Refuses() {
		t.Error(found)
	}
}

func TestP1OnlyTheNamedPluginsAreLoaded(t *testing.T) {
	dir := tree(t, map[string]string{
		"a" + manifest: `{"name": "a"}`, "b" + manifest: `{"name": "b", "requires_env": 1}`,
		"broken" + manifest: `{`, "c" + manifest: `{"name": "see"}`,
	})
	plugins, found := Scan(dir, Options{Only: []string{"see", "a"}})
	if diff := cmp.Diff([]string{"a", "see"}, names(plugins)); diff != "" {
		t.Error(diff)
	}
	if found.Refuses() || len(found) != 1 {
		t.Error(texts(dir, found)) // the broken one is a warning: it might be wanted
	}
	if _, found := Scan(dir, Options{Only: []string{"broken"}}); len(found.Only(problem.Error)) != 2 {
		t.Error(texts(dir, found))
	}
	if _, found := Scan(filepath.Join(dir, "absent"), Options{Only: []string{"x"}}); !found.Refuses() {
		t.Error(found)
	}
}

func TestP1UnmetDependencyIsAWarning(t *testing.T) {
	dir := tree(t, map[string]string{
		"a" + manifest: `{"name": "a", "dependencies": ["b", {"name": "c", "version": "^1"}, "d@market"]}`,
		"b" + manifest: `{"name": "b", "dependencies": [1]}`,
		"d" + manifest: `{"name": "d"}`,
	})
	_, found := Scan(dir, Options{})
	want := []string{
		"error: cannot use plugin manifest DIR/b" + manifest + ":1:32: a dependency is neither a name nor an object with one",
		`warning: plugin manifest DIR/a` + manifest + `:1:32: plugin "a" depends on "b", which is not loaded`,
		`warning: plugin manifest DIR/a` + manifest + `:1:37: plugin "a" depends on "c", which is not loaded`,
	}
	if diff := cmp.Diff(want, texts(dir, found)); diff != "" {
		t.Error(diff)
	}
}

func TestP2RequiresEnvIsReadStrictly(t *testing.T) {
	dir := tree(t, map[string]string{"p" + manifest: `{"name": "p", "requires_env": {
  "API_KEY": {"description": "the key", "required": true, "secret": true},
  "REGION": {"description": "where", "default": "eu"},
  "EMPTY": {},
  "LEAKY": {"secret": true, "default": "x"},
  "BAD1": {"required": "yes"},
  "BAD2": {"default": 7, "secret": 1, "description": []},
  "BAD3": true,
  "no-name": {},
  "ODD": {"requird": true}
}}`})
	_, found := Scan(dir, Options{})
	m := "DIR/p" + manifest
	want := []string{
		"warning: plugin manifest " + m + ":5:12: requires_env LEAKY: the default of a secret is not used (remove it)",
		`error: cannot use plugin manifest ` + m + `:6:24: requires_env BAD1: "required" is a string, not a boolean`,
		`error: cannot use plugin manifest ` + m + `:7:23: requires_env BAD2: "default" is a number, not a string`,
		`error: cannot use plugin manifest ` + m + `:7:36: requires_env BAD2: "secret" is a number, not a boolean`,
		`error: cannot use plugin manifest ` + m + `:7:54: requires_env BAD2: "description" is an array, not a string`,
		`error: cannot use plugin manifest ` + m + `:8:11: requires_env BAD3 is a boolean, not an object`,
		`error: cannot use plugin manifest ` + m + `:9:3: "no-name" is no name of a variable (use letters, digits and underscores)`,
		`warning: plugin manifest ` + m + `:10:11: requires_env ODD: unknown field "requird" has no effect (known are description, required, secret and default)`,
	}
	if diff := cmp.Diff(want, texts(dir, found)); diff != "" {
		t.Error(diff)
	}

	dir = tree(t, map[string]string{"p" + manifest: `{"name": "p", "requires_env": {"K": {"description": "the key", "required": true, "secret": true}, "R": {"default": "eu"}}}`})
	plugins, found := Scan(dir, Options{})
	if len(found) != 0 {
		t.Fatal(found)
	}
	if diff := cmp.Diff([]Requirement{
		{Name: "K", Description: "the key", Required: true, Secret: true, Line: 1, Column: 32},
		{Name: "R", Default: "eu", HasDefault: true, Line: 1, Column: 99},
	}, plugins[0].RequiresEnv); diff != "" {
		t.Error(diff)
	}
}

func TestP6InventoryNamesEveryComponent(t *testing.T) {
	dir := tree(t, map[string]string{
		"p" + manifest:          `{"name": "p", "hooks": {"hooks": {"Stop": []}}, "mcpServers": {"inline": {}}, "skills": ["./more"], "experimental": {"themes": "./t.json"}}`,
		"p/skills/one/SKILL.md": "x", "p/skills/none/README.md": "x",
		"p/commands/go.md": "x", "p/commands/sub/deep.md": "x", "p/commands/notes.txt": "x",
		"p/agents/helper.md": "x",
		"p/hooks/hooks.json": `{"description": "d", "hooks": {"PreToolUse": [], "SessionStart": []}}`,
		"p/.mcp.json":        `{"bare": {"command": "x"}}`,
		"p/.lsp.json":        `{"go": {"command": "gopls"}}`,
		"p/bin/tool":         "#!/bin/sh\n", "p/bin/data": "x",
		"p/output-styles/terse.md": "x", "p/themes/dark.json": "{}", "p/monitors/monitors.json": "[]",
	})
	os.Chmod(filepath.Join(dir, "p/bin/tool"), 0o755)
	plugins, found := Scan(dir, Options{})
	if len(found) != 0 {
		t.Fatal(texts(dir, found))
	}
	got := map[string][]string{}
	for _, k := range plugins[0].Components.Kinds() {
		got[k.Name] = k.Names
	}
	want := map[string][]string{
		"skills": {"one", "./more"}, "commands": {"go", "sub:deep"}, "agents": {"helper"}, "hooks": {"PreToolUse", "SessionStart", "Stop"},
		"mcp_servers": {"bare", "inline"}, "lsp_servers": {"go"}, "bin": {"tool"}, "output_styles": {"terse"},
		"themes": {"dark.json", "./t.json"}, "monitors": {"monitors.json"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzManifest(f *testing.F) {
	for _, s := range []string{`{"name":"p"}`, `{"name":"p","requires_env":{"A":{"required":true,"default":"x"}}}`, `{"dependencies":["a",{"name":"b"}]}`, `{"name":[]}`, `{"hooks":{"hooks":{}}}`} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	path := filepath.Join(dir, "p", manifest)
	os.MkdirAll(filepath.Dir(path), 0o755)
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		plugins, found := Scan(dir, Options{})
		if len(plugins) == 0 && !found.Refuses() {
			t.Fatalf("lost without a word: %q", data)
		}
		for _, p := range found {
			if p.File == "" || strings.Contains(p.Error(), "\n") {
				t.Fatalf("%+v", p)
			}
		}
	})
}

func BenchmarkScan1000(b *testing.B) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("p%d%s", i, manifest)] = fmt.Sprintf(`{"name": "p%d", "version": "1.0.0", "requires_env": {"A": {"description": "a"}}}`, i)
		files[fmt.Sprintf("p%d/hooks/hooks.json", i)] = `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}`
	}
	dir := tree(b, files)
	for b.Loop() {
		if plugins, found := Scan(dir, Options{}); len(plugins) != 1000 || len(found) != 0 {
			b.Fatal(len(plugins), found)
		}
	}
}

package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

func parseDoc(t testing.TB, path, data string) *jsondoc.Document {
	t.Helper()
	doc, bad := jsondoc.Parse("MCP config", path, []byte(data))
	if bad != nil {
		t.Fatal(bad)
	}
	return doc
}

func repoFile(t testing.TB, name, data string) File {
	return File{name, parseDoc(t, "/repos/"+name+"/.claude-ops/mcp.json", data)}
}

func servers(members string) string { return `{"mcpServers":{` + members + `}}` }

func texts(l problem.List) (out []string) {
	for _, p := range l {
		out = append(out, p.Severity.String()+": "+p.Text())
	}
	return out
}

func wantTexts(t *testing.T, got problem.List, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, texts(got)); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

func names(r Result) (out []string) {
	for _, s := range r.Servers {
		out = append(out, s.Name)
	}
	return out
}

func TestM3MergeReplacesWholeEntriesInPlace(t *testing.T) {
	baseline := parseDoc(t, "/base.json", `{"x": 1.50, "mcpServers": {
		"api": {"command": "base", "env": {"SECRET": "s"}},
		"z": {"command": "z"}
	}, "y": "\u00e9"}`)
	res, found := Merge(baseline, []File{
		repoFile(t, "a", servers(`"new":{"type":"sse","url":"http://a/"},"api":{"command":"repo","timeout":1e3}`)),
		repoFile(t, "b", servers(`"web":{"type":"streamable-http","url":"http:\/\/b"}`)),
	}, Options{})
	wantTexts(t, found, `warning: MCP config /repos/a/.claude-ops/mcp.json:1:55: server "api" overrides "api" of /base.json:2:3`)
	want := `{
  "x": 1.50,
  "mcpServers": {
    "api": {
      "command": "repo",
      "timeout": 1e3
    },
    "z": {
      "command": "z"
    },
    "new": {
      "type": "sse",
      "url": "http://a/"
    },
    "web": {
      "type": "streamable-http",
      "url": "http:\/\/b"
    }
  },
  "y": "\u00e9"
}
`
	if d := cmp.Diff(want, string(res.JSON)); d != "" {
		t.Error(d)
	}
	a := "/repos/a/.claude-ops/mcp.json"
	if d := cmp.Diff([]Server{
		{Name: "api", Type: "stdio", File: a, Repo: "a", Overrode: []Overridden{{File: "/base.json", Name: "api"}}},
		{Name: "z", Type: "stdio", File: "/base.json"},
		{Name: "new", Type: "sse", File: a, Repo: "a"},
		{Name: "web", Type: "http", File: "/repos/b/.claude-ops/mcp.json", Repo: "b"},
	}, res.Servers); d != "" {
		t.Error(d)
	}
}

func TestM3MergeWithoutBaseline(t *testing.T) {
	res, found := Merge(nil, nil, Options{})
	wantTexts(t, found)
	if got := string(res.JSON); got != "{\n  \"mcpServers\": {}\n}\n" {
		t.Errorf("got %q", got)
	}
	res, found = Merge(parseDoc(t, "/b", `{"keep": [ ]}`), []File{repoFile(t, "a", servers(`"s":{"command":"c"}`))}, Options{})
	wantTexts(t, found, `warning: MCP config /b:1:1: it has no "mcpServers" and adds nothing`)
	if got := string(res.JSON); !strings.HasPrefix(got, "{\n  \"keep\": [],\n  \"mcpServers\": {\n    \"s\": {") {
		t.Errorf("got %q", got)
	}
}

func TestM3OtherMembersOfARepoAreNamed(t *testing.T) {
	_, found := Merge(nil, []File{
		repoFile(t, "a", `{"mcpServers":{},"permissions":{},"x\ny":1}`),
		repoFile(t, "b", `{"servers":{}}`),
	}, Options{})
	wantTexts(t, found,
		`warning: MCP config /repos/a/.claude-ops/mcp.json:1:18: a repo adds only "mcpServers"; not taken: "permissions", "x\ny"`,
		`warning: MCP config /repos/b/.claude-ops/mcp.json:1:2: a repo adds only "mcpServers"; not taken: "servers"`,
		`warning: MCP config /repos/b/.claude-ops/mcp.json:1:1: it has no "mcpServers" and adds nothing`)
	if found[2].Hint == "" {
		t.Error("no hint for the misnamed member")
	}
}

// Each of these was dropped by Claude Code 2.1.197 without a word, ended it, or
// (an empty url, a type that an embedding program serves) can never work.
var faulty = []struct{ name, entry, why string }{
	{"neither", `{}`, `11: server "s": it has neither "command" nor "url"`},
	{"no object", `"x"`, `16: server "s": it is a string, not an object`},
	{"null entry", `null`, `16: server "s": it is null, not an object`},
	{"url without type", `{"url":"http://x"}`, `11: server "s": it has a "url" and no "type"`},
	{"stdio with url", `{"type":"stdio","url":"http://x"}`, `11: server "s": it has type "stdio" and no "command"`},
	{"http without url", `{"type":"http","command":"c"}`, `11: server "s": it has type "http" and no "url"`},
	{"unknown type", `{"type":"foo","command":"c"}`, `24: server "s": unknown type "foo"`},
	{"embedded type", `{"type":"sdk","name":"c"}`, `24: server "s": unknown type "sdk"`},
	{"null type", `{"type":null,"command":"c"}`, `24: server "s": "type" is null, not a string`},
	{"empty command", `{"command":""}`, `27: server "s": "command" is empty`},
	{"command list", `{"command":["c"]}`, `27: server "s": "command" is an array, not a string`},
	{"empty url", `{"type":"http","url":""}`, `37: server "s": "url" is empty`},
	{"url number", `{"type":"ws","url":3}`, `35: server "s": "url" is a number, not a string`},
	{"args string", `{"command":"c","args":"x"}`, `38: server "s": "args" is a string, not a list of strings`},
	{"args null", `{"command":"c","args":null}`, `38: server "s": "args" is null, not a list of strings`},
	{"args number", `{"command":"c","args":["a",1]}`, `43: server "s": "args[1]" is a number, not a string`},
	{"env list", `{"command":"c","env":[]}`, `37: server "s": "env" is an array, not an object of strings`},
	{"env null", `{"command":"c","env":null}`, `37: server "s": "env" is null, not an object of strings`},
	{"env number", `{"command":"c","env":{"A":1}}`, `42: server "s": "env.A" is a number, not a string`},
	{"env constructor", `{"command":"c","env":{"constructor":"x"}}`, `38: server "s": Claude Code drops an entry with the name "env.constructor" in it`},
	{"headers number", `{"type":"sse","url":"http://x","headers":{"a":true}}`, `62: server "s": "headers.a" is a boolean, not a string`},
	{"headersHelper", `{"type":"ws","url":"http://x","headersHelper":null}`, `62: server "s": "headersHelper" is null, not a string`},
	{"timeout string", `{"command":"c","timeout":"3"}`, `41: server "s": "timeout" is a string, not a positive whole number`},
	{"timeout zero", `{"command":"c","timeout":0}`, `41: server "s": "timeout" is not a positive whole number`},
	{"timeout fraction", `{"command":"c","timeout":1.5}`, `41: server "s": "timeout" is not a positive whole number`},
	{"alwaysLoad", `{"command":"c","alwaysLoad":"yes"}`, `44: server "s": "alwaysLoad" is a string, not true or false`},
	{"oauth number", `{"type":"http","url":"u","oauth":3}`, `49: server "s": "oauth" is a number, not an object`},
	{"oauth port", `{"type":"http","url":"u","oauth":{"callbackPort":"3"}}`, `65: server "s": "oauth.callbackPort" is a string, not a positive whole number`},
	{"oauth metadata", `{"type":"http","url":"u","oauth":{"authServerMetadataUrl":"http://x/"}}`, `74: server "s": "oauth.authServerMetadataUrl" is no https:// URL`},
	{"tools", `{"type":"http","url":"u","tools":["a"]}`, `50: server "s": "tools[0]" is a string, not an object`},
	{"toolPermissions", `{"type":"http","url":"u","toolPermissions":{"a":"wat"}}`, `64: server "s": "toolPermissions.a" is "wat"`},
}

func TestM5EveryFaultIsAnError(t *testing.T) {
	for _, c := range faulty {
		t.Run(c.name, func(t *testing.T) {
			const head = "{\n\"mcpServers\":"
			doc := head + `{"ok":{"command":"c"},` + "\n          " + `"s": ` + c.entry + "}}"
			want := "cannot use MCP config /repos/a/.claude-ops/mcp.json:3:" + c.why
			res, found := Merge(nil, []File{repoFile(t, "a", doc)}, Options{})
			wantTexts(t, found, "error: "+want)
			if d := cmp.Diff([]string{"ok"}, names(res)); d != "" {
				t.Error(d)
			}
			_, found = Merge(parseDoc(t, "/base", doc), nil, Options{Skip: true})
			wantTexts(t, found, "error: "+strings.Replace(want, "/repos/a/.claude-ops/mcp.json", "/base", 1))
		})
	}
}

func TestM5AllFaultsAreReported(t *testing.T) {
	_, found := Merge(parseDoc(t, "/base", `{"mcpServers":[]}`), []File{
		repoFile(t, "a", servers(`"x":{"command":"","args":[1,2],"env":{"A":1}},"y":{}`)),
		repoFile(t, "b", `[]`),
		repoFile(t, "c", servers(`"z":{"type":"http","url":"","headers":3}`)),
	}, Options{})
	var got []string
	for _, p := range found {
		got = append(got, p.Place()+" "+p.Why)
	}
	const a = "/repos/a/.claude-ops/mcp.json:1:"
	want := []string{
		`/base:1:15 "mcpServers" is an array, not an object`,
		a + `31 server "x": "command" is empty`,
		a + `42 server "x": "args[0]" is a number, not a string`,
		a + `44 server "x": "args[1]" is a number, not a string`,
		a + `58 server "x": "env.A" is a number, not a string`,
		a + `62 server "y": it has neither "command" nor "url"`,
		`/repos/b/.claude-ops/mcp.json:1:1 it holds an array, not an object`,
		`/repos/c/.claude-ops/mcp.json:1:41 server "z": "url" is empty`,
		`/repos/c/.claude-ops/mcp.json:1:54 server "z": "headers" is a number, not an object of strings`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestM5ReservedNames(t *testing.T) {
	for _, name := range []string{"workspace", "prototype", "constructor", "__proto__", "claude-in-chrome", "computer-use", "Claude Preview"} {
		f := repoFile(t, "a", servers(fmt.Sprintf(`%q:{"command":"c"}`, name)))
		if _, found := Merge(nil, []File{f}, Options{}); len(found) != 1 || !found.Refuses() || !strings.Contains(found[0].Why, name) {
			t.Errorf("%s: %v", name, texts(found))
		}
		if _, found := Merge(nil, []File{f}, Options{Collision: Namespace}); len(found) != 0 {
			t.Errorf("%s renamed: %v", name, texts(found))
		}
	}
	for _, name := range []string{"Workspace", "work.space", "claude_in_chrome", "toString", "ide"} {
		if _, found := Merge(nil, []File{repoFile(t, "a", servers(fmt.Sprintf(`%q:{"command":"c"}`, name)))}, Options{}); len(found) != 0 {
			t.Errorf("%s: %v", name, texts(found))
		}
	}
}

func TestM5KeepsWhatTheAgentTakes(t *testing.T) {
	for _, entry := range []string{
		`{"command":"c","wat":3,"role":3,"disabled":true}`,
		`{"command":"c","url":3,"headers":3,"tools":3}`,
		`{"type":"http","url":"u","command":3,"args":3,"env":3}`,
		`{"type":"ws","url":"u","oauth":3,"tools":3}`,
		`{"command":"  ","timeout":100,"args":[],"env":{}}`,
		`{"type":"http","url":"u","oauth":{"zzz":1},"tools":[{"name":"x","permission_policy":"always_ask"}],"toolPermissions":{"a":"ask"}}`,
	} {
		res, found := Merge(nil, []File{repoFile(t, "a", servers(`"s":`+entry))}, Options{})
		if len(found) != 0 || len(res.Servers) != 1 {
			t.Errorf("%s: %v", entry, texts(found))
		}
	}
}

func TestM5SkipLeavesTheWholeRepoOut(t *testing.T) {
	res, found := Merge(nil, []File{
		repoFile(t, "a", servers(`"one":{"command":"c"},"two":{"command":""}`)),
		repoFile(t, "b", servers(`"three":{"command":"c"}`)),
	}, Options{Skip: true})
	const a = "/repos/a/.claude-ops/mcp.json"
	wantTexts(t, found,
		`warning: cannot use MCP config `+a+`:1:55: server "two": "command" is empty`,
		`warning: MCP config `+a+`: it has faults, so that none of its servers is used`)
	if d := cmp.Diff([]string{"three"}, names(res)); d != "" {
		t.Error(d)
	}
	why := "its MCP config has faults"
	if d := cmp.Diff([]LeftOut{{"one", a, why}, {"two", a, why}}, res.Left); d != "" {
		t.Error(d)
	}
}

func TestM5ManyFaultsAreCounted(t *testing.T) {
	var b strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&b, `"s%d":{},`, i)
	}
	_, found := Merge(nil, []File{repoFile(t, "a", servers(b.String()+`"end":{}`))}, Options{})
	if n := len(found); n != maxFindings+1 || !found.Refuses() {
		t.Fatalf("%d findings", n)
	}
	if got := found[maxFindings].Why; got != "49901 more errors of this file are not shown" {
		t.Error(got)
	}
}

func TestM6CollisionsAreReported(t *testing.T) {
	baseline := parseDoc(t, "/base", servers(`"a.b":{"command":"base"}`))
	files := []File{
		repoFile(t, "one", servers(`"a_b":{"command":"one"}`)),
		repoFile(t, "two", servers(`"a b":{"command":"two"},"a:b":{"command":"last"}`)),
	}
	res, found := Merge(baseline, files, Options{})
	const one, two = "/repos/one/.claude-ops/mcp.json", "/repos/two/.claude-ops/mcp.json"
	const spelt = `: the agent spells both "a_b"`
	wantTexts(t, found,
		`warning: MCP config `+one+`:1:16: server "a_b" overrides "a.b" of /base:1:16`+spelt,
		`warning: MCP config `+two+`:1:16: server "a b" overrides "a_b" of `+one+`:1:16`+spelt,
		`warning: MCP config `+two+`:1:40: server "a:b" overrides "a b" of `+two+`:1:16`+spelt)
	want := []Server{{Name: "a:b", Type: "stdio", File: two, Repo: "two", Overrode: []Overridden{
		{"/base", "", "a.b"}, {one, "one", "a_b"}, {two, "two", "a b"}}}}
	if d := cmp.Diff(want, res.Servers); d != "" {
		t.Error(d)
	}
	_, found = Merge(baseline, files, Options{Collision: Error, Skip: true})
	if len(found) != 3 || len(found.Only(problem.Error)) != 3 || found[0].Hint == "" {
		t.Errorf("with error: %v", texts(found))
	}
}

func TestM6NamespaceRenamesReposServers(t *testing.T) {
	baseline := parseDoc(t, "/base", servers(`"api":{"command":"base"},"r_x":{"command":"base"}`))
	res, found := Merge(baseline, []File{
		repoFile(t, "r", servers(`"api":{"command":"r"},"x":{"command":"r"}`)),
		repoFile(t, "my \"repo", servers(`"api":{"command":"q"}`)),
	}, Options{Collision: Namespace})
	wantTexts(t, found, `warning: MCP config /repos/r/.claude-ops/mcp.json:1:38: server "r_x" overrides "r_x" of /base:1:41`)
	if d := cmp.Diff([]string{"api", "r_x", "r_api", `my "repo_api`}, names(res)); d != "" {
		t.Error(d)
	}
	var out struct {
		MCPServers map[string]struct{ Command string }
	}
	if err := json.Unmarshal(res.JSON, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.MCPServers; got["api"].Command != "base" || got["r_x"].Command != "r" || got[`my "repo_api`].Command != "q" {
		t.Error(got)
	}
}

func TestM6AllowAndDenyApplyToRepos(t *testing.T) {
	baseline := parseDoc(t, "/base", servers(`"evil.x":{"command":"base"}`))
	f := repoFile(t, "r", servers(`"evil_x":{"command":"r"},"db-1":{"command":""},"db-2":{"command":"r"},"web":{"command":"r"}`))
	res, found := Merge(baseline, []File{f}, Options{Allow: []string{"evil*", "db-?"}, Deny: []string{"evil.*", "db-1"}})
	const r = "/repos/r/.claude-ops/mcp.json"
	wantTexts(t, found, `warning: MCP config `+r+`:1:59: server "db-1": "command" is empty`)
	if d := cmp.Diff([]string{"evil.x", "db-2"}, names(res)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]LeftOut{
		{"evil_x", r, "AGENTIC_MCP_DENY covers it"},
		{"db-1", r, "AGENTIC_MCP_DENY covers it"},
		{"web", r, "AGENTIC_MCP_ALLOW does not cover it"},
	}, res.Left); d != "" {
		t.Error(d)
	}
}

func TestM6Globs(t *testing.T) {
	for _, c := range []struct {
		glob, name string
		want       bool
	}{
		{"*", "a/b.c", true}, {"a.b", "a_b", true}, {"a_b", "a.b", true}, {"a?b", "a.b", true},
		{"[a-c]x", "bx", true}, {"[^a-c]x", "bx", false}, {`a\*`, "a*", true}, {`a\*`, "ab", false},
		{"[", "[", false}, {"", "", true}, {"é*", "éa", true}, {"a", "A", false},
	} {
		if got := matches([]string{c.glob}, c.name); got != c.want {
			t.Errorf("%q covers %q: %v", c.glob, c.name, got)
		}
	}
	if ValidGlob("[") || !ValidGlob("a[b-c]*") {
		t.Error("ValidGlob")
	}
}

func TestM6Normalise(t *testing.T) {
	for in, want := range map[string]string{
		"a.b": "a_b", "a-b_C9": "a-b_C9", "é ": "__", "😀": "__", "": "", "claude.ai My  Server.": "claude_ai_My_Server",
	} {
		if got := Normalise(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestM4UnsetVariables(t *testing.T) {
	env := func(name string) (string, bool) { return "", name == "SET" }
	entry := `{"command":"${A}","args":["${A} ${B:-d} $C ${SET}${D}","${CLAUDE_PLUGIN_ROOT}","${","${1}","${ E }","${url_x}"],"env":{"${K}":"${F}"},"cwd":"${G}"}`
	res, found := Merge(nil, []File{
		repoFile(t, "a", servers(`"s":`+entry+`,"gone":{"command":"${H}"}`)),
		repoFile(t, "b", servers(`"gone":{"type":"http","url":"${A}","headers":{"x":"${I}"},"env":{"x":"${J}"}}`)),
	}, Options{Env: env})
	var got []string
	for _, p := range found {
		if !strings.Contains(p.Why, "overrides") {
			got = append(got, p.Severity.String()+" "+p.Place()+" "+p.Why)
		}
	}
	const a, b = "warning /repos/a/.claude-ops/mcp.json:1:", "warning /repos/b/.claude-ops/mcp.json:1:"
	if d := cmp.Diff([]string{
		a + `31 server "s" uses ${A}, which is not set`,
		a + `46 server "s" uses ${D}, which is not set`,
		a + `120 server "s" uses ${url_x}, which is not set`,
		a + `146 server "s" uses ${F}, which is not set`,
		b + `44 server "gone" uses ${A}, which is not set`,
		b + `66 server "gone" uses ${I}, which is not set`,
	}, got); d != "" {
		t.Error(d)
	}
	if !strings.Contains(string(res.JSON), `${A} ${B:-d} $C ${SET}${D}`) {
		t.Error("a reference was changed")
	}
}

func TestM7Read(t *testing.T) {
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	write := func(name, data string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	write("outside.json", servers(""))
	write("repo/good.json", servers(""))
	write("repo/large.json", servers("")+strings.Repeat(" ", 1<<20))
	write("repo/bad.json", "{\n  \"mcpServers\": {\"a\": {}, \"a\": {}}}")
	link("../outside.json", "repo/out.json")
	link("good.json", "repo/in.json")
	link("nothing.json", "repo/dangling.json")
	root, err := textfile.OpenRoot(repo)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]string{
		"good.json": "", "in.json": "", "absent.json": "absent",
		"large.json":    "it has 1048593 bytes, more than the limit of 1048576",
		"out.json":      "path escapes from parent",
		"dangling.json": "it is a symlink to nothing",
		"bad.json":      `duplicate key "a"`,
	} {
		doc, bad := ReadIn(root, name, "MCP config")
		switch {
		case want == "" && (doc == nil || bad != nil),
			want == "absent" && (doc != nil || bad != nil),
			want != "" && want != "absent" && (doc != nil || bad == nil || bad.Why != want || bad.File != filepath.Join(repo, name)):
			t.Errorf("%s: %v %v", name, doc, bad)
		}
	}
	if doc, bad := Read(filepath.Join(dir, "absent"), "MCP baseline"); doc != nil || bad != nil {
		t.Errorf("absent: %v %v", doc, bad)
	}
	if doc, bad := Read(filepath.Join(repo, "out.json"), "MCP baseline"); doc == nil || bad != nil {
		t.Errorf("baseline through a symlink: %v", bad)
	}
	if _, bad := Read(filepath.Join(repo, "dangling.json"), "MCP baseline"); bad == nil {
		t.Error("a dangling symlink is no problem")
	}
}

func TestParseCollision(t *testing.T) {
	for _, c := range []Collision{Override, Namespace, Error} {
		if got, ok := ParseCollision(c.String()); !ok || got != c {
			t.Error(c)
		}
	}
	if _, ok := ParseCollision("merge"); ok {
		t.Error("merge is known")
	}
}

func FuzzMerge(f *testing.F) {
	for _, c := range faulty {
		f.Add([]byte(servers(`"s":`+c.entry)), []byte(servers(`"a.b":{"command":"${X}"},"a_b":{"command":"c"}`)), "r", 0)
	}
	f.Add([]byte(`{"a":1,"mcpServers":{"é":{"type":"http","url":"\/"}},"b":{}}`), []byte(`{"x":[]}`), "r\xff\"", 1)
	f.Add([]byte(`[]`), []byte(`{"mcpServers":{"constructor":{"command":"c"}}}`), "", 2)
	f.Fuzz(func(t *testing.T, base, repo []byte, name string, mode int) {
		baseline, _ := jsondoc.Parse("MCP baseline", "/base", base)
		doc, _ := jsondoc.Parse("MCP config", "/repo", repo)
		opts := Options{Collision: Collision(((mode % 3) + 3) % 3), Skip: mode > 2, Deny: []string{name}, Env: func(string) (string, bool) { return "", false }}
		res, _ := Merge(baseline, []File{{"r" + name, doc}}, opts)
		out, bad := jsondoc.Parse("merged MCP config", "/out", res.JSON)
		if bad != nil {
			t.Fatalf("%v\n%s", bad, res.JSON)
		}
		again, found := Merge(out, nil, opts)
		if string(again.JSON) != string(res.JSON) {
			t.Fatalf("no fixed point:\n%s\n%s", res.JSON, again.JSON)
		}
		if found.Refuses() || !slices.Equal(names(res), names(again)) {
			t.Fatalf("%v\n%s", texts(found), res.JSON)
		}
	})
}

func BenchmarkMerge50Repos(b *testing.B) {
	dir := b.TempDir()
	for i := range 50 {
		ops := filepath.Join(dir, fmt.Sprintf("repo%02d", i))
		if err := os.Mkdir(ops, 0o755); err != nil {
			b.Fatal(err)
		}
		data := servers(fmt.Sprintf(`"s%d":{"command":"c","args":["a","b"],"env":{"A":"${X}"}},"t%d":{"type":"http","url":"http://x/"}`, i, i))
		if err := os.WriteFile(filepath.Join(ops, "mcp.json"), []byte(data), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	env := func(string) (string, bool) { return "", true }
	for b.Loop() {
		var files []File
		for i := range 50 {
			root, err := textfile.OpenRoot(filepath.Join(dir, fmt.Sprintf("repo%02d", i)))
			if err != nil {
				b.Fatal(err)
			}
			doc, bad := ReadIn(root, "mcp.json", "MCP config")
			root.Close()
			if bad != nil {
				b.Fatal(bad)
			}
			files = append(files, File{root.Name(), doc})
		}
		if res, _ := Merge(nil, files, Options{Env: env}); len(res.Servers) != 100 {
			b.Fatal(len(res.Servers))
		}
	}
}

package repo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// tree is a repos directory on disk; a value of "@x" makes a symlink to x, one
// of "/" a directory.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repos")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case data == "/":
			err = os.MkdirAll(path, 0o755)
		case strings.HasPrefix(data, "@"):
			err = os.Symlink(data[1:], path)
		default:
			err = os.WriteFile(path, []byte(data), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func texts(dir string, l problem.List) (out []string) {
	for _, p := range l {
		out = append(out, p.Severity.String()+": "+strings.ReplaceAll(p.Text(), dir, "R"))
	}
	return out
}

func wantTexts(t *testing.T, dir string, got problem.List, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, texts(dir, got)); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

const manifest = `---
version: 1
---
<!-- ## Kind
hidden -->
# Infra <!-- aside --> Ansible

Playbooks for
the *home lab*.

Second paragraph.

` + "```\n## Rules\n- not a rule\n```" + `

## kind

Ansible infrastructure

## Capabilities
- **service-discovery**: finds services
* redeploy: rolls out,
  one host at a time
- ` + "`backup`" + ` - nightly
+ __x:__ text: more
- bare

## RULES:

- Never modify files
  in this repo
- Use ` + "`--limit`" + `
  - except for ping

1. Ask first
A prose rule.

### Details
* Last

# Appendix
- no rule
`

func TestM1Manifest(t *testing.T) {
	for _, crlf := range []bool{false, true} {
		text := manifest
		if crlf {
			text = "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n")
		}
		dir := tree(t, map[string]string{"a/CLAUDE-OPS.md": text})
		m, found := Scan(dir, Options{})
		wantTexts(t, dir, found)
		want := Repo{
			Name: "a", Path: dir + "/a", Source: Manifest, Version: "1", Title: "Infra  Ansible",
			Description: "Playbooks for the *home lab*.", Kind: "Ansible infrastructure",
			Capabilities: []Capability{
				{"service-discovery", "finds services"}, {"redeploy", "rolls out, one host at a time"},
				{"backup", "nightly"}, {"x", "text: more"}, {"bare", ""},
			},
			Rules:    []string{"Never modify files in this repo", "Use `--limit` - except for ping", "Ask first A prose rule.", "Last"},
			Writable: true,
		}
		if d := cmp.Diff([]Repo{want}, m.Repos, cmp.AllowUnexported(Document{}, place{})); d != "" {
			t.Errorf("crlf %v: %s", crlf, d)
		}
	}
}

func TestM1ManifestWarnings(t *testing.T) {
	const good = "# T\n\nText.\n\n## Kind\n\nk\n\n## Capabilities\n\n- a: b\n\n## Rules\n\n- r\n"
	for _, c := range []struct{ name, text, want string }{
		{"good", good, ""},
		{"setext", "T\n=\n\nText.\n\nKind\n----\n\nk\n\nCapabilities\n---\n- a: b\n\nRules\n---\n- r\n", ""},
		{"nothing", "hello", `:1: it has no title, no section "## Kind", no section "## Capabilities", no section "## Rules"`},
		{"no paragraph", strings.Replace(good, "Text.\n", "", 1), `:1: it has no first paragraph`},
		{"empty section", strings.Replace(good, "- r\n", "", 1), `:13: section "## Rules" is empty`},
		{"second section", good + "## rules\n- r2\n", `:16: a second section "rules"; its entries are added to the first`},
		{"kind twice", strings.Replace(good, "k\n", "k\n\nmore\n", 1), `:9: only the first paragraph of "## Kind" counts`},
		{"prose capability", strings.Replace(good, "- a: b", "prose", 1), `:11: text in "## Capabilities" that is no bullet is not read`},
		{"code in capabilities", strings.Replace(good, "- a: b", "- a: b\n\n~~~\n- c\n\n- d\n~~~", 1), `:14: text in "## Capabilities" that is no bullet is not read`},
		{"nameless capability", strings.Replace(good, "- a: b", "- a: b\n- : b", 1), `:12: a capability without a name`},
		{"empty bullet", good + "-\n", `:16: an empty bullet in "## Rules"`},
		{"unknown version", "---\nx: 1\nversion: 2\n---\n" + good, `:3:10: unknown version "2"; known: 1`},
		{"version list", "---\nversion: [1]\n---\n" + good, `:2:10: "version" in its frontmatter is no text`},
		{"malformed frontmatter", "---\nversion: 1\nx: [\n---\n" + good, `:3: its frontmatter is no YAML: did not find expected node content`},
		{"frontmatter list", "---\n- version\n---\n" + good, `:2:1: its frontmatter is no mapping of names to values`},
		{"frontmatter twice", "---\nversion: 1\nversion: 9\n---\n" + good, `:3:1: its frontmatter has "version" twice; the first counts`},
		{"frontmatter open", "---\n" + good, `:1: its frontmatter has no closing "---"`},
		{"empty", " \n", `: it is empty`},
		{"no UTF-8", "# T\n\xff", `: it is not valid UTF-8`},
		{"too large", strings.Repeat("x", textfile.Limit+1), `: it has 1048577 bytes, more than the limit of 1048576`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, map[string]string{"a/CLAUDE-OPS.md": c.text})
			m, found := Scan(dir, Options{})
			if c.want == "" {
				wantTexts(t, dir, found)
			} else {
				sep := ""
				if !strings.HasPrefix(c.want, ":") {
					sep = " "
				}
				wantTexts(t, dir, found, "warning: repo manifest R/a/CLAUDE-OPS.md"+sep+c.want)
			}
			if len(m.Repos) != 1 {
				t.Error(m)
			}
		})
	}
}

func TestM1ReposDirectory(t *testing.T) {
	dir := tree(t, map[string]string{
		"b": "/", "a/README.md": "# A", "Z": "/", "with space\n\"q\"": "/", "é": "/", ".hidden": "file", ".git": "/",
		"link": "@../outside", "../outside/README": "Outside.",
	})
	m, found := Scan(dir, Options{})
	wantTexts(t, dir, found)
	var names []string
	for _, r := range m.Repos {
		names = append(names, r.Name)
	}
	if d := cmp.Diff([]string{"Z", "a", "b", "link", "with space\n\"q\"", "é"}, names); d != "" {
		t.Error(d)
	}
	if got := m.Repos[3].Description; got != "Outside." {
		t.Errorf("the symlinked repo: %q", got)
	}
}

func TestM1BadReposAreErrors(t *testing.T) {
	files := map[string]string{"file": "x", "dangling": "@nowhere", "to-file": "@file", "good": "/", "loop": "@loop"}
	dir := tree(t, files)
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, found := Scan(dir, Options{})
	wantTexts(t, dir, found,
		"error: cannot use repo R/dangling: it is a symlink to nothing",
		"error: cannot use repo R/fifo: it is not a directory",
		"error: cannot use repo R/file: it is a file, not a directory",
		"error: cannot use repo R/loop: too many levels of symbolic links",
		"error: cannot use repo R/to-file: it is a file, not a directory")
	for _, p := range found {
		if !strings.Contains(p.Hint, "hide it with a leading dot") {
			t.Error(p)
		}
	}
	if len(m.Repos) != 1 {
		t.Error(m)
	}
	if _, found := Scan(dir, Options{Skip: true}); found.Refuses() || len(found) != 5 {
		t.Error(texts(dir, found))
	}
}

func TestM1ManyReposInOrder(t *testing.T) {
	files := map[string]string{}
	var names, want []string
	for i := range 60 {
		name := fmt.Sprintf("r%02d", i)
		switch i % 4 {
		case 0:
			files[name] = "x"
			want = append(want, "error: cannot use repo R/"+name+": it is a file, not a directory")
			continue
		case 1:
			files[name+"/README.md"] = "# " + name + "\n\nText of " + name
		case 2:
			files[name+"/.claude-ops/checks/c.md"] = "# " + name + "\n\nText of\n" + name
			files[name+"/.claude-ops/mcp.json"] = fmt.Sprintf(`{"mcpServers":{%q:{}}}`, name)
			files[name+"/README.md"] = ""
			want = append(want, "warning: repo R/"+name+"/README.md: it is empty")
		case 3:
			files[name+"/CLAUDE-OPS.md"] = "# " + name + "\n\nText of\n" + name
			want = append(want, "warning: repo manifest R/"+name+`/CLAUDE-OPS.md:1: it has no section "## Kind", no section "## Capabilities", no section "## Rules"`)
		}
		names = append(names, name)
	}
	dir := tree(t, files)
	m, found := Scan(dir, Options{})
	wantTexts(t, dir, found, want...)
	for i, r := range m.Repos {
		text := "Text of " + names[i]
		switch {
		case r.Name != names[i]:
			t.Errorf("%s at the place of %s", r.Name, names[i])
		case len(r.Checks) == 1 && (r.Checks[0].Title != r.Name || r.Checks[0].Description != text || r.MCPServers[0] != r.Name):
			t.Errorf("%+v", r)
		case len(r.Checks) == 0 && (r.Title != r.Name || r.Description != text):
			t.Errorf("%+v", r)
		}
	}
	if len(m.Repos) != len(names) {
		t.Errorf("%d repos, not %d", len(m.Repos), len(names))
	}
}

func TestM1ReposDirectoryItself(t *testing.T) {
	dir := tree(t, map[string]string{"file": "x", "dangling": "@nowhere"})
	for name, want := range map[string]string{
		"absent":   "",
		"file":     "cannot use repos directory R/file: it is a file, not a directory",
		"dangling": "cannot read repos directory R/dangling: it does not exist",
	} {
		m, found := Scan(filepath.Join(dir, name), Options{})
		if want == "" && len(found) != 0 || want != "" && (len(found) != 1 || texts(dir, found)[0] != "error: "+want) {
			t.Errorf("%s: %v", name, texts(dir, found))
		}
		if len(m.Repos) != 0 {
			t.Error(m)
		}
	}
	if m, found := Scan(t.TempDir(), Options{}); len(m.Repos)+len(found) != 0 {
		t.Error(m, found)
	}
}

func TestM1Unreadable(t *testing.T) {
	if os.Getuid() == 0 {
		// As root nothing is unreadable: run this very test as another user.
		runAsNobody(t)
		return
	}
	dir := tree(t, map[string]string{
		"a": "/", "b/CLAUDE-OPS.md": "x", "c/.claude-ops": "/", "d/.claude-ops/mcp.json": "{}", "e/.claude-ops/checks": "/", "f/README": "x",
	})
	for _, name := range []string{"a", "b/CLAUDE-OPS.md", "c/.claude-ops", "d/.claude-ops/mcp.json", "e/.claude-ops/checks", "f/README"} {
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(path, 0o700) })
	}
	_, found := Scan(dir, Options{})
	denied := fmt.Sprintf(": permission denied for uid %d", os.Getuid())
	wantTexts(t, dir, found,
		"error: cannot use repo R/a"+denied,
		"warning: repo manifest R/b/CLAUDE-OPS.md"+denied,
		"error: cannot read R/c/.claude-ops"+denied,
		"error: cannot read MCP config R/d/.claude-ops/mcp.json"+denied,
		"warning: repo R/e/.claude-ops/checks"+denied,
		"warning: repo R/f/README"+denied)
}

func TestM1Extensions(t *testing.T) {
	dir := tree(t, map[string]string{
		"a/.claude-ops/checks/http.md":      "---\nrequires: [restart, backup, 7]\nrequires_mcp: my.db\n---\n# HTTP check\n\nAsks the\nfront page.\n",
		"a/.claude-ops/checks/plain.md":     "Just text",
		"a/.claude-ops/checks/.keep":        "",
		"a/.claude-ops/playbooks/up.md":     "---\ndescription: Brings it up\n---\n# Up\n\ntext\n",
		"a/.claude-ops/skills/sub/SKILL.md": "x",
		"a/.claude-ops/mcp.json":            `{"mcpServers":{"z":{"command":"c"},"db":{"command":"c"}}}`,
		"a/README.md":                       "# A repo\n\n[![badge](x)](y)\n<p align=center>\n\n## About\n\nThe *A*\nrepo.\n\nMore.\n",
		"a/.claude-ops/.cache":              "/",
		"a/.claude-ops/hooks":               "/",
	})
	m, found := Scan(dir, Options{})
	wantTexts(t, dir, found,
		"warning: repo R/a/.claude-ops/hooks: unknown name in .claude-ops",
		"warning: skill R/a/.claude-ops/skills/sub: unknown name in .claude-ops/skills")
	path := func(s string) string { return dir + "/a/.claude-ops/" + s }
	want := Repo{
		Name: "a", Path: dir + "/a", Source: Manifest, Title: "A repo", Description: "The *A* repo.", Writable: true,
		Checks: []Document{
			{Name: "http", Path: path("checks/http.md"), Title: "HTTP check", Description: "Asks the front page.",
				Requires: []string{"restart", "backup", "7"}, RequiresMCP: []string{"my.db"},
				requiresAt: []place{{2, 12}, {2, 21}, {2, 29}}, requiresMCPAt: []place{{3, 15}}},
			{Name: "plain", Path: path("checks/plain.md"), Description: "Just text"},
		},
		Playbooks:  []Document{{Name: "up", Path: path("playbooks/up.md"), Title: "Up", Description: "Brings it up"}},
		MCPServers: []string{"z", "db"},
		Files:      []string{".claude-ops/", "README.md"},
		MCP:        m.Repos[0].MCP,
	}
	if d := cmp.Diff([]Repo{want}, m.Repos, cmp.AllowUnexported(Document{}, place{})); d != "" {
		t.Error(d)
	}
	if f := m.MCPFiles(); len(f) != 1 || f[0].Repo != "a" || f[0].Doc.Path != path("mcp.json") {
		t.Error(f)
	}
}

func TestM1DocumentWarnings(t *testing.T) {
	bomb := "---\na: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for _, c := range []struct {
		name, text string
		want       []string
		listed     bool
	}{
		{"empty", "", []string{": it is empty"}, true},
		{"no UTF-8", "\xff\xfea", []string{": it is not valid UTF-8"}, true},
		{"too large", strings.Repeat("x", textfile.Limit+1), []string{": it has 1048577 bytes, more than the limit of 1048576"}, false},
		{"out of the repo", "@../../../b/secret.md", []string{": it is a symlink that leads out of the repo, and is not followed"}, false},
		{"absolute", "@/etc/hostname", []string{": it is a symlink that leads out of the repo, and is not followed"}, false},
		{"dangling", "@nothing.md", []string{": it is a symlink to nothing"}, false},
		{"inside the repo", "@../../docs/real.md", nil, true},
		{"directory", "/", []string{": it is not a regular file"}, false},
		{"wrong types", "---\nrequires: {a: b}\nrequires_mcp:\n  - ok\n  - [x]\n  - ~\n---\nx", []string{
			`:2:11: "requires" in its frontmatter is no list of names`,
			`:5:5: an entry of "requires_mcp" in its frontmatter is no name`,
			`:6:5: an entry of "requires_mcp" in its frontmatter is no name`}, true},
		{"alias bomb", bomb + "requires: *y\n---\nx", []string{`:27:11: "requires" in its frontmatter is no list of names`}, true},
		{"huge frontmatter", "---\n" + strings.Repeat("# x\n", 1<<15) + "---\nx", []string{":1: its frontmatter has 131072 bytes, more than the limit of 65536"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, map[string]string{"a/.claude-ops/checks/x.md": c.text, "a/docs/real.md": "real", "b/secret.md": "s"})
			m, found := Scan(dir, Options{})
			var want []string
			for _, w := range c.want {
				want = append(want, "warning: check R/a/.claude-ops/checks/x.md"+w)
			}
			wantTexts(t, dir, found, want...)
			if listed := len(m.Repos[0].Checks) == 1; listed != c.listed {
				t.Errorf("listed: %v", listed)
			}
		})
	}
}

func TestM1Requirements(t *testing.T) {
	dir := tree(t, map[string]string{
		"a/CLAUDE-OPS.md":                 "# A\n\nText\n\n## Kind\nk\n\n## Capabilities\n- cap: x\n\n## Rules\n- r\n",
		"a/.claude-ops/checks/c.md":       "---\nrequires:\n  - cap\n  - play\n  - skill\n  - gone\nrequires_mcp: [my.db, own, nope]\n---\nx\n",
		"b/.claude-ops/playbooks/play.md": "x",
		"b/.claude-ops/skills/skill.md":   "---\nrequires: c\n---\nx",
	})
	m, found := Scan(dir, Options{})
	wantTexts(t, dir, found)
	wantTexts(t, dir, m.CheckRequirements([]string{"my_db", "a_own"}),
		`warning: check R/a/.claude-ops/checks/c.md:6:5: it requires "gone", which no repo has`,
		`warning: check R/a/.claude-ops/checks/c.md:7:28: it requires the MCP server "nope", which the agent does not get`)
}

func TestM1Inferred(t *testing.T) {
	for _, c := range []struct{ file, text, title, description string }{
		{"README.md", "Name\n====\n\n> What it\n> does.\n", "Name", "What it does."},
		{"readme.MD", "---\ntitle: x\n---\n\n# Only a title\n", "Only a title", "Only a title"},
		{"README", "Plain words\nand more.\n\nNo.", "", "Plain words and more."},
		{"README.rst", "====\nName\n====\n\n.. image:: x\n   :alt: y\n\n:Author: me\n\nWhat it\ndoes.\n\nUsage\n~~~~~\n", "Name", "What it does."},
		{"README.md", "```\ncode\n```\n\n---\n\nAfter `code`.", "", "After `code`."},
		{"Readme.txt", "\r\nDOS text\r\n", "", "DOS text"},
	} {
		dir := tree(t, map[string]string{"a/" + c.file: c.text, "a/main.go": "", "a/docs": "/", "a/.github": "/", "a/.git": "/"})
		m, found := Scan(dir, Options{})
		wantTexts(t, dir, found)
		r := m.Repos[0]
		if r.Source != Inferred || r.Title != c.title || r.Description != c.description {
			t.Errorf("%s %q: %+v", c.file, c.text, r)
		}
		if got := strings.Join(r.Files, " "); !strings.Contains(got, ".github/") || strings.Contains(got, ".git/") || !strings.Contains(got, "docs/ main.go") {
			t.Error(got)
		}
	}
}

func TestM1InferredOddities(t *testing.T) {
	files := map[string]string{"a/claude-ops.md": "x", "a/README.md": "\xff", "b/.claude-ops": "/", "b/README.md": "@/etc/hostname"}
	for i := range MaxFiles + 20 {
		files[fmt.Sprintf("c/f%03d", i)] = ""
	}
	dir := tree(t, files)
	m, found := Scan(dir, Options{})
	wantTexts(t, dir, found,
		"warning: repo R/a/claude-ops.md: it is not read",
		"warning: repo R/a/README.md: it is not valid UTF-8",
		"warning: repo R/b/README.md: it is a symlink that leads out of the repo, and is not followed")
	for _, r := range m.Repos {
		if r.Source != Inferred {
			t.Error(r)
		}
	}
	if got := m.Repos[2].Files; len(got) != MaxFiles || got[0] != "f000" || got[MaxFiles-1] != "f099" {
		t.Error(got)
	}
}

func TestM7MCPConfigOfARepo(t *testing.T) {
	for _, c := range []struct{ name, path, data, want string }{
		{"too large", "mcp.json", strings.Repeat(" ", textfile.Limit+1), "MCP config R/a/.claude-ops/mcp.json: it has 1048577 bytes, more than the limit of 1048576"},
		{"out of the repo", "mcp.json", "@../../b/mcp.json", "MCP config R/a/.claude-ops/mcp.json: it is a symlink that leads out of the repo, and is not followed"},
		{"dangling", "mcp.json", "@nothing", "MCP config R/a/.claude-ops/mcp.json: it is a symlink to nothing"},
		{"directory", "mcp.json", "/", "MCP config R/a/.claude-ops/mcp.json: it is not a regular file"},
		{"malformed", "mcp.json", "{\n  x}", "MCP config R/a/.claude-ops/mcp.json:2:3: "},
		{"directory out of the repo", "", "@../b", "R/a/.claude-ops: it is a symlink that leads out of the repo, and is not followed"},
		{"directory dangling", "", "@nothing", "R/a/.claude-ops: it is a symlink to nothing"},
		{"directory is a file", "", "x", "R/a/.claude-ops: not a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, map[string]string{"a/" + filepath.Join(".claude-ops", c.path): c.data, "b/mcp.json": `{"mcpServers":{}}`})
			for _, skip := range []bool{false, true} {
				m, found := Scan(dir, Options{Skip: skip})
				if len(found) != 1 || found.Refuses() == skip || !strings.Contains(texts(dir, found)[0], ": cannot read "+c.want) {
					t.Error(texts(dir, found))
				}
				if len(m.Repos) != 2 || len(m.MCPFiles()) != 0 {
					t.Error(m)
				}
			}
		})
	}
	dir := tree(t, map[string]string{"a/.claude-ops": "@ops", "a/ops/mcp.json": "@../real.json", "a/real.json": `{"mcpServers":{"s":{}}}`})
	if m, found := Scan(dir, Options{}); len(found) != 0 || len(m.MCPFiles()) != 1 {
		t.Error(texts(dir, found))
	}
}

// cpuTime is what this process has used: other load on the machine does not
// count.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A hostile file must not cost more than its size.
func TestM7LargeFiles(t *testing.T) {
	const head = "# T\n\nx\n\n## Kind\nk\n\n## Capabilities\n- a\n\n## Rules\n"
	for name, part := range map[string]string{
		"one rule": "a\n", "rules": "- a\n", "empty bullets": "-\n", "comments": "<!---->", "open comments": "<!--x", "headings": "## Rules\n",
		"fences": "```\n", "underlines": "a\n=\n", "nested": "- a\n  - b\n", "long line": "a ", "blanks": "\n", "breaks": "- - -\n",
	} {
		t.Run(name, func(t *testing.T) {
			text := head + strings.Repeat(part, (textfile.Limit-len(head))/len(part))
			dir := tree(t, map[string]string{"a/CLAUDE-OPS.md": text, "b/README.md": text, "c/README.rst": text, "d/.claude-ops/checks/c.md": text})
			start := cpuTime(t)
			_, found := Scan(dir, Options{})
			if len(found) > maxWarnings+1 {
				t.Errorf("%d findings", len(found))
			}
			// Linear code takes some 0.1 s; quadratic code takes minutes.
			if d := cpuTime(t) - start; d > 20*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
	for name, part := range map[string]string{"flow": "[", "mapping": "{a: ", "sequence": "- ", "keys": "? ", "anchors": "&a ", "duplicates": "a: 1\n", "quotes": "\"a\": b, "} {
		t.Run("frontmatter "+name, func(t *testing.T) {
			text := "---\n" + strings.Repeat(part, (maxFrontmatter-10)/len(part)) + "\n---\nx"
			dir := tree(t, map[string]string{"a/.claude-ops/checks/c.md": text})
			start := cpuTime(t)
			_, found := Scan(dir, Options{})
			if len(found) == 0 || len(found) > maxWarnings+1 {
				t.Errorf("%d findings", len(found))
			}
			if d := cpuTime(t) - start; d > 20*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{manifest, "---\nrequires: [a, {b: c}, &x y, *x]\n---\n# T\n", "<!--\n```\n-->\n# x\n===\n", "- a\n  - b\n\n1) c\n~~~\n", "---\n\t: ?\n---\n", "---\n!!binary x: &a *a\n..."} {
		f.Add(s)
	}
	dir := tree(f, map[string]string{"a/.claude-ops/checks": "/"})
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"CLAUDE-OPS.md", ".claude-ops/checks/c.md", "README.rst"} {
			if err := os.WriteFile(filepath.Join(dir, "a", name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m, found := Scan(dir, Options{})
		if found.Refuses() || len(m.Repos) != 1 {
			t.Fatal(texts(dir, found))
		}
		lines := strings.Count(text, "\n") + 1
		for _, p := range append(found, m.CheckRequirements(nil)...) {
			if p.Line > lines {
				t.Fatalf("%s: the file has %d lines", p.Text(), lines)
			}
		}
		if !json.Valid(m.AppendJSON(nil)) {
			t.Fatal("the map is no JSON")
		}
		m.Text()
		var r Repo
		r.describe("README.rst", text)
		r.describe("README.md", text)
	})
}

func BenchmarkScan50Repos(b *testing.B) {
	servers, all := map[string]string{}, map[string]string{}
	for i := range 50 {
		name, config := fmt.Sprintf("repo%02d/", i), fmt.Sprintf(`{"mcpServers":{"s%d":{"command":"c","args":["a"]}}}`, i)
		servers[name+".claude-ops/mcp.json"] = config
		all[name+".claude-ops/mcp.json"], all[name+"CLAUDE-OPS.md"] = config, manifest
	}
	for name, files := range map[string]map[string]string{"servers": servers, "manifests": all} {
		dir := tree(b, files)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if m, _ := Scan(dir, Options{}); len(m.MCPFiles()) != 50 {
					b.Fatal(m)
				}
			}
		})
		m, _ := Scan(dir, Options{})
		b.Run(name+" as JSON", func(b *testing.B) {
			for b.Loop() {
				m.AppendJSON(nil)
			}
		})
	}
}

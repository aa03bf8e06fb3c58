package injection

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mount is a directory with files of the given texts; "-> TARGET" is a symlink.
func mount(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mounted")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, link := strings.CutPrefix(text, "-> "); link {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const manifest = ".claude-plugin/plugin.json"

func TestB8NothingIsMounted(t *testing.T) {
	in, found := Read(filepath.Join(t.TempDir(), "absent"), Options{})
	if in.Context != nil || len(in.Plugins)+len(in.Agents)+len(found) > 0 {
		t.Error(in, found)
	}
	empty := mount(t, map[string]string{"plugins/.keep": "", "agents/.keep": ""})
	in, found = Read(empty, Options{})
	if in.Context != nil || len(in.Plugins)+len(in.Agents)+len(found) > 0 {
		t.Error(in, found)
	}
}

func TestB8LinksThatStayInside(t *testing.T) {
	dir := mount(t, map[string]string{
		"..data":                    "-> ..1",
		"..1/CLAUDE.md":             "context",
		"CLAUDE.md":                 "-> ..data/CLAUDE.md",
		"..1/plugins/p/" + manifest: "{}",
		"..1/plugins/p/shared":      "-> ../../shared",
		"..1/plugins/p/loop":        "-> .",
		"..1/plugins/p/nowhere":     "-> absent",
		"..1/plugins/p/self":        "-> self2/..",
		"..1/plugins/q":             "-> p",
		"..1/shared/text":           "shared",
		"plugins":                   "-> ..data/plugins",
	})
	in, found := Read(dir, Options{})
	if len(found) > 0 {
		t.Error(found)
	}
	if in.Context == nil || string(in.Context.Data) != "context" {
		t.Errorf("%+v", in.Context)
	}
	if want := []string{dir + "/plugins/p", dir + "/plugins/q"}; !slices.Equal(in.Plugins, want) {
		t.Errorf("%q", in.Plugins)
	}
}

func TestB8LinksThatLeadOut(t *testing.T) {
	outside := mount(t, map[string]string{"secret": "value", "dir/x": ""})
	for name, files := range map[string]map[string]string{
		"context":                       {"CLAUDE.md": "-> " + outside + "/secret"},
		"relative context":              {"CLAUDE.md": "-> ../../../../../../../../.." + outside + "/secret"},
		"agent":                         {"agents/a.md": "-> " + outside + "/secret"},
		"agents":                        {"agents": "-> " + outside},
		"plugins":                       {"plugins": "-> " + outside},
		"plugin":                        {"plugins/p": "-> " + outside + "/dir"},
		"file in a plugin":              {"plugins/p/" + manifest: "{}", "plugins/p/skills/x": "-> " + outside + "/secret"},
		"behind a link inside":          {"plugins/p/" + manifest: "{}", "plugins/p/skills": "-> ../../.shared", ".shared/deep/x": "-> " + outside + "/secret"},
		"absolute link to absent":       {"plugins/p/" + manifest: "{}", "plugins/p/x": "-> /absent/for/now"},
		"loop":                          {"CLAUDE.md": "-> CLAUDE.md"},
		"sibling of the same beginning": {"plugins/p/" + manifest: "{}", "plugins/p/x": "-> ../../../mounted-too/x", "../mounted-too/x": ""},
	} {
		t.Run(name, func(t *testing.T) {
			in, found := Read(mount(t, files), Options{})
			if !found.Refuses() || len(found) != 1 {
				t.Errorf("found %v", found)
			}
			if in.Context != nil || len(in.Plugins)+len(in.Agents) > 0 {
				t.Errorf("%+v", in)
			}
		})
	}
}

func TestB8WhatCannotBeRead(t *testing.T) {
	dir := mount(t, map[string]string{
		"CLAUDE.md": strings.Repeat("x", 1<<20+1), "agents/fine.md": "x", "agents/README": "x", "agents/with\nnewline.md": "y",
		"plugin/x": "", "claude": "", "notes.md": "",
	})
	if err := unix.Mkfifo(filepath.Join(dir, "agents/fifo.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "plugins"), 0o644); err != nil {
		t.Fatal(err)
	}
	in, found := Read(dir, Options{})
	var texts []string
	for _, f := range found {
		texts = append(texts, f.Severity.String()+" "+strings.ReplaceAll(f.Text(), dir, "DIR"))
	}
	if len(in.Agents) != 2 || in.Agents[1].Name != "with\nnewline.md" {
		t.Errorf("%+v", in.Agents)
	}
	for _, want := range []string{"error cannot inject CLAUDE.md DIR/CLAUDE.md: it has 1048577 bytes", "warning agent DIR/agents/README:", `error cannot inject agent "fifo" DIR/agents/fifo.md: it is not a regular file`,
		"error cannot inject plugins DIR/plugins: not a directory", "warning injection DIR/claude: it is not known", "warning injection DIR/plugin: it is not known"} {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(text, want) }) {
			t.Errorf("%q is missing in %q", want, texts)
		}
	}
	if len(texts) != 6 {
		t.Errorf("%q", texts)
	}
}

func TestB8NamesThatAreChosen(t *testing.T) {
	dir := mount(t, map[string]string{"agents/a.md": "", "agents/b.md": "", "plugins/p/" + manifest: "{}", "plugins/q/" + manifest: "{}", "plugins/none/x": "", "B.md": "b", "agents/.h.md": ""})
	in, found := Read(dir, Options{Context: "B.md", Plugins: []string{"q", "q"}, Agents: []string{"b", "a"}})
	if len(found) > 0 || in.Context.Name != "CLAUDE.md" || string(in.Context.Data) != "b" || !slices.Equal(in.Plugins, []string{dir + "/plugins/q"}) || len(in.Agents) != 2 || in.Agents[0].Name != "b.md" {
		t.Errorf("%+v %v", in, found)
	}
	_, found = Read(dir, Options{Context: ".", Plugins: []string{"..", "../plugins/p", "/p", ".p", "absent", "none", "p\n"}, Agents: []string{"a/../b", ".h", "absent", ""}})
	if len(found) != 12 || !found.Refuses() {
		for _, f := range found {
			t.Log(f.Text())
		}
		t.Errorf("%d findings", len(found))
	}
}

package entrypoint_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agent-init/internal/injection"
)

// injected mounts a directory with files of the given texts, which a container of
// any user can read.
func injected(t *testing.T, files map[string]string, change ...func(dir string)) option {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mounted")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range change {
		c(dir)
	}
	return bind(t, dir, injection.Dir)
}

// whole is an injection with everything.
var whole = map[string]string{
	"CLAUDE.md": "# Be kind\n",
	"OTHER.md":  "# Be quick\n",
	"plugins/tools/.claude-plugin/plugin.json": `{"name": "tools", "version": "2.0.0", "requires_env": {"TOOLS_KEY": {"description": "A key.", "default": "d"}}}`,
	"plugins/tools/skills/dig/SKILL.md":        "---\nname: dig\ndescription: Digs.\n---\nDig.\n",
	"plugins/sdlc/.claude-plugin/plugin.json":  `{"name": "sdlc", "version": "9.9.9"}`,
	"plugins/none/README.md":                   "no plugin",
	"agents/reviewer.md":                       "---\nname: reviewer\ndescription: Reviews.\n---\nReview.\n",
	"agents/na me\nx.md":                       "---\nname: odd\ndescription: Odd.\n---\nOdd.\n",
}

// report is the part of the boot report about what was injected.
type injectionReport struct {
	Plugins []struct {
		Name, Path, Replaced string
		Injected             bool
	}
	Copies []struct{ From, To, State string }
}

func (w *workspace) injectionReport() (out injectionReport) {
	w.t.Helper()
	for _, text := range w.files("/run/agentic/boot.json") {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			w.t.Error(err)
		}
	}
	return out
}

func TestB8InjectedPartsReachTheRealAgent(t *testing.T) {
	parallel(t)
	m := startModel(t, "")
	w := start(t, []string{"claude", "-p", "greetings"}, m.talk(), injected(t, whole))
	r := w.wait()
	wantCode(t, r, 0)
	requests := m.requests()
	if len(requests) == 0 {
		t.Fatal("there is no request")
	}
	for _, want := range []string{"Be kind", "tools:dig", "reviewer"} {
		if !strings.Contains(string(requests[0].Body), want) {
			t.Errorf("the request does not have %q", want)
		}
	}
	report := w.injectionReport()
	var plugins []string
	for _, p := range report.Plugins {
		plugins = append(plugins, p.Name+" "+p.Path+" "+p.Replaced)
		if p.Injected != strings.HasPrefix(p.Path, injection.Dir) {
			t.Errorf("%+v", p)
		}
	}
	if want := []string{"workspace /opt/agentic/plugins/workspace ", "sdlc /etc/agentic/workspace/plugins/sdlc /opt/agentic/plugins/sdlc", "tools /etc/agentic/workspace/plugins/tools "}; !slices.Equal(plugins, want) {
		t.Errorf("plugins: %q", plugins)
	}
	var copies []string
	for _, c := range report.Copies {
		copies = append(copies, c.To+" "+c.State)
	}
	if want := []string{"/workspace/CLAUDE.md created", "/home/agent/.claude/agents/na me\nx.md created", "/home/agent/.claude/agents/reviewer.md created"}; !slices.Equal(copies, want) {
		t.Errorf("copies: %q", copies)
	}

	// The same again, in the same container.
	w.start()
	wantCode(t, w.wait(), 0)
	for _, c := range w.injectionReport().Copies {
		if c.State != "unchanged" {
			t.Errorf("%+v", c)
		}
	}
}

func TestB8SettingsChoose(t *testing.T) {
	parallel(t)
	r := run(t, bash(`stat -c '%a %n' /workspace/CLAUDE.md /elsewhere/agents/*; cat /workspace/CLAUDE.md; echo "$AGENTIC_PLUGIN_FLAGS"`), injected(t, whole), user("0"),
		env("AGENTIC_WORKSPACE_CONTEXT=OTHER.md", "AGENTIC_WORKSPACE_PLUGINS=tools", "AGENTIC_WORKSPACE_AGENTS=reviewer", "CLAUDE_CONFIG_DIR=/elsewhere", "AGENTIC_PLUGINS=sdlc"))
	wantCode(t, r, 0)
	if want := "600 /workspace/CLAUDE.md\n600 /elsewhere/agents/reviewer.md\n# Be quick\n" +
		"--plugin-dir=/run/agentic/views/sdlc --plugin-dir=/etc/agentic/workspace/plugins/tools\n"; strings.ReplaceAll(r.stdout, "/opt/agentic/plugins/sdlc", "/run/agentic/views/sdlc") != want {
		t.Errorf("%q", r.stdout)
	}
}

// Kubernetes puts what a ConfigMap or Secret holds behind two symlinks.
func TestB8MountedAsKubernetesDoes(t *testing.T) {
	parallel(t)
	behind := map[string]string{}
	for name, text := range whole {
		behind["..2026_11_21/"+name] = text
	}
	option := injected(t, behind, func(dir string) {
		os.Symlink("..2026_11_21", filepath.Join(dir, "..data"))
		for _, name := range []string{"CLAUDE.md", "plugins", "agents"} {
			os.Symlink("..data/"+name, filepath.Join(dir, name))
		}
	})
	w := start(t, bash("cat CLAUDE.md ~/.claude/agents/reviewer.md"), option)
	r := w.wait()
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "# Be kind\n", "Review.\n")
	if got := w.injectionReport(); len(got.Plugins) != 3 || len(got.Copies) != 3 {
		t.Errorf("%+v", got)
	}
}

func TestB8DifferentFileIsNotLost(t *testing.T) {
	parallel(t)
	files := map[string]string{"CLAUDE.md": "theirs\n", "agents/a.md": "theirs\n"}
	prepare := func(options ...option) *workspace {
		w := create(t, image, bash("cat CLAUDE.md ~/a.md"), append(options, injected(t, files), env("CLAUDE_CONFIG_DIR=/workspace/config"))...)
		w.copyIn("/workspace", "CLAUDE.md", "mine\n")
		w.start()
		return w
	}
	w := prepare()
	r := w.wait()
	wantCode(t, r, 78)
	wantIn(t, r.stderr, "cannot copy /etc/agentic/workspace/CLAUDE.md /workspace/CLAUDE.md: a different file is there", "AGENTIC_WORKSPACE_CONTEXT_REPLACE=1")
	if got := w.files("/workspace"); len(got) != 1 || got["workspace/CLAUDE.md"] != "mine\n" {
		t.Errorf("boot refused, but changed %q", got)
	}
	w = prepare(env("AGENTIC_WORKSPACE_CONTEXT_REPLACE=1"))
	wantIn(t, w.wait().stdout, "theirs\n")
	if c := w.injectionReport().Copies; len(c) != 2 || c[0].State != "replaced" || c[1].State != "created" {
		t.Errorf("%+v", c)
	}
}

func TestB8BadInjectionRefusesAllAtOnce(t *testing.T) {
	parallel(t)
	option := injected(t, map[string]string{
		"plugins/bad/.claude-plugin/plugin.json":      "{",
		"plugins/leads/.claude-plugin/plugin.json":    `{"name": "leads"}`,
		"plugins/twin/.claude-plugin/plugin.json":     `{"name": "leads2"}`,
		"plugins/twin2/.claude-plugin/plugin.json":    `{"name": "leads2"}`,
		"plugins/requires/.claude-plugin/plugin.json": `{"name": "requires", "requires_env": {"INJECTED_KEY": {"description": "For the vault.", "required": true}}}`,
		"agents/large.md":                             strings.Repeat("x", 1<<20+1),
	}, func(dir string) {
		os.Symlink("/etc/passwd", filepath.Join(dir, "CLAUDE.md"))
		os.Symlink("../../../../etc/passwd", filepath.Join(dir, "agents/out.md"))
		os.Symlink("/root", filepath.Join(dir, "plugins/leads/skills"))
		os.Mkdir(filepath.Join(dir, "agents/dir.md"), 0o755)
		if err := syscall.Mkfifo(filepath.Join(dir, "agents/fifo.md"), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	r := refused(t, option)
	wantIn(t, r.stderr,
		"cannot inject CLAUDE.md /etc/agentic/workspace/CLAUDE.md: it is a symlink that leads out of the mounted directory",
		"agents/out.md: it is a symlink that leads out of the mounted directory",
		"plugins/leads/skills: it is a symlink that leads out of the mounted directory",
		"agents/large.md: it has 1048577 bytes", "agents/dir.md: it is not a regular file", "agents/fifo.md: it is not a regular file",
		"plugins/bad/.claude-plugin/plugin.json:1:2", "twin2/.claude-plugin/plugin.json:1:10", "requires INJECTED_KEY, which is not set: For the vault.")
	if strings.Contains(r.stderr, "root:") {
		t.Errorf("a file from outside is shown:\n%s", r.stderr)
	}

	r = refused(t, injected(t, whole), env("AGENTIC_WORKSPACE_CONTEXT=../x", "AGENTIC_WORKSPACE_PLUGINS=..:.hidden:a/b:absent:none", "AGENTIC_WORKSPACE_AGENTS=absent:x/y"))
	wantIn(t, r.stderr, `cannot use AGENTIC_WORKSPACE_CONTEXT: \"../x\" is no plain name`, `AGENTIC_WORKSPACE_PLUGINS: \"..\" is`, `\".hidden\" is`, `\"a/b\" is`, `\"x/y\" is`,
		"plugins/absent: it does not exist", "plugins/none: it has no .claude-plugin/plugin.json", "agents/absent.md: it does not exist")

	r = refused(t, env("AGENTIC_WORKSPACE_CONTEXT=x.md", "AGENTIC_WORKSPACE_PLUGINS=x", "AGENTIC_WORKSPACE_AGENTS=x"))
	wantIn(t, r.stderr, "cannot use AGENTIC_WORKSPACE_CONTEXT /etc/agentic/workspace: it does not exist", "AGENTIC_WORKSPACE_PLUGINS", "AGENTIC_WORKSPACE_AGENTS")
}

func TestB8UnreadableInjection(t *testing.T) {
	parallel(t)
	r := refused(t, injected(t, whole, func(dir string) {
		os.Chmod(filepath.Join(dir, "CLAUDE.md"), 0)
		os.Chmod(filepath.Join(dir, "agents"), 0)
		os.Chmod(filepath.Join(dir, "plugins"), 0)
		t.Cleanup(func() { os.Chmod(filepath.Join(dir, "agents"), 0o755); os.Chmod(filepath.Join(dir, "plugins"), 0o755) })
	}))
	wantIn(t, r.stderr, "/etc/agentic/workspace/CLAUDE.md: permission denied", "/etc/agentic/workspace/agents: permission denied", "/etc/agentic/workspace/plugins: permission denied")
	wantIn(t, refused(t, bind(t, "go.mod", injection.Dir)).stderr, "cannot inject directory /etc/agentic/workspace: not a directory")
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// agentID is a user who is not root, for what root may do and others not.
const agentID = 1000

// scene is a directory with everything that a boot reads and writes.
type scene struct {
	t   *testing.T
	dir string
	env []string
	uid uint32
}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	s := &scene{t: t, dir: dir}
	for _, name := range []string{"home", "plugins", "repos", "secrets"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.path("home"), "AGENTIC_PLUGINS_DIR=" + s.path("plugins"),
		"AGENTIC_REPOS_DIR=" + s.path("repos"), "AGENTIC_MCP_BASELINE=" + s.path("baseline.json"), "AGENTIC_SECRETS_DIR=" + s.path("secrets"),
		"AGENTIC_RUNTIME_DIR=" + s.path("run"), "AGENTIC_WORKSPACE_DIR=" + s.path("ws"), "AGENTIC_LOG_LEVEL=warn"}
	s.write("baseline.json", "{\"mcpServers\": {}}")
	return s
}

func (s *scene) path(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) write(name, content string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// list names every file below the scene, with its size and time of change.
func (s *scene) list() string {
	var b strings.Builder
	filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintln(&b, path, info.Size(), info.ModTime())
		}
		return nil
	})
	return b.String()
}

type logLine struct {
	Level, Message, Hint, File string
	Line, Column               int
}

// run starts agent-init and returns its exit code, its log lines at warn and
// above, and its stdout.
func (s *scene) run(args ...string) (code int, lines []logLine, stdout string) {
	s.t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(s.env, "RUN_AS_AGENT_INIT=1")
	cmd.Dir = s.dir
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	if s.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: s.uid, Gid: s.uid}}
	}
	var exit *exec.ExitError
	if e := cmd.Run(); e != nil && !errors.As(e, &exit) {
		s.t.Fatal(e)
	}
	for _, text := range strings.Split(strings.TrimSpace(err.String()), "\n") {
		var l logLine
		if json.Unmarshal([]byte(text), &l) == nil && l.Level != "" {
			lines = append(lines, l)
		} else if text != "" && !strings.Contains(text, `"provider":"agent-init"`) {
			s.t.Errorf("stderr has a line that is no log line: %s", text)
		}
	}
	return cmd.ProcessState.ExitCode(), lines, out.String()
}

// documents are ways in which a JSON file can be bad, and what is said then.
var documents = []struct{ name, content, why string }{
	{"malformed", "{\"name\": \"x\"\n \"y\": 1}", `:2:2: `},
	{"empty", "", `:1:1: it is empty`},
	{"large", `{"name": "` + strings.Repeat("x", 2<<20) + `"}`, `: it has \d+ bytes, more than the limit of 1048576`},
	{"deep", strings.Repeat("[", 100_000), `:1:102: it is nested more than 100 levels deep`},
	{"list", "[]", `:1:1: it holds an array, not an object`},
	{"duplicate key", "{\"name\": \"x\",\n \"name\": \"y\"}", `:2:2: duplicate key "name"`},
	{"BOM", "\xef\xbb\xbf{}", `:1:1: it begins with a byte order mark`},
	{"not UTF-8", "{\"name\": \"\xff\"}", `:1:11: it is not valid UTF-8`},
}

func TestC3BadInputRefusesWithOneLineAndWritesNothing(t *testing.T) {
	type badInput struct {
		name string
		make func(s *scene)
		want string
	}
	var cases []badInput
	manifest, mcp := "plugins/p/.claude-plugin/plugin.json", "repos/r/.claude-ops/mcp.json"
	for _, file := range []string{manifest, mcp, "baseline.json"} {
		for _, d := range documents {
			cases = append(cases, badInput{d.name + " " + file, func(s *scene) { s.write(file, d.content) }, "^cannot (read|use) [^:]*/" + file + d.why})
		}
		cases = append(cases, badInput{"unreadable " + file, func(s *scene) {
			s.write(file, `{"name": "p"}`)
			os.Chmod(s.path(file), 0)
			os.Chown(s.path(file), 0, 0)
		}, "^cannot read [^:]*/" + file + `: permission denied for uid 1000`})
	}
	cases = append(cases, []badInput{
		{"wrong type in a manifest", func(s *scene) { s.write(manifest, `{"name": ["p"]}`) }, `plugin.json:1:10: "name" is an array, not a string`},
		{"wrong type in an MCP config", func(s *scene) { s.write(mcp, `{"mcpServers": {"a": {"command": 1}}}`) }, `mcp.json:1:\d+: `},
		{"entry that the CLI drops", func(s *scene) { s.write(mcp, `{"mcpServers": {"a": {}}}`) }, `mcp.json:1:\d+: .*"a"`},
		{"dangling plugin", func(s *scene) { os.Symlink("nowhere", s.path("plugins/p")) }, `plugins/p: it is a symlink to nowhere, which does not exist`},
		{"dangling repo", func(s *scene) { os.Symlink("nowhere", s.path("repos/r")) }, `repos/r: it is a symlink to nothing`},
		{"plugin that is a file", func(s *scene) { s.write("plugins/p", "zip") }, `plugins/p: it is a file, not a directory`},
		{"repo that is a file", func(s *scene) { s.write("repos/r", "x") }, `repos/r: it is a file, not a directory`},
		{"plugins directory that is a file", func(s *scene) { os.Remove(s.path("plugins")); s.write("plugins", "x") }, `/plugins: .*not a directory`},
		{"repos directory that is a file", func(s *scene) { os.Remove(s.path("repos")); s.write("repos", "x") }, `/repos: .*not a directory`},
		{"unreadable plugin directory", func(s *scene) { os.Mkdir(s.path("plugins/p"), 0) }, `plugins/p: permission denied`},
		{"unreadable repo", func(s *scene) { os.Mkdir(s.path("repos/r"), 0) }, `repos/r: permission denied`},
		{"token with a newline", func(s *scene) { s.env = append(s.env, "GITHUB_TOKEN=ghp_first\nsecond") }, `^cannot use GITHUB_TOKEN: `},
		{"secret file that is missing", func(s *scene) { s.env = append(s.env, "GITHUB_TOKEN_FILE="+s.path("none")) }, `GITHUB_TOKEN.*/none`},
		{"unparsable variable", func(s *scene) { s.env = append(s.env, "AGENTIC_STOP_GRACE=soon") }, `^cannot use AGENTIC_STOP_GRACE: "soon" is no duration`},
		{"two plugins of one name", func(s *scene) {
			s.write("plugins/a/.claude-plugin/plugin.json", `{"name": "p"}`)
			s.write("plugins/b/.claude-plugin/plugin.json", `{"name": "p"}`)
		}, `plugins/b/.claude-plugin/plugin.json:1:10: its name "p" is also that of .*/plugins/a`},
	}...)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.uid = agentID
			c.make(s)
			// The scene belongs to the user who boots, so that only the check
			// keeps boot from writing.
			for _, name := range []string{".", "home"} {
				if err := os.Chown(s.path(name), agentID, agentID); err != nil {
					t.Fatal(err)
				}
			}
			before := s.list()
			code, lines, stdout := s.run("touch", s.path("ran"))
			if code != exitRefused {
				t.Errorf("exit code %d", code)
			}
			var errs []logLine
			for _, l := range lines {
				if l.Level == "error" {
					errs = append(errs, l)
				}
			}
			if len(errs) != 1 || !regexp.MustCompile(c.want).MatchString(errs[0].Message) {
				t.Errorf("got %+v\nwant one error that matches %s", errs, c.want)
			}
			if after := s.list(); after != before {
				t.Errorf("files changed:\n%s\n->\n%s", before, after)
			}
			if stdout != "" {
				t.Errorf("stdout: %s", stdout)
			}
			for _, l := range lines {
				if strings.Contains(l.Message+l.Hint, "ghp_first") || strings.Contains(l.Message, "goroutine ") {
					t.Errorf("shows what it must not: %+v", l)
				}
			}
		})
	}
}

func TestPluginErrorsSkipLeavesOutAndSaysSo(t *testing.T) {
	s := newScene(t)
	s.env = append(s.env, "AGENTIC_PLUGIN_ERRORS=skip")
	s.write("plugins/bad/.claude-plugin/plugin.json", "{")
	s.write("plugins/good/.claude-plugin/plugin.json", `{"name": "good"}`)
	s.write("repos/bad/.claude-ops/mcp.json", `{"mcpServers": {"x": {}, "y": {"command": "true"}}}`)
	s.write("repos/good/.claude-ops/mcp.json", `{"mcpServers": {"z": {"command": "true"}}}`)
	s.write("repos/file", "x")
	code, lines, stdout := s.run("sh", "-c", "echo $AGENTIC_PLUGIN_FLAGS; cat "+s.path("run/mcp.json"))
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(stdout, "plugins/good ") || strings.Contains(stdout, "plugins/bad") || !strings.Contains(stdout, `"z"`) || strings.Contains(stdout, `"y"`) {
		t.Error(stdout)
	}
	var said strings.Builder
	for _, l := range lines {
		if l.Level != "warn" {
			t.Errorf("%+v", l)
		}
		said.WriteString(l.Message + "\n")
	}
	for _, want := range []string{"plugins/bad/.claude-plugin/plugin.json:1:2", "repos/bad/.claude-ops/mcp.json:1:", "repos/file"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("nothing is said of %s in:\n%s", want, said.String())
		}
	}
}

func TestOddButGoodInputWorks(t *testing.T) {
	s := newScene(t)
	odd := []string{"with blank", `quo"te's`, "new\nline", "ünïcødé", "$(reboot)", "-dash", "tab\tbed"}
	for i, name := range odd {
		s.write("plugins/"+name+"/.claude-plugin/plugin.json", fmt.Sprintf(`{"name": "p%d"}`, i))
		s.write("repos/"+name+"/.claude-ops/mcp.json", fmt.Sprintf(`{"mcpServers": {"s%d": {"command": "true"}}}`, i))
	}
	code, lines, stdout := s.run("sh", "-c", `eval "set -- $AGENTIC_PLUGIN_FLAGS"; for a; do printf '%s\0' "$a"; done`)
	if code != 0 {
		t.Errorf("exit code %d: %+v", code, lines)
	}
	flags := strings.Split(strings.TrimSuffix(stdout, "\x00"), "\x00")
	if len(flags) != len(odd)+1 {
		t.Fatalf("%d flags: %q", len(flags), flags)
	}
	for _, flag := range flags[:len(odd)] {
		if _, err := os.Stat(strings.TrimPrefix(flag, "--plugin-dir=")); err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(s.path("run/repos.json"))
	var m struct{ Repos []struct{ Name string } }
	if err != nil || json.Unmarshal(data, &m) != nil || len(m.Repos) != len(odd) {
		t.Errorf("%v %s", err, data)
	}
}

func TestP1AThousandPlugins(t *testing.T) {
	s := newScene(t)
	for i := range 1000 {
		s.write(fmt.Sprintf("plugins/p%04d/.claude-plugin/plugin.json", i), fmt.Sprintf(`{"name": "p%d"}`, i))
	}
	s.write("bin/claude", "#!/bin/sh\necho $#\n")
	os.Chmod(s.path("bin/claude"), 0o755)
	code, lines, stdout := s.run(s.path("bin/claude"), "-p")
	if code != 0 || stdout != "1002\n" {
		t.Errorf("%d %s %+v", code, stdout, lines)
	}
}

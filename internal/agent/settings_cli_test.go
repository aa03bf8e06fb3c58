package agent

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-init/internal/clitest"
	"agent-init/internal/standin"
)

// cli is a run of the real CLI in which the model calls a tool once.
type cli struct {
	env map[string]string
	// etc replaces /etc/claude-code, unless it is empty.
	etc string
	// tool is what the model calls; nothing without a name.
	tool standin.ToolUse
}

func bashTool(command string) standin.ToolUse {
	return standin.ToolUse{Name: "Bash", Input: map[string]any{"command": command}}
}

// run returns the CLI's stdout: what the tool printed.
func (c cli) run(t *testing.T, s Session, argv []string) string {
	t.Helper()
	var script standin.Script
	if c.tool.Name != "" {
		script.Turns = []standin.Turn{{ToolUses: []standin.ToolUse{c.tool}}, {Text: "{tool_results}"}}
	}
	server, err := standin.Start(script, "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), clitest.Path(t), argv[1:]...)
	if c.etc != "" {
		if os.Getuid() != 0 {
			if os.Getenv("CI") == "true" {
				t.Fatal("cannot put managed settings in place: this needs root")
			}
			t.Skip("managed settings can be put in place by root only")
		}
		// Nothing of /etc is needed but the settings.
		cmd = exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", `etc=$1; shift
			mount -t tmpfs none /etc && mkdir /etc/claude-code && cp -r "$etc/." /etc/claude-code && exec "$@"`, "sh", c.etc, clitest.Path(t)}, argv[1:]...)...)
		// Unshareflags, unlike Cloneflags, keeps the mount from the rest of the machine.
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	cmd.Dir = s.Dir
	cmd.Env = []string{"HOME=" + s.Env("HOME"), "ANTHROPIC_API_KEY=any", "ANTHROPIC_BASE_URL=" + server.URL(), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	for name, value := range c.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if _, ok := c.env["PATH"]; !ok {
		cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", argv, err, out, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// prefixes makes a program for each name that adds the name to a log; spent
// returns the log, and empties it.
func prefixes(t *testing.T, names ...string) (dir string, spent func() string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		text := "#!/bin/sh\necho " + name + " >>" + dir + "/log\nexec /bin/sh -c \"$1\"\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func() string {
		data, _ := os.ReadFile(filepath.Join(dir, "log"))
		os.Remove(filepath.Join(dir, "log"))
		return strings.TrimSpace(string(data))
	}
}

// TestE3RealCLITakesThePrefixThatCounts compares what ReadSettings says with what
// the CLI does, and then with the tap's flag.
func TestE3RealCLITakesThePrefixThatCounts(t *testing.T) {
	bin, spent := prefixes(t, "env", "user", "project", "local", "flag", "flag2", "managed", "drop", "tap")
	at := func(name string) string { return setting(filepath.Join(bin, name)) }
	all := map[string]string{"home/.claude/settings.json": at("user"), "work/.claude/settings.json": at("project"), "work/.claude/settings.local.json": at("local")}
	with := func(name, text string) map[string]string {
		files := map[string]string{name: text}
		for name, text := range all {
			if _, ok := files[name]; !ok {
				files[name] = text
			}
		}
		return files
	}
	flags := []string{"--settings=" + at("flag"), "--settings", at("flag2")}
	const local, managed, drop = "work/.claude/settings.local.json", "etc/claude-code/managed-settings.json", "etc/claude-code/managed-settings.d/10.json"
	for _, tt := range []struct {
		name  string
		files map[string]string
		args  []string
		want  string
	}{
		{"environment", map[string]string{"work/x": ""}, nil, "env"},
		{"user", map[string]string{"home/.claude/settings.json": at("user"), "work/x": ""}, nil, "user"},
		{"local", all, nil, "local"},
		{"local broken", with(local, at("local")+"x"), nil, "project"},
		{"local of a wrong type", with(local, `{"disableAllHooks":"yes",`+at("local")[1:]), nil, "project"},
		{"local empty value", with(local, setting("")), nil, ""},
		{"local with a byte order mark", with(local, "\xef\xbb\xbf"+at("local")), nil, "local"},
		{"the last flag", all, flags, "flag2"},
		{"an empty flag", all, append(flags, "--settings="), "local"},
		{"two sources", all, []string{"--setting-sources=project,user"}, "project"},
		{"no sources", all, []string{"--setting-sources="}, "env"},
		{"a file", with("work/s.json", `{"model":"opus",`+at("flag")[1:]), []string{"--settings", "s.json"}, "flag"},
		{"a file that is broken", with("work/s.json", "{"), []string{"--settings", "s.json"}, "local"},
		{"managed", with(managed, at("managed")), flags, "managed"},
		{"a drop-in", map[string]string{managed: at("managed"), drop: at("drop"), "work/x": "", "home/x": ""}, []string{"--setting-sources="}, "drop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := write(t, tt.files)
			env := map[string]string{PrefixVariable: filepath.Join(bin, "env")}
			s := session(root, env, tt.args...)
			c := cli{env: env, tool: bashTool("echo done")}
			if tt.files[managed] != "" {
				c.etc = filepath.Join(root, "etc/claude-code")
			}
			settings, found := ReadSettings(s)
			if got := strings.TrimPrefix(settings.Prefix, bin+"/"); got != tt.want {
				t.Errorf("ReadSettings says %q", got)
			}
			argv := append([]string{"claude"}, tt.args...)
			prompt := []string{"--allowedTools=Bash", "-p", "--", "hi"}
			if out := c.run(t, s, append(argv, prompt...)); out != "done" || spent() != tt.want {
				t.Errorf("the CLI printed %q, not with %s", out, tt.want)
			}
			if tt.args == nil && tt.name != "local" {
				return
			}
			doc := filepath.Join(root, "doc")
			tapped, _ := settings.WithTap(argv, filepath.Join(bin, "tap"), doc)
			if cmp.Equal(tapped.Argv, argv) {
				if !settings.Managed && len(found) == 0 {
					t.Error("the arguments have no prefix, and nobody says why")
				}
				return
			}
			if tapped.Document != nil {
				if err := os.WriteFile(doc, tapped.Document, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if out := c.run(t, s, append(tapped.Argv, prompt...)); out != "done" || spent() != "tap" {
				t.Errorf("with %q the CLI printed %q, not with the tap", tapped.Argv, out)
			}
		})
	}
}

// TestE3RealCLITakesTheFlagBeforeSubcommands says that inserting it first does no
// harm to what is no session.
func TestE3RealCLITakesTheFlagBeforeSubcommands(t *testing.T) {
	s := session(write(t, map[string]string{"work/x": "", "home/x": ""}), nil)
	for _, args := range [][]string{{"--version"}, {"plugin", "list"}, {"mcp", "list"}, {"--help"}} {
		plain := cli{}.run(t, s, append([]string{"claude"}, args...))
		got := cli{}.run(t, s, append([]string{"claude", "--settings=" + setting("/tap")}, args...))
		if diff := cmp.Diff(plain, got); diff != "" || plain == "" {
			t.Errorf("%q: %s", args, diff)
		}
	}
}

// TestE3RealCLITakesRulesFromThePlaceOfTheFile is why WithTap makes no copy of
// some files.
func TestE3RealCLITakesRulesFromThePlaceOfTheFile(t *testing.T) {
	root := write(t, map[string]string{"work/x": "", "home/x": "", "original/secret": "s3cret", "copy/x": "",
		"original/s.json": `{"permissions":{"deny":["Read(/secret)"]}}`, "copy/s.json": `{"permissions":{"deny":["Read(/secret)"]}}`})
	s := session(root, nil)
	for _, place := range []string{"original", "copy"} {
		c := cli{tool: standin.ToolUse{Name: "Read", Input: map[string]any{"file_path": filepath.Join(root, "original/secret")}}}
		out := c.run(t, s, []string{"claude", "--settings=" + filepath.Join(root, place, "s.json"), "--allowedTools=Read", "-p", "hi"})
		if shown := strings.Contains(out, "s3cret"); shown != (place == "copy") {
			t.Errorf("with the rule in %s the CLI printed %q", place, out)
		}
	}
}

func TestE3RealCLISilencesHooks(t *testing.T) {
	root := write(t, map[string]string{"work/x": "", "home/x": "", "plug/.claude-plugin/plugin.json": `{"name":"plug"}`})
	log := filepath.Join(root, "log")
	hooks := func(name string) string {
		text, err := json.Marshal("echo " + name + " >>" + log)
		if err != nil {
			t.Fatal(err)
		}
		return `"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":` + string(text) + `}]}]}`
	}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("plug/hooks/hooks.json", "{"+hooks("plugin")+"}")
	for _, tt := range []struct {
		name, user, project, managed string
		args                         []string
		want                         bool
	}{
		{name: "nothing", want: true},
		{name: "user", user: `{"disableAllHooks":true}`},
		{name: "project says no", user: `{"disableAllHooks":true}`, project: `{"disableAllHooks":false}`, want: true},
		{name: "flag", project: `{"disableAllHooks":false}`, args: []string{`--settings={"disableAllHooks":true}`}},
		{name: "flag says no", project: `{"disableAllHooks":true}`, args: []string{`--settings={"disableAllHooks":false}`}, want: true},
		{name: "managed only", managed: `{"allowManagedHooksOnly":true}`},
		{name: "managed only, said by the user", user: `{"allowManagedHooksOnly":true}`, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			put("home/.claude/settings.json", tt.user)
			put("work/.claude/settings.json", tt.project)
			put("etc/claude-code/managed-settings.json", tt.managed)
			os.Remove(log)
			s := session(root, nil, tt.args...)
			settings, _ := ReadSettings(s)
			c := cli{}
			if tt.managed != "" {
				c.etc = filepath.Join(root, "etc/claude-code")
			}
			argv := append([]string{"claude", "--plugin-dir=" + filepath.Join(root, "plug")}, tt.args...)
			c.run(t, s, append(argv, "-p", "hi"))
			_, err := os.Stat(log)
			if ran := err == nil; ran != tt.want || settings.HooksOff == tt.want {
				t.Errorf("hooks ran: %v, HooksOff %v", ran, settings.HooksOff)
			}
		})
	}
}

func TestE3RealCLITakesTheShellOfBashShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(bash)
	if err != nil {
		t.Fatal(err)
	}
	root := write(t, map[string]string{"work/x": "", "home/x": "", "plain/bash": "no program"})
	// A bash under the name of zsh is good enough to see which of them is run.
	for _, name := range []string{"a/bash", "z/zsh", "other/bash-5"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const system = ":/usr/bin:/bin"
	for _, tt := range []struct{ name, own, shell, path string }{
		{name: "none"},
		{name: "SHELL", shell: "/bin/bash"},
		{name: "SHELL of another name", shell: root + "/other/bash-5"},
		{name: "SHELL that is no such shell", shell: "/bin/sh"},
		{name: "SHELL that is missing", shell: "/nonexistent/bash", path: root + "/a" + system},
		{name: "SHELL that cannot be executed", shell: root + "/plain/bash"},
		{name: "SHELL without a path", shell: "bash"},
		{name: "zsh by SHELL", shell: root + "/z/zsh"},
		{name: "zsh on PATH", path: root + "/z" + system},
		{name: "zsh on PATH, bash wanted", shell: "/nonexistent/bash", path: root + "/z" + system},
		{name: "bash on PATH", path: root + "/a" + system},
		{name: "CLAUDE_CODE_SHELL", own: root + "/a/bash", shell: "/bin/bash"},
		{name: "CLAUDE_CODE_SHELL that is missing", own: "/nonexistent/bash", path: root + "/a:" + root + "/z" + system},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"PATH": tt.path}
			if tt.path == "" {
				env["PATH"] = strings.TrimPrefix(system, ":")
			}
			for name, value := range map[string]string{"SHELL": tt.shell, "CLAUDE_CODE_SHELL": tt.own} {
				if value != "" {
					env[name] = value
				}
			}
			s := session(root, env)
			want := BashShell(s.Env)
			got := cli{env: env, tool: bashTool(`echo "$0 $SHELL $(readlink /proc/$$/exe)"`)}.run(t, s, []string{"claude", "--allowedTools=Bash", "-p", "hi"})
			words := strings.Fields(got)
			if len(words) != 3 || words[0] != want || words[1] != want {
				t.Fatalf("the CLI ran %q, BashShell says %q", got, want)
			}
			found, err := exec.LookPath(want)
			if err != nil {
				t.Fatal(err)
			}
			if exe, err := filepath.EvalSymlinks(found); err != nil || exe != words[2] {
				t.Errorf("%s is %s, but %s ran", want, exe, words[2])
			}
			env["SHELL"] = words[1]
			if again := BashShell(s.Env); again != want {
				t.Errorf("for the command itself it says %q", again)
			}
		})
	}
}

package plugin

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-init/internal/clitest"
	"agent-init/internal/standin"
)

// loaded is what the CLI says it has loaded.
type loaded struct {
	Plugins []struct{ Name, Path string }
	Errors  []any                           `json:"plugin_errors"`
	MCP     []struct{ Name, Status string } `json:"mcp_servers"`
	Slash   []string                        `json:"slash_commands"`

	Skills, Agents []string
}

// session runs a prompt with plugins and returns what the CLI loaded, and what
// its hooks wrote to the file that LOG names, line by line and sorted.
func session(t *testing.T, script standin.Script, dirs ...string) (init loaded, log []string, s *standin.Server) {
	t.Helper()
	s, err := standin.Start(script, "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	home := t.TempDir()
	file := filepath.Join(home, "log")
	args := []string{"--allowedTools=Skill,Agent,Bash", "--output-format=stream-json", "--verbose"}
	for _, dir := range dirs {
		args = append(args, "--plugin-dir="+dir)
	}
	cmd := exec.CommandContext(t.Context(), clitest.Path(t), append(args, "-p", "hello")...)
	cmd.Dir = home
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=any", "ANTHROPIC_BASE_URL=" + s.URL(),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS=4500", "LOG=" + file,
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, `"subtype":"init"`) {
			if err := json.Unmarshal([]byte(line), &init); err != nil {
				t.Fatal(err)
			}
		}
	}
	data, _ := os.ReadFile(file)
	log = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	slices.Sort(log)
	return init, log, s
}

// program is a handler that writes its name, its arguments and the plugin's
// root to LOG.
const program = `#!/bin/sh
printf '%s' "${0##*/}" >>"$LOG.$$"
printf ' <%s>' "$@" >>"$LOG.$$"
echo " root=$CLAUDE_PLUGIN_ROOT file=$(cat "$CLAUDE_PLUGIN_ROOT/data/file")" >>"$LOG.$$"
cat "$LOG.$$" >>"$LOG"
`

// fullPlugin has a component of each kind; own are its hooks and manifest.
func fullPlugin(t *testing.T, name, variable string, own map[string]string) string {
	t.Helper()
	server := filepath.Join(t.TempDir(), "mcpserver")
	if out, err := exec.Command("go", "build", "-o", server, "../../scripts/mcpserver").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := tree(t, map[string]string{
		name + "/skills/sk/SKILL.md":  "---\nname: sk\ndescription: d\n---\nSKILL at ${" + variable + "} end\n",
		name + "/commands/co.md":      "---\ndescription: d\n---\nCOMMAND at ${" + variable + "} end\n",
		name + "/commands/sub/two.md": "---\ndescription: d\n---\nx\n",
		name + "/agents/ag.md":        "---\nname: ag\ndescription: d\n---\nAGENT at ${" + variable + "} end\n",
		name + "/agents/sub/ah.md":    "---\nname: ah\ndescription: d\n---\nx\n",
		name + "/.mcp.json":           `{"mcpServers": {"parts": {"command": "${` + variable + `}/srv/server", "args": ["-tool", "find", "-answer", "yes"]}}}`,
		name + "/srv/":                "",
		name + "/data/":               "",
		name + "/hooks/say":           program,
		".shared":                     "content",
	})
	write := func(name string, data []byte, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range own {
		write(name+"/"+file, []byte(text), 0o644)
	}
	if err := os.Chmod(filepath.Join(dir, name, "hooks/say"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(server, filepath.Join(dir, name, "srv/server")); err != nil {
		t.Fatal(err)
	}
	// A plugin may be a symlink itself, and lead elsewhere by relative ones.
	// What a plugin leads to need not be in it.
	if err := os.Symlink("../../.shared", filepath.Join(dir, name, "data/file")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// uses makes the model call a skill, a command, an agent and a tool.
func uses(name string) standin.Script {
	return standin.Script{Turns: []standin.Turn{
		{ToolUses: []standin.ToolUse{{Name: "Skill", Input: map[string]any{"skill": name + ":sk"}}}},
		{ToolUses: []standin.ToolUse{{Name: "Skill", Input: map[string]any{"skill": name + ":co"}}}},
		{ToolUses: []standin.ToolUse{{Name: "Bash", Input: map[string]any{"command": "true"}}}},
		{Text: "done"},
	}}
}

// checkComponents wants all of fullPlugin loaded from the view.
func checkComponents(t *testing.T, init loaded, v View) {
	t.Helper()
	if len(init.Plugins) != 1 || init.Plugins[0].Name != v.Plugin || init.Plugins[0].Path != v.Path || len(init.Errors) != 0 {
		t.Errorf("loaded %+v, errors %v", init.Plugins, init.Errors)
	}
	for what, got := range map[string][]string{"sk": init.Skills, "co": init.Slash, "sub:two": init.Slash, "ag": init.Agents, "sub:ah": init.Agents} {
		if !slices.Contains(got, v.Plugin+":"+what) {
			t.Errorf("no %s in %q", what, got)
		}
	}
	if len(init.MCP) != 1 || init.MCP[0].Name != "plugin:"+v.Plugin+":parts" || init.MCP[0].Status != "connected" && init.MCP[0].Status != "pending" {
		t.Errorf("MCP servers: %+v", init.MCP)
	}
}

// checkExpanded wants the view's path in the text of skill and command.
func checkExpanded(t *testing.T, s *standin.Server, v View) {
	t.Helper()
	requests := s.Requests()
	data, err := json.Marshal(requests[len(requests)-1])
	if err != nil {
		t.Fatal(err)
	}
	path, _ := json.Marshal(v.Path)
	for _, what := range []string{"SKILL", "COMMAND"} {
		if want := what + " at " + strings.Trim(string(path), `"`) + " end"; !strings.Contains(string(data), want) {
			t.Errorf("no %q in %s", want, data)
		}
	}
}

// tapScript stands in for the tap: it says so in LOG and starts its arguments.
func tapScript(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent-tap-exec")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"tapped ${1##*/}\" >>\"$LOG\"\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestE3RealCLIRunsExecFormHooksOfAViewThroughTheTap(t *testing.T) {
	hook := func(args string) string {
		return `[{"hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/hooks/say", "args": [` + args + `]}]}]`
	}
	dir := fullPlugin(t, "a \"b'\n$(x)", "CLAUDE_PLUGIN_ROOT", map[string]string{
		".claude-plugin/plugin.json": `{"name": "full", "hooks": [{"UserPromptSubmit": ` + hook(`"inline"`) + `}, "./config/stop.json"]}`,
		"hooks/hooks.json": `{"hooks": {"SessionStart": ` + hook(`"two words", "$HOME", "${CLAUDE_PLUGIN_ROOT}"`) + `,
			"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true", "args": []}]}],
			"SessionEnd": [{"hooks": [{"type": "command", "command": "sh", "args": ["-c", "sleep 2; echo late >>\"$LOG\""]},
				{"type": "command", "command": "sleep 2; echo late shell >>\"$LOG\""}]}]}}`,
		"config/stop.json": `{"hooks": {"Stop": ` + hook(`"named"`) + `}}`,
	})
	v, ok := viewOf(t, dir, ViewOptions{Dir: filepath.Join(t.TempDir(), "views"), TapExec: tapScript(t), SessionEndTimeout: 5})
	if !ok {
		t.Fatal("no view")
	}
	if err := v.Write(); err != nil {
		t.Fatal(err)
	}
	init, log, s := session(t, uses("full"), v.Path)
	checkComponents(t, init, v)
	checkExpanded(t, s, v)
	end := " root=" + v.Path + " file=content"
	want := slices.Sorted(slices.Values(strings.Split(strings.Join([]string{
		"say <two words> <$HOME> <" + v.Path + ">" + end, "say <inline>" + end, "say <named>" + end,
		"tapped say", "tapped say", "tapped say", "tapped true", "tapped sh", "late", "late shell",
	}, "\n"), "\n")))
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error(diff)
	}
}

func TestP5RealCLILoadsAKairoPlugin(t *testing.T) {
	dir := fullPlugin(t, "kairo", "KAIRO_PLUGIN_ROOT", map[string]string{
		".kairo-plugin/plugin.json": `{"name": "kay", "hooks": {"SESSION_START": [{"hooks": [{"type": "command", "command": "\"${KAIRO_PLUGIN_ROOT}/hooks/say\" start \"${KAIRO_PROJECT_DIR}\""}]}]}}`,
		"hooks/hooks.json": `{"hooks": {
			"PRE_ACTING": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "${KAIRO_PLUGIN_ROOT}/hooks/say", "args": ["exec", "${KAIRO_PLUGIN_DATA}"]}]}],
			"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "${KAIRO_PLUGIN_ROOT}/hooks/say", "args": ["both"]}]}],
			"PRE_COMPLETE": [{"hooks": [{"type": "command", "command": "echo complete >>\"$LOG\""}]}], "NOTIFICATION": []}}`,
	})
	v, ok := viewOf(t, dir, ViewOptions{Dir: filepath.Join(t.TempDir(), "views")})
	if !ok {
		t.Fatal("no view")
	}
	if err := v.Write(); err != nil {
		t.Fatal(err)
	}
	init, log, s := session(t, uses("kay"), v.Path)
	checkComponents(t, init, v)
	checkExpanded(t, s, v)
	// Data and project are below the session's home.
	home := homeIn(log)
	for i, line := range log {
		log[i] = strings.ReplaceAll(line, home, "HOME")
	}
	end := " root=" + v.Path + " file=content"
	want := []string{"complete", "say <both>" + end, "say <exec> <HOME/.claude/plugins/data/kay-inline>" + end, "say <start> <HOME>" + end}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error(diff)
	}
}

// homeIn is the project's directory in the line of the hook at the start.
func homeIn(log []string) string {
	for _, line := range log {
		if _, rest, ok := strings.Cut(line, "<start> <"); ok {
			home, _, _ := strings.Cut(rest, ">")
			return home
		}
	}
	return "\x00"
}

func TestE3RealCLILoadsWhatAViewLinksToAtTheRoot(t *testing.T) {
	files := map[string]string{
		"p" + manifest: `{"name": "p", "commands": ["./"], "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "true", "args": []}]}]}}`,
		"p/SKILL.md":   "---\nname: atroot\ndescription: d\n---\nx\n", "p/one.md": "---\ndescription: d\n---\nx\n", "p/sub/two.md": "---\ndescription: d\n---\nx\n",
	}
	dir := tree(t, files)
	before, _, _ := session(t, standin.Script{}, filepath.Join(dir, "p"))
	v, _ := viewOf(t, dir, ViewOptions{Dir: filepath.Join(t.TempDir(), "views"), TapExec: tapScript(t), SessionEndTimeout: 5})
	if err := v.Write(); err != nil {
		t.Fatal(err)
	}
	after, log, _ := session(t, standin.Script{}, v.Path)
	if diff := cmp.Diff(named("p:", before), named("p:", after)); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(log, []string{"tapped true"}) {
		t.Errorf("%q", log)
	}
}

// named are the skills, commands and agents of a plugin.
func named(prefix string, l loaded) []string {
	found := map[string]bool{}
	for _, name := range slices.Concat(l.Skills, l.Slash, l.Agents) {
		if strings.HasPrefix(name, prefix) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

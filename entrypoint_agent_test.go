package entrypoint_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/google/go-cmp/cmp"

	"agent-init/internal/standin"
)

// model is a stand-in for the Messages API in a network of its own, which holds
// nothing but loopback: what the agent CLI needs, it has to find there.
type model struct {
	t      *testing.T
	w      *workspace
	record string
}

func startModel(t *testing.T, script string) model {
	t.Helper()
	records := t.TempDir()
	command := []string{"-listen", "127.0.0.1:8080", "-record", "/records/requests"}
	options := []option{
		bind(t, tool(t, "standin"), "/standin"), entrypoint("/standin"),
		// The test reads the record and removes it.
		user(fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())),
		host(func(h *container.HostConfig) {
			h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: records, Target: "/records"})
		}),
	}
	if script != "" {
		command = append(command, "-script", "/script.json")
		options = append(options, bind(t, script, "/script.json"))
	}
	w := start(t, command, options...)
	w.await("http://127.0.0.1:8080")
	return model{t, w, filepath.Join(records, "requests")}
}

// talk lets a container's agent CLI talk to the stand-in.
func (m model) talk() option {
	return func(c *container.Config, h *container.HostConfig) {
		h.NetworkMode = container.NetworkMode("container:" + m.w.id)
		c.Env = append(c.Env, "ANTHROPIC_BASE_URL=http://127.0.0.1:8080", "ANTHROPIC_API_KEY=stand-in-without-a-key",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	}
}

// requests are those that offered tools.
func (m model) requests() (all []standin.Request) {
	m.t.Helper()
	f, err := os.Open(m.record)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	for dec := json.NewDecoder(bufio.NewReader(f)); dec.More(); {
		var r standin.Request
		if err := dec.Decode(&r); err != nil {
			m.t.Fatal(err)
		}
		if len(r.Tools) > 0 {
			all = append(all, r)
		}
	}
	return all
}

// streamLine is a line of the CLI's stream-json output.
type streamLine struct {
	Type, Subtype, Result string
	Skills                []string
	SlashCommands         []string                        `json:"slash_commands"`
	Plugins               []struct{ Name, Path string }   `json:"plugins"`
	MCPServers            []struct{ Name, Status string } `json:"mcp_servers"`
}

func stream(t *testing.T, out string) (init, result streamLine) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var l streamLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case l.Type == "system" && l.Subtype == "init":
			init = l
		case l.Type == "result":
			result = l
		}
	}
	return init, result
}

const mcpTools = "--allowedTools=mcp__stock__count,mcp__orders__last,mcp__shared__whose"

// M3: the repo's server "shared" replaces the baseline's and inherits no env of
// it. M4: the CLI, not agent-init, expands ${WAREHOUSE:-nowhere}.
func TestP3M3M4RealAgentUsesPluginsAndServersOfTwoRepos(t *testing.T) {
	parallel(t)
	m := startModel(t, "testdata/standin.json")
	w := start(t, []string{"claude", "-p", "--output-format=stream-json", "--verbose", mcpTools, "--", "how many?"},
		m.talk(), mounted(t), env("WAREHOUSE=north"))
	r := w.wait()
	wantCode(t, r, 0)
	init, answer := stream(t, r.stdout)
	want := "Answers: M6 bolts: 14 in warehouse north; M6 bolts: 40 on 2 November; the repo's, with []"
	if answer.Result != want {
		t.Errorf("the answer is %q, want %q\n%s", answer.Result, want, r.stderr)
	}

	var servers, plugins []string
	for _, s := range init.MCPServers {
		servers = append(servers, s.Name+" "+s.Status)
	}
	for _, p := range init.Plugins {
		plugins = append(plugins, p.Name+" "+p.Path)
	}
	slices.Sort(servers)
	if diff := cmp.Diff([]string{"orders connected", "shared connected", "stock connected"}, servers); diff != "" {
		t.Errorf("MCP servers of the CLI (-want +got):\n%s", diff)
	}
	if !slices.Contains(plugins, "greeter /opt/agentic/plugins/greeter") || !slices.Contains(init.Skills, "greeter:greet") || !slices.Contains(init.SlashCommands, "greeter:wave") {
		t.Errorf("the CLI has plugins %q, skills %q, commands %q", plugins, init.Skills, init.SlashCommands)
	}

	requests := m.requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests instead of 2", len(requests))
	}
	if requests[0].Prompt != "how many?" {
		t.Errorf("the prompt arrived as %q", requests[0].Prompt)
	}
	for _, name := range strings.Split(strings.TrimPrefix(mcpTools, "--allowedTools="), ",") {
		if !slices.Contains(requests[0].Tools, name) {
			t.Errorf("%s is not offered among %q", name, requests[0].Tools)
		}
	}
	if got := requests[1].ToolResults; len(got) != 3 || got[0].Text != "M6 bolts: 14 in warehouse north" {
		t.Errorf("tool results: %+v", got)
	}
}

func TestP3PromptThatLooksLikeFlags(t *testing.T) {
	parallel(t)
	m := startModel(t, "")
	const prompt = "--plugin-dir=/nowhere and --mcp-config x\n'quoted' $HOME"
	r := run(t, []string{"claude", "-p", "--", prompt}, m.talk(), mounted(t))
	wantCode(t, r, 0)
	if r.stdout != "you said: "+prompt+"\n" {
		t.Errorf("the CLI printed %q", r.stdout)
	}
	if tools := m.requests()[0].Tools; !slices.Contains(tools, "mcp__stock__count") {
		t.Errorf("no tool of the repos is offered: %q", tools)
	}
}

func TestP3SubcommandsOfTheAgent(t *testing.T) {
	labels := inspect(t).Config.Labels
	for name, test := range map[string]struct {
		command []string
		stdout  []string
	}{
		"version":     {[]string{"claude", "--version"}, []string{labels["agentic.versions.claude-code"] + " (Claude Code)"}},
		"plugin list": {[]string{"claude", "plugin", "list"}, []string{"greeter@inline", "Version: 1.2.3", "Path: /opt/agentic/plugins/greeter", "✔ loaded"}},
		// It lists what is configured for good, not what --mcp-config brings.
		"mcp list": {[]string{"claude", "mcp", "list"}, []string{"No MCP servers configured"}},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			r := run(t, test.command, mounted(t))
			wantCode(t, r, 0)
			wantIn(t, r.stdout, test.stdout...)
		})
	}
}

func TestP3ExecHasThePluginsToo(t *testing.T) {
	parallel(t)
	w := start(t, []string{"sleep", "infinity"}, mounted(t))
	w.await(`"event_type":"workspace_ready"`)
	r := w.exec("agent-init", "exec", "claude", "plugin", "list")
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "greeter@inline", "✔ loaded")
	if strings.Contains(r.stderr, "workspace_ready") {
		t.Errorf("a second boot:\n%s", r)
	}
	// run acts as exec inside of a workspace.
	r = w.exec(append([]string{"agent-init"}, bash(`echo "$AGENTIC_PLUGIN_FLAGS"; exit 7`)...)...)
	wantCode(t, r, 7)
	wantIn(t, r.stdout, "--plugin-dir=/opt/agentic/plugins/greeter", "--mcp-config=/run/agentic/mcp.json")
	wantCode(t, w.exec("agent-init", "exec", "no-such-command"), 127)
	wantCode(t, w.stop(), 143)
}

// The agent CLI runs its MCP servers in sessions of their own; a stop in the
// middle of a turn leaves none of them.
func TestS3StopInTheMiddleOfATurn(t *testing.T) {
	parallel(t)
	m := startModel(t, "testdata/standin-hold.json")
	w := start(t, []string{"claude", "-p", "--output-format=stream-json", "--verbose", mcpTools, "--", "how many?"}, m.talk(), mounted(t))
	w.await("14 in warehouse nowhere")
	r := w.stop()
	wantCode(t, r, 143)
	w.wantNoKill()
}

// tapSettings has the agent CLI call the tap, whatever a project's settings say.
const tapSettings = `--settings={"env":{"CLAUDE_CODE_SHELL_PREFIX":"/run/agentic/taps/run/agent-tap"}}`

func TestP3UnknownAgentGetsNoFlags(t *testing.T) {
	parallel(t)
	r := run(t, bash(`tr '\0' ' ' </proc/$$/cmdline`), mounted(t))
	wantCode(t, r, 0)
	if strings.Contains(r.stdout, "plugin-dir") {
		t.Errorf("bash was started as %q", r.stdout)
	}
	r = run(t, []string{"--agent", "claude", "echo", "last"}, mounted(t))
	wantCode(t, r, 0)
	if want := tapSettings + " --plugin-dir=/opt/agentic/plugins/greeter --mcp-config=/run/agentic/mcp.json last\n"; r.stdout != want {
		t.Errorf("echo was given %q, want %q", r.stdout, want)
	}
}

package entrypoint_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"agent-init/internal/injection"
)

// report is what boot.json and the event workspace_ready say, as far as tests
// look at it.
type report struct {
	Agent      string `json:"agent"`
	RuntimeDir string `json:"runtime_dir"`
	Plugins    []struct {
		Name, Version, Path string
		RequiresEnv         []struct {
			Name   string
			Set    bool
			Origin string
		} `json:"requires_env"`
		Components map[string][]string
	}
	MCPServers []struct {
		Name, Repo, File string
		Overrode         []struct{ Name, File string }
	} `json:"mcp_servers"`
	Repos    []struct{ Name, Path, Source string }
	Warnings []struct{ Message string }
}

// event finds the only event of a kind and reads its context.
func (r result) event(t *testing.T, kind string, context any) {
	t.Helper()
	found := 0
	for _, line := range strings.Split(r.stderr, "\n") {
		var e struct {
			Type    string `json:"event_type"`
			Context json.RawMessage
		}
		if json.Unmarshal([]byte(line), &e) != nil || e.Type != kind {
			continue
		}
		found++
		if err := json.Unmarshal(e.Context, context); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	if found != 1 {
		t.Fatalf("%d events %s in\n%s", found, kind, r)
	}
}

// mounted are the plugins, the repos with MCP servers, and the baseline of
// testdata.
func mounted(t *testing.T) option {
	plugins, repos := bind(t, "testdata/plugins", "/opt/agentic/plugins"), bind(t, "testdata/repos", "/repos")
	baseline, server := bind(t, "testdata/baseline.json", "/opt/agentic/mcp.json"), bind(t, tool(t, "mcpserver"), "/usr/local/bin/mcpserver")
	return func(c *container.Config, h *container.HostConfig) {
		for _, change := range []option{plugins, repos, baseline, server} {
			change(c, h)
		}
	}
}

func TestC1PlainCommand(t *testing.T) {
	parallel(t)
	r := run(t, []string{"printf", `%s|`, "a b", "--flag", `"q"`, "$HOME", ""})
	wantCode(t, r, 0)
	if want := `a b|--flag|"q"|$HOME||`; r.stdout != want {
		t.Errorf("stdout is %q, want %q", r.stdout, want)
	}
	for _, line := range strings.Split(strings.TrimSpace(r.stderr), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line on stderr is no JSON: %q", line)
		}
		if strings.Contains(line, `"warn"`) || strings.Contains(line, `"error"`) {
			t.Errorf("a clean boot complains: %s", line)
		}
	}
	wantIn(t, r.stderr, `"message":"workspace is ready"`, `"event_type":"workspace_ready"`)
}

func TestC2ExitCodes(t *testing.T) {
	docker(t)
	for name, test := range map[string]struct {
		command []string
		code    int
	}{
		"0":                       {[]string{"true"}, 0},
		"1":                       {[]string{"false"}, 1},
		"7":                       {bash("exit 7"), 7},
		"200":                     {bash("exit 200"), 200},
		"137 after KILL":          {bash("kill -KILL $$"), 137},
		"143 after TERM":          {bash("kill -TERM $$"), 143},
		"127 not found":           {[]string{"no-such-command"}, 127},
		"126 not executable":      {[]string{"/etc/passwd"}, 126},
		"126 directory":           {[]string{"/workspace"}, 126},
		"124 time is over":        {[]string{"--timeout", "300ms", "sleep", "infinity"}, 124},
		"64 usage":                {[]string{"--no-such-flag", "true"}, 64},
		"143 is a success":        {append([]string{"--success-code", "7", "--success-code", "143"}, bash("kill -TERM $$")...), 0},
		"7 beside a success code": {append([]string{"--success-code", "143"}, bash("exit 7")...), 7},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			wantCode(t, run(t, test.command), test.code)
		})
	}
}

// refused runs a command that boot must refuse: exit 78 and no change to the
// container's files.
func refused(t *testing.T, options ...option) result {
	t.Helper()
	w := start(t, []string{"touch", "/workspace/ran"}, options...)
	r := w.wait()
	wantCode(t, r, 78)
	if r.stdout != "" || strings.Contains(r.stderr, "goroutine") {
		t.Errorf("a refusal says more than it should:\n%s", r)
	}
	changes, err := w.ContainerDiff(w.ctx, w.id)
	w.must(err)
	for _, c := range changes {
		// Docker itself makes the place for a mount.
		if !strings.HasPrefix(injection.Dir+"/", c.Path+"/") {
			t.Errorf("boot refused, but changed %s (%s)", c.Path, c.Kind)
		}
	}
	return r
}

func TestC3MissingVariablesRefuse(t *testing.T) {
	parallel(t)
	plugins := bind(t, "testdata/demanding", "/opt/agentic/plugins")
	r := refused(t, plugins)
	wantIn(t, r.stderr, `plugin \"demanding\" requires WAREHOUSE_KEY, which is not set: the key to the warehouse`,
		`requires WAREHOUSE_REGION, which is not set`)

	given := run(t, bash(`echo "$WAREHOUSE_REGION"`), plugins, env("WAREHOUSE_KEY=abcdefgh", "WAREHOUSE_REGION=north"))
	wantCode(t, given, 0)
	wantIn(t, given.stdout, "north")
}

func TestC3MalformedFilesRefuseAllAtOnce(t *testing.T) {
	parallel(t)
	r := refused(t, bind(t, "testdata/broken/plugins", "/opt/agentic/plugins"), bind(t, "testdata/broken/repos", "/repos"),
		env("AGENTIC_STOP_GRACE=soon", "GITHUB_TOKEN=first-line\nsecond-line"))
	wantIn(t, r.stderr, "/opt/agentic/plugins/comma/.claude-plugin/plugin.json:2:18", `"line":2,"column":18`,
		"/repos/twice/.claude-ops/mcp.json:4:5", "AGENTIC_STOP_GRACE", "GITHUB_TOKEN")
	if strings.Contains(r.stderr, "second-line") {
		t.Errorf("a part of the token is shown:\n%s", r)
	}
	if n := strings.Count(r.stderr, `"level":"error"`); n != 4 {
		t.Errorf("%d errors instead of 4:\n%s", n, r)
	}
}

func TestB12ReportNamesWhatBootFound(t *testing.T) {
	parallel(t)
	w := start(t, []string{"true"}, mounted(t), env("WAREHOUSE=north"))
	r := w.wait()
	wantCode(t, r, 0)
	var said, written report
	r.event(t, "workspace_ready", &said)
	if err := json.Unmarshal([]byte(w.files("/run/agentic/boot.json")["boot.json"]), &written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written, said); diff != "" {
		t.Errorf("event and boot.json differ (-file +event):\n%s", diff)
	}
	var got []string
	for _, p := range said.Plugins {
		got = append(got, fmt.Sprintln("plugin", p.Name, p.Version, p.Path, p.RequiresEnv, p.Components))
	}
	for _, s := range said.MCPServers {
		got = append(got, fmt.Sprintln("server", s.Name, s.File, s.Overrode))
	}
	for _, p := range said.Repos {
		got = append(got, fmt.Sprintln("repo", p.Name, p.Path, p.Source))
	}
	want := []string{
		"plugin greeter 1.2.3 /opt/agentic/plugins/greeter [{WAREHOUSE true environment} {WAREHOUSE_TOKEN false }] map[commands:[wave] skills:[greet]]",
		"server shared /repos/stock/.claude-ops/mcp.json [{shared /opt/agentic/mcp.json}]",
		"server orders /repos/orders/.claude-ops/mcp.json []",
		"server stock /repos/stock/.claude-ops/mcp.json []",
		"repo orders /repos/orders manifest",
		"repo stock /repos/stock manifest",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(strings.Join(got, "")), "\n")); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

var milliseconds = regexp.MustCompile(`"ms": [0-9.]+`)

func TestB12TwoBootsWriteTheSame(t *testing.T) {
	parallel(t)
	boot := func(w *workspace) map[string]string {
		w.start()
		wantCode(t, w.wait(), 0)
		all := make(map[string]string)
		for _, dir := range []string{"/run/agentic", "/home/agent"} {
			maps.Copy(all, w.files(dir))
		}
		delete(all, "agentic/lock")         // names the process that held it
		delete(all, "agentic/events.jsonl") // tells when things happened
		all["agentic/boot.json"] = milliseconds.ReplaceAllString(all["agentic/boot.json"], `"ms": 0`)
		return all
	}
	options := []option{mounted(t), env("GIT_AUTHOR_NAME=Ada", "GITHUB_TOKEN=ghp_0123456789abcdef", "AGENTIC_SESSION_ID=s1")}
	w := create(t, image, []string{"true"}, options...)
	first := boot(w)
	for _, name := range []string{"agentic/boot.json", "agentic/mcp.json", "agentic/repos.json", "agentic/launch.json", "agent/.config/git/config", "agent/.git-credentials"} {
		if first[name] == "" {
			t.Errorf("no file %s among %q", name, slices.Sorted(maps.Keys(first)))
		}
	}
	if diff := cmp.Diff(first, boot(w)); diff != "" {
		t.Errorf("the same container's second boot (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(first, boot(create(t, image, []string{"true"}, options...))); diff != "" {
		t.Errorf("another container's boot (-first +other):\n%s", diff)
	}
}

func TestB1SecretFilesReachTheAgentMasked(t *testing.T) {
	parallel(t)
	r := run(t, bash(`[ "$WAREHOUSE_KEY" = key-of-the-warehouse ] && echo "$WAREHOUSE_REGION"`, `echo "it is $WAREHOUSE_KEY." >&2`),
		bind(t, "testdata/demanding", "/opt/agentic/plugins"), bind(t, "testdata/secrets", "/run/secrets"))
	wantCode(t, r, 0)
	if r.stdout != "north\n" {
		t.Errorf("stdout is %q", r.stdout)
	}
	wantIn(t, r.stderr, "it is ")
	if strings.Contains(r.stderr, "key-of-the-warehouse") {
		t.Errorf("the key is shown:\n%s", r)
	}
}

func TestB5TokenReachesGitAndNoLog(t *testing.T) {
	parallel(t)
	const token = "ghp_aB3dE6gH9jK2mN5pQ8sT"
	w := start(t, bash(
		`fill() { printf 'protocol=https\nhost=github.com\n\n' | git credential fill | sed -n "s/^$1=//p"; }`,
		`[ "$(fill password)" = "$GITHUB_TOKEN" ] && echo "git has it for $(fill username)"`,
		`stat -c '%a %n' ~/.git-credentials ~/.config/gh/hosts.yml`,
		`echo "plain: $GITHUB_TOKEN." >&2`,
		`printf '{"event_type":"leak","header":"%s"}\n' "$(printf 'x-access-token:%s' "$GITHUB_TOKEN" | base64 -w0)" >&2`,
		`tr '\0' ' ' </proc/$$/environ | grep -c "GITHUB_TOKEN=" `,
	), env("GITHUB_TOKEN="+token))
	r := w.wait()
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "git has it for x-access-token\n", "600 /home/agent/.git-credentials\n", "600 /home/agent/.config/gh/hosts.yml\n")
	wantIn(t, r.stderr, "plain: ", `"event_type":"leak"`)
	// The middle of the base64 form of "x-access-token:" and the token.
	for _, secret := range []string{token, "Z2hwX2FCM2RFNmdIOWpLMm1ONXBROHNU"} {
		if strings.Contains(r.String(), secret) {
			t.Errorf("the log shows the token as %s:\n%s", secret, r)
		}
	}
	for name, text := range w.files("/run/agentic") {
		if strings.Contains(text, token) {
			t.Errorf("%s holds the token", filepath.Join("/run", name))
		}
	}
}

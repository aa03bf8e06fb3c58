package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-init/internal/problem"
)

// clean removes every setting from the environment for the time of a test.
func clean(t *testing.T) {
	for _, e := range os.Environ() {
		name, value, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, Prefix) || strings.HasPrefix(name, "CLAUDEOPS_") || name == "WORKSPACE_ID" {
			t.Setenv(name, value)
			os.Unsetenv(name)
		}
	}
}

func TestC1DefaultsHoldWithoutVariables(t *testing.T) {
	clean(t)
	c, found := Environment()
	if len(found) != 0 {
		t.Fatal(found)
	}
	if c.PluginsDir != "/opt/agentic/plugins" || c.StopGrace.Duration != 8*time.Second || c.MCPStrict.On || c.Agent != "auto" {
		t.Errorf("%+v", c)
	}
	if diff := cmp.Diff(List{"TERM"}, c.StopSignals); diff != "" {
		t.Error(diff)
	}
	if c.Plugins != nil || c.MCPAllow != nil || c.Explicit("REPOS_DIR") {
		t.Errorf("%+v", c)
	}
}

func TestC1VariablesThenFlagsOverride(t *testing.T) {
	clean(t)
	t.Setenv("AGENTIC_PLUGINS", "a b:c,d: ")
	t.Setenv("AGENTIC_STOP_GRACE", "3")
	t.Setenv("AGENTIC_MCP_STRICT", "yes")
	t.Setenv("AGENTIC_SUCCESS_CODES", "143")
	t.Setenv("AGENTIC_WITHHOLD_ENV", "A,B:C D")
	t.Setenv("AGENTIC_LOG_LEVEL", "") // as Compose leaves it
	c, found := Environment()
	if len(found) != 0 {
		t.Fatal(found)
	}
	if diff := cmp.Diff(List{"a b", "c,d"}, c.Plugins); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(List{"A", "B", "C", "D"}, c.WithholdEnv); diff != "" {
		t.Error(diff)
	}
	if !c.MCPStrict.On || c.StopGrace.Duration != 3*time.Second || c.LogLevel != "info" {
		t.Errorf("%+v", c)
	}
	rest, err := c.ParseFlags([]string{"--success-code", "7", "--success-code=8", "--mcp-strict=0", "--stop-grace", "1m", "ls", "-l", "--plugins", "x"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ls", "-l", "--plugins", "x"}, rest); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{7, 8}, c.SuccessCodes.Values); diff != "" {
		t.Error(diff)
	}
	if c.MCPStrict.On || c.StopGrace.Duration != time.Minute {
		t.Errorf("%+v", c)
	}
}

func TestC1WrongFlagsAreUsageErrors(t *testing.T) {
	clean(t)
	for _, args := range [][]string{{"--nonsense"}, {"--stop-grace", "soon"}, {"--agent", "emacs"}, {"--success-code", "300"}, {"--plugins-dir"}} {
		c, _ := Environment()
		if _, err := c.ParseFlags(args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}

func TestC3EveryUnparsableVariableIsNamedWithWhatIsAllowed(t *testing.T) {
	clean(t)
	t.Setenv("AGENTIC_STOP_GRACE", "soon")
	t.Setenv("AGENTIC_TIMEOUT", "-1s")
	t.Setenv("AGENTIC_MCP_STRICT", "maybe")
	t.Setenv("AGENTIC_PLUGIN_ERRORS", "ignore")
	t.Setenv("AGENTIC_SUCCESS_CODES", "1,x")
	_, found := Environment()
	var got []string
	for _, p := range found {
		got = append(got, p.Error())
	}
	want := []string{
		`cannot use AGENTIC_PLUGIN_ERRORS: "ignore" is not allowed (use fail, skip)`,
		`cannot use AGENTIC_MCP_STRICT: "maybe" is neither on nor off (use 1 or 0)`,
		`cannot use AGENTIC_STOP_GRACE: "soon" is no duration (use 0, 8s, 1m30s or a number of seconds)`,
		`cannot use AGENTIC_SUCCESS_CODES: "x" is no exit code (use numbers from 0 to 255, comma-separated)`,
		`cannot use AGENTIC_TIMEOUT: "-1s" is no duration (use 0, 8s, 1m30s or a number of seconds)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLegacyNamesCountWhileOursAreUnset(t *testing.T) {
	clean(t)
	t.Setenv("CLAUDEOPS_REPOS_DIR", "/a")
	if c, _ := Environment(); c.ReposDir != "/a" || !c.Explicit("REPOS_DIR") {
		t.Errorf("%q", c.ReposDir)
	}
	t.Setenv("AGENTIC_REPOS_DIR", "/b")
	if c, _ := Environment(); c.ReposDir != "/b" {
		t.Errorf("%q", c.ReposDir)
	}
}

func TestOnlyPrefixedNamesCount(t *testing.T) {
	clean(t)
	t.Setenv("PLUGINS_DIR", "/wrong")
	t.Setenv("TIMEOUT", "1s")
	c, found := Environment()
	if c.PluginsDir != "/opt/agentic/plugins" || c.Timeout.Duration != 0 || len(found) != 0 {
		t.Errorf("%+v %v", c, found)
	}
}

func TestMistypedVariableIsWarnedAbout(t *testing.T) {
	clean(t)
	t.Setenv("AGENTIC_PLUGIN_DIR", "/x")
	t.Setenv("AGENTIC_REPO_DIRS", "/x") // two edits away
	t.Setenv("AGENTIC_PLUGIN_FLAGS", "set by an outer agent-init")
	_, found := Environment()
	if len(found) != 1 || found[0].Severity != problem.Warning || !strings.Contains(found[0].Error(), "did you mean AGENTIC_PLUGINS_DIR?") {
		t.Error(found)
	}
}

func TestOneEdit(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"ABC", "ABC", false}, {"ABC", "AB", true}, {"ABC", "ABCD", true}, {"ABC", "AXC", true},
		{"ABC", "ACB", true}, {"ABC", "CBA", false}, {"", "A", true}, {"ABC", "A", false}, {"", "", false},
	} {
		if got := oneEdit(tt.a, tt.b); got != tt.want {
			t.Errorf("%q %q: %v", tt.a, tt.b, got)
		}
	}
}

func TestRowsDocumentEverySetting(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rows() {
		if r.Meaning == "" || r.Type == "" || seen[r.Variable] || seen[r.Flag] && r.Flag != "" {
			t.Errorf("%+v", r)
		}
		seen[r.Variable], seen[r.Flag] = true, true
	}
	if !seen["AGENTIC_MCP_BASELINE"] || !seen["AGENTIC_SESSION_ID"] {
		t.Error(seen)
	}
}

func TestH3Cycles(t *testing.T) {
	clean(t)
	t.Setenv("CLAUDEOPS_INTERVAL", "90")
	t.Setenv("AGENTIC_MAX_RUNS", "3")
	c, found := Environment()
	if c.Interval.Duration != 90*time.Second || c.MaxRuns.N != 3 || len(found) != 0 {
		t.Errorf("%+v %v", c, found)
	}
	t.Setenv("AGENTIC_INTERVAL", "50ms")
	if c, _ = Environment(); c.Interval.Duration != 50*time.Millisecond {
		t.Error(c.Interval)
	}
	for _, wrong := range []string{"-1", "many", "1.5"} {
		t.Setenv("AGENTIC_MAX_RUNS", wrong)
		if _, found := Environment(); !found.Refuses() {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

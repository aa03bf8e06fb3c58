package agent

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var offer = Offer{PluginDirs: []string{"/opt/a b", "/opt/c"}, MCPConfig: "/run/agentic/mcp.json", MCPStrict: true}

func TestP3FlagsStandRightAfterTheProgram(t *testing.T) {
	flags := Claude.Flags(offer)
	want := []string{"--plugin-dir=/opt/a b", "--plugin-dir=/opt/c", "--mcp-config=/run/agentic/mcp.json", "--strict-mcp-config"}
	if diff := cmp.Diff(want, flags); diff != "" {
		t.Fatal(diff)
	}
	got := Insert([]string{"claude", "-p", "--", "text"}, flags)
	if diff := cmp.Diff(append(append([]string{"claude"}, want...), "-p", "--", "text"), got); diff != "" {
		t.Error(diff)
	}
	if flags := Claude.Flags(Offer{}); flags != nil {
		t.Errorf("nothing to offer, but %q", flags)
	}
}

func TestP3OtherCommandsGetNothing(t *testing.T) {
	for _, tt := range []struct {
		setting, program string
		want             Kind
	}{
		{"auto", "claude", Claude}, {"auto", "/opt/agentic/libexec/claude", Claude}, {"auto", "bash", None},
		{"auto", "claude-code", None}, {"claude", "my-wrapper", Claude}, {"none", "claude", None},
	} {
		if got := Choose(tt.setting, tt.program); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	if flags := None.Flags(offer); flags != nil {
		t.Error(flags)
	}
}

func TestP4AFlagIsNeverInsertedTwice(t *testing.T) {
	flags := Claude.Flags(offer)
	once := Insert([]string{"claude", "-p", "hi"}, flags)
	if diff := cmp.Diff(once, Insert(once, flags)); diff != "" {
		t.Error(diff)
	}
	got := Insert([]string{"claude", "--plugin-dir", "/opt/c", "x", "--", "--strict-mcp-config"}, flags)
	want := []string{"claude", "--plugin-dir=/opt/a b", "--mcp-config=/run/agentic/mcp.json", "--strict-mcp-config",
		"--plugin-dir", "/opt/c", "x", "--", "--strict-mcp-config"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestP4QuoteSurvivesAShell(t *testing.T) {
	args := []string{"--plugin-dir=/opt/a b", "plain", "", "it's", "$HOME `x` \"y\" \\", "line\nbreak", "*", "ünï", "#c", "~", "a;b"}
	out, err := exec.Command("sh", "-c", `printf '%s\0' `+Quote(args)).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if diff := cmp.Diff(args, got); diff != "" {
		t.Error(diff)
	}
	if q := Quote([]string{"--plugin-dir=/opt/agentic/plugins/sdlc"}); strings.ContainsRune(q, '\'') {
		t.Errorf("quoted without need: %s", q)
	}
}

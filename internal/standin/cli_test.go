package standin

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent-init/internal/clitest"
)

// runCLI runs the agent CLI against s in an empty home and returns its stdout.
func runCLI(t *testing.T, s *Server, args ...string) string {
	t.Helper()
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), clitest.Path(t), args...)
	cmd.Dir = home
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=any",
		"ANTHROPIC_BASE_URL=" + s.URL(), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func TestRealCLIAnswersWithItsPrompt(t *testing.T) {
	s := start(t, Script{})
	if got := runCLI(t, s, "-p", "hello, stand-in"); got != "you said: hello, stand-in" {
		t.Errorf("the CLI printed %q", got)
	}
}

func TestRealCLICallsBashAndAnMCPTool(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "mcpserver")
	if out, err := exec.Command("go", "build", "-o", binary, "../../scripts/mcpserver").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"parts": map[string]any{
		"command": binary, "args": []string{"-tool", "find", "-answer", "{env:SHELF} holds {text}"},
		"env": map[string]string{"SHELF": "shelf 3"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, Script{Turns: []Turn{
		{Text: "first the shell", ToolUses: []ToolUse{{Name: "Bash", Input: map[string]any{"command": "echo $((20 + 3))"}}}},
		{ToolUses: []ToolUse{{Name: "mcp__parts__find", Input: map[string]any{"text": "a \"bolt\""}}}},
		{Text: "done: {tool_result} ({tool_results})"},
	}})
	got := runCLI(t, s, "--mcp-config="+file, "--allowedTools=Bash,mcp__parts__find", "-p", "where is the bolt?")
	if want := `done: shelf 3 holds a "bolt" (23; shelf 3 holds a "bolt")`; got != want {
		t.Errorf("the CLI printed %q, want %q", got, want)
	}
	requests := s.Requests()
	last := requests[len(requests)-1]
	if !slices.Contains(last.Tools, "mcp__parts__find") {
		t.Errorf("tools offered: %q", last.Tools)
	}
	if n := len(last.ToolResults); n != 2 || last.ToolResults[0].Text != "23" {
		t.Errorf("tool results: %+v", last.ToolResults)
	}
}

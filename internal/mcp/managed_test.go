package mcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestM8Managed(t *testing.T) {
	const mcpFile, base, dropIn, later = "managed-mcp.json", "managed-settings.json", "managed-settings.d/10.json", "managed-settings.d/20.json"
	const on, off = `{"disableSideloadFlags": true}`, `{"disableSideloadFlags": false}`
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"nothing", nil, nil},
		{"other settings", map[string]string{base: `{"env":{}}`, "managed-settings.d/.hidden.json": on, "managed-settings.d/a.txt": on}, nil},
		{"servers", map[string]string{mcpFile: `{"mcpServers":{}}`}, []string{"managed-mcp.json: it switches off every other MCP server"}},
		{"malformed servers", map[string]string{mcpFile: `{`}, []string{"cannot read managed MCP config"}},
		{"base", map[string]string{base: on}, []string{`managed-settings.json:1:26: "disableSideloadFlags" switches off`}},
		{"drop-in", map[string]string{dropIn: on}, []string{`10.json:1:26: "disableSideloadFlags"`}},
		{"drop-in switches it on again", map[string]string{base: on, dropIn: off}, nil},
		{"last drop-in wins", map[string]string{dropIn: off, later: on}, []string{"20.json"}},
		{"a string is ignored", map[string]string{base: on, later: `{"disableSideloadFlags": "no"}`}, []string{"20.json:1:26: \"disableSideloadFlags\" is a string", "managed-settings.json:1:26"}},
		{"malformed", map[string]string{base: "{bad", later: "[]"}, []string{"cannot read managed settings", "it holds an array"}},
		{"all", map[string]string{mcpFile: `{"mcpServers":{}}`, base: on}, []string{"managed-mcp.json", "managed-settings.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for name, data := range c.files {
				path := filepath.Join(root, "etc/claude-code", name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			found := Managed(root, true)
			if found.Refuses() || len(found) != len(c.want) {
				t.Fatal(texts(found))
			}
			for i, w := range c.want {
				if !strings.Contains(found[i].Text(), w) {
					t.Errorf("%q lacks %q", found[i].Text(), w)
				}
			}
		})
	}
	root := t.TempDir()
	dir := filepath.Join(root, "etc/claude-code")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "managed-mcp.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for strict, want := range map[bool]string{true: "--strict-mcp-config", false: "--mcp-config"} {
		if got := Managed(root, strict)[0].Text(); !strings.HasSuffix(got, want) {
			t.Error(got)
		}
	}
}

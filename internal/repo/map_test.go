package repo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestM2JSON(t *testing.T) {
	dir := tree(t, map[string]string{
		"a\xff/x": "", "full/CLAUDE-OPS.md": manifest,
		"full/.claude-ops/checks/c.md": "---\nrequires: a\n---\n# C", "full/.claude-ops/mcp.json": `{"mcpServers":{"s":{}}}`,
	})
	m, found := Scan(dir, Options{})
	wantTexts(t, dir, found, `warning: repo "R/a\xff": its name is not valid UTF-8, and the repo map shows U+FFFD in it`)
	out := m.AppendJSON([]byte("before\n"))
	again, _ := Scan(dir, Options{})
	if string(again.AppendJSON([]byte("before\n"))) != string(out) {
		t.Error("two scans differ")
	}
	text, ok := strings.CutPrefix(string(out), "before\n")
	if !ok || !utf8.ValidString(text) || !strings.HasSuffix(text, "}\n") {
		t.Fatalf("%q", text)
	}
	if d := cmp.Diff(fmt.Sprintf(`{
  "repos": [
    {
      "name": "a%[2]s",
      "path": "%[1]s/a%[2]s",
      "source": "inferred",
      "version": "",
      "description": "",
      "kind": "",
      "capabilities": [],
      "rules": [],
      "checks": [],
      "playbooks": [],
      "skills": [],
      "mcp_servers": [],
      "files": [
        "x"
      ],
      "writable": true
    },
`, dir, "\ufffd"), text[:strings.Index(text, "    {\n      \"name\": \"full\"")]); d != "" {
		t.Error(d)
	}
	var doc struct {
		Repos []struct {
			Capabilities []map[string]string
			Checks       []map[string]any
			MCP          []string `json:"mcp_servers"`
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	full := doc.Repos[1]
	if full.Capabilities[0]["name"] != "service-discovery" || full.MCP[0] != "s" {
		t.Error(full)
	}
	if d := cmp.Diff(map[string]any{"name": "c", "path": dir + "/full/.claude-ops/checks/c.md", "title": "C", "description": "",
		"requires": []any{"a"}, "requires_mcp": []any{}}, full.Checks[0]); d != "" {
		t.Error(d)
	}
	if got := string(Map{}.AppendJSON(nil)); got != "{\n  \"repos\": []\n}\n" {
		t.Errorf("%q", got)
	}
}

func TestM2Text(t *testing.T) {
	m := Map{Repos: []Repo{
		{Name: "a\nb", Source: Manifest, Kind: "k\x1b[31m", Checks: make([]Document, 2), MCPServers: []string{"x", "y"}, Description: strings.Repeat("é", 100)},
		{Name: "plain", Source: Inferred, Writable: true},
	}}
	want := `NAME    SOURCE    ACCESS     KIND   CHECKS  PLAYBOOKS  SKILLS  MCP SERVERS  DESCRIPTION
"a\nb"  manifest  read-only  k [31m  2       0          0       x, y         ` + strings.Repeat("é", 57) + `...
plain   inferred  writable   -      0       0          0       -            -
`
	want = strings.Replace(strings.Replace(want, "KIND   ", "KIND    ", 1), "-      0", "-       0", 1)
	if d := cmp.Diff(want, m.Text()); d != "" {
		t.Error(d)
	}
	if got := (Map{}).Text(); got != "no repos\n" {
		t.Errorf("%q", got)
	}
}

func TestM2Writable(t *testing.T) {
	if os.Getuid() == 0 {
		runAsNobody(t) // root may write where the mode forbids it
		return
	}
	dir := tree(t, map[string]string{"ro": "/", "rw": "/"})
	if err := os.Chmod(filepath.Join(dir, "ro"), 0o555); err != nil {
		t.Fatal(err)
	}
	m, found := Scan(dir, Options{})
	wantTexts(t, dir, found)
	if m.Repos[0].Writable || !m.Repos[1].Writable {
		t.Error(m)
	}
}

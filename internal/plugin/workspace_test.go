package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pluginWith is a plugin whose hooks/workspace.json has a content.
func pluginWith(t testing.TB, content string) *Plugin {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hooks", "workspace.json"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return &Plugin{Name: "p", Path: dir}
}

func TestH1HandlersAreRead(t *testing.T) {
	p := pluginWith(t, `{"hooks": {"sandbox_workspace_ready": [{"command": "a", "priority": -2, "timeout": "1m30s", "required": true}, {"command": "b", "description": "x"}],
"workspace_finalize": [{"command": "c"}]}}`)
	if found := p.readWorkspace(); len(found) > 0 {
		t.Fatal(found)
	}
	file := filepath.Join(p.Path, "hooks", "workspace.json")
	want := []Handler{
		{Ready, "a", -2, 90 * time.Second, true, file, 1, 40},
		{Ready, "b", 0, handlerTimeout, false, file, 1, 112},
		{Finalize, "c", 0, handlerTimeout, false, file, 2, 24},
	}
	if diff := cmp.Diff(want, p.Handlers); diff != "" {
		t.Error(diff)
	}
}

func TestH1WhatIsWrongIsNamed(t *testing.T) {
	for content, want := range map[string]string{
		`[]`:            "not an object",
		`{"hooks": []}`: "not an object",
		`{"hooks": {"sandbox_workspace_ready": {}}}`:                                              "not a list of handlers",
		`{"hooks": {"workspace_finalize": ["x"]}}`:                                                "not an object",
		`{"hooks": {"workspace_finalize": [{"command": ""}]}}`:                                    `no "command"`,
		`{"hooks": {"workspace_finalize": [{"command": "a\u0000b"}]}}`:                            "a NUL",
		`{"hooks": {"workspace_finalize": [{"command": ["x"]}]}}`:                                 `no "command"`,
		`{"hooks": {"workspace_finalize": [{"command": "x", "priority": "1"}]}}`:                  "no whole number",
		`{"hooks": {"workspace_finalize": [{"command": "x", "priority": 99999999999999999999}]}}`: "no whole number",
		`{"hooks": {"workspace_finalize": [{"command": "x", "timeout": 30}]}}`:                    "no duration",
		`{"hooks": {"workspace_finalize": [{"command": "x", "timeout": "-1s"}]}}`:                 "no duration",
		`{"hooks": {"workspace_finalize": [{"command": "x", "required": "yes"}]}}`:                "not true or false",
		`{"hooks": {"workspace_finalize": [{"command": "x"}`:                                      "hooks/workspace.json:1",
	} {
		found := pluginWith(t, content).readWorkspace()
		if len(found) != 1 || !found.Refuses() || !strings.Contains(found[0].Text(), want) {
			t.Errorf("%s: %v", content, found)
		}
	}
	for content, want := range map[string]string{
		`{}`:                      `it has no "hooks"`,
		`{"hooks": {"Stop": []}}`: `nothing ever calls "Stop"`,
		`{"hooks": {"workspace_finalize": [{"command": "x", "async": true}]}}`: `handlers have no "async"`,
	} {
		found := pluginWith(t, content).readWorkspace()
		if len(found) != 1 || found.Refuses() || !strings.Contains(found[0].Text(), want) {
			t.Errorf("%s: %v", content, found)
		}
	}
}

// FuzzWorkspaceHooks checks that handlers come out whole or not at all.
func FuzzWorkspaceHooks(f *testing.F) {
	f.Add(`{"hooks": {"sandbox_workspace_ready": [{"command": "a", "priority": 1, "timeout": "1s", "required": false}]}}`)
	f.Add(`{"hooks": {"workspace_finalize": [{"command": "\u0000", "timeout": "9999999h"}, 1, null, []]}}`)
	f.Fuzz(func(t *testing.T, content string) {
		p := pluginWith(t, content)
		found := p.readWorkspace()
		for _, h := range p.Handlers {
			if h.Command == "" || h.Timeout <= 0 || h.Line < 1 || h.Column < 1 || h.Event != Ready && h.Event != Finalize {
				t.Errorf("%q: %+v (%v)", content, h, found)
			}
		}
	})
}

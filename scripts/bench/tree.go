package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tree is the plugins and repos that boots read, and the baseline.
type tree struct {
	dir string
}

func (t tree) plugins() string  { return filepath.Join(t.dir, "plugins") }
func (t tree) repos() string    { return filepath.Join(t.dir, "repos") }
func (t tree) baseline() string { return filepath.Join(t.dir, "mcp.json") }
func (t tree) secrets() string  { return filepath.Join(t.dir, "secrets") }

// program links an executable as claude, the name by which the agent's
// arguments are chosen.
func (t tree) program(target string) (string, error) {
	link := filepath.Join(t.dir, "bin-"+filepath.Base(target), "claude")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return "", err
	}
	if err := os.Symlink(target, link); err != nil && !os.IsExist(err) {
		return "", err
	}
	return link, nil
}

// newTree makes plugins with everything that boot looks at, and repos that
// each have a manifest, four extensions and two MCP servers, one of which
// overrides the previous repo's.
func newTree(dir string, plugins, repos int) (tree, error) {
	t := tree{dir}
	files := map[string]string{
		t.baseline(): `{"mcpServers": {"shared": {"command": "baseline-server", "env": {"LEVEL": "info"}}}}` + "\n",
		filepath.Join(t.secrets(), "PLUGIN_SECRET"): "correct-horse-battery-staple\n",
	}
	for i := range plugins {
		addPlugin(files, filepath.Join(t.plugins(), fmt.Sprintf("plugin-%02d", i)), i)
	}
	for i := range repos {
		addRepo(files, filepath.Join(t.repos(), fmt.Sprintf("repo-%03d", i)), i)
	}
	for _, empty := range []string{t.plugins(), t.repos()} {
		if err := os.MkdirAll(empty, 0o755); err != nil {
			return t, err
		}
	}
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return t, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return t, err
		}
	}
	return t, nil
}

func addPlugin(files map[string]string, dir string, i int) {
	files[filepath.Join(dir, ".claude-plugin", "plugin.json")] = fmt.Sprintf(`{
  "name": "plugin-%02d",
  "version": "1.%d.0",
  "description": "Tools for the benchmark",
  "requires_env": {
    "PLUGIN_SECRET": {"description": "a key that every plugin needs", "required": true, "secret": true},
    "PLUGIN_%02d_URL": {"description": "where its service is", "required": false, "secret": false},
    "PLUGIN_%02d_MODE": {"description": "how it works", "required": false, "secret": false, "default": "safe"}
  }
}
`, i, i, i, i)
	files[filepath.Join(dir, "skills", "look", "SKILL.md")] = "---\nname: look\ndescription: Look closely\n---\nLook at the file.\n"
	files[filepath.Join(dir, "commands", "go.md")] = "---\ndescription: Go ahead\n---\nGo ahead.\n"
	files[filepath.Join(dir, "hooks", "hooks.json")] = `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "\"${CLAUDE_PLUGIN_ROOT}/hooks/stop\""}]}]}}` + "\n"
	files[filepath.Join(dir, "hooks", "stop")] = "#!/bin/sh\n"
}

func addRepo(files map[string]string, dir string, i int) {
	files[filepath.Join(dir, "CLAUDE-OPS.md")] = fmt.Sprintf(`# Repo %d

The services of team %d, with their runbooks.

## Kind

infrastructure

## Capabilities

- **deploy**: rolls a service out
- **restart**: restarts a service that does not answer

## Rules

- Never touch production by hand.
- Ask before a rollback.
`, i, i)
	files[filepath.Join(dir, "README.md")] = fmt.Sprintf("# Repo %d\n\n%s", i, strings.Repeat("Some words about it.\n", 40))
	files[filepath.Join(dir, ".git", "HEAD")] = "ref: refs/heads/main\n"
	ops := filepath.Join(dir, ".claude-ops")
	for _, name := range []string{"checks/disk.md", "checks/http.md", "playbooks/restart.md", "skills/logs.md"} {
		files[filepath.Join(ops, name)] = "# What to do\n\n" + strings.Repeat("A step.\n", 20)
	}
	files[filepath.Join(ops, "mcp.json")] = fmt.Sprintf(`{
  "mcpServers": {
    "server-%03d": {"command": "node", "args": ["server.js", "--port", "%d"], "env": {"TOKEN": "${SERVICE_TOKEN:-none}"}},
    "shared": {"type": "http", "url": "https://team-%03d.example.com/mcp"}
  }
}
`, i, 9000+i, i)
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// outcome is what a boot has made, in a form in which two boots are compared.
type outcome struct {
	arguments   string
	servers     map[string]any
	repos       []map[string]any
	settings    map[string]string
	safe        []string
	credentials string
}

// agree makes sure that agent-init and the script do the same work, so that
// their times can be compared.
func (b *bench) agree(t tree) error {
	echo, err := t.program("/bin/echo")
	if err != nil {
		return err
	}
	own, err := b.boot(newWorkspace(filepath.Join(b.scratch, "agree-own")), t, b.agentInit, echo)
	if err != nil {
		return err
	}
	script, err := b.boot(newWorkspace(filepath.Join(b.scratch, "agree-script")), t, b.script, echo)
	if err != nil {
		return err
	}
	// The script knows no .git directories, which agent-init adds.
	own.safe = slices.DeleteFunc(own.safe, func(dir string) bool { return filepath.Base(dir) == ".git" })
	if diff := cmp.Diff(script, own, cmp.AllowUnexported(outcome{})); diff != "" {
		return fmt.Errorf("agent-init and the script do not do the same work\nscript -, agent-init +\n%s", diff)
	}
	return nil
}

// boot runs a boot whose agent prints its arguments, and reads what it has
// made.
func (b *bench) boot(w workspace, t tree, argv ...string) (o outcome, err error) {
	if err := w.clear(); err != nil {
		return o, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(argv[0], append(argv[1:], "hello")...)
	cmd.Env, cmd.Stdout, cmd.Stderr = w.full(t), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return o, fmt.Errorf("%s: %w\n%s", argv[0], err, stderr.String())
	}
	// Each has a workspace of its own, whose place is no difference.
	place := func(text []byte) string { return strings.ReplaceAll(string(text), w.dir, "DIR") }
	o.arguments = place(stdout.Bytes())
	var mcp struct{ MCPServers map[string]any }
	var repos struct{ Repos []map[string]any }
	if err := errors.Join(readJSON(filepath.Join(w.runtime(), "mcp.json"), &mcp), readJSON(filepath.Join(w.runtime(), "repos.json"), &repos)); err != nil {
		return o, err
	}
	o.servers = mcp.MCPServers
	for _, r := range repos.Repos {
		o.repos = append(o.repos, map[string]any{"name": r["name"], "path": r["path"], "kind": r["kind"], "description": r["description"], "source": r["source"]})
	}
	o.settings = map[string]string{}
	for _, key := range []string{"user.name", "user.email", "init.defaultBranch", "credential.helper"} {
		value, err := w.git("config", "--get-all", key)
		if err != nil {
			return o, fmt.Errorf("%s did not set %s: %w", argv[0], key, err)
		}
		o.settings[key] = string(value)
	}
	safe, err := w.git("config", "--get-all", "safe.directory")
	if err != nil {
		return o, err
	}
	o.safe = strings.Split(strings.TrimSpace(place(safe)), "\n")
	credentials, err := os.ReadFile(filepath.Join(w.home(), ".git-credentials"))
	o.credentials = string(credentials)
	return o, err
}

// git asks git as the agent would.
func (w workspace) git(args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = w.home(), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home(), "GIT_CONFIG_NOSYSTEM=1"}
	return cmd.Output()
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

package entrypoint_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
)

// confined is how a careful operator runs a container.
func confined(_ *container.Config, h *container.HostConfig) {
	h.ReadonlyRootfs = true
	h.CapDrop = []string{"ALL"}
	h.SecurityOpt = []string{"no-new-privileges"}
	h.Tmpfs = map[string]string{"/home/agent": "uid=1000,gid=1000,mode=0700", "/tmp": "mode=1777"}
}

func TestB2ReadOnlyRoot(t *testing.T) {
	parallel(t)
	m := startModel(t, "")
	r := run(t, []string{"claude", "-p", "--", "hello"}, m.talk(), mounted(t), user("1000:1000"), confined)
	wantCode(t, r, 0)
	if r.stdout != "you said: hello\n" {
		t.Errorf("the CLI printed %q", r.stdout)
	}
	if tools := m.requests()[0].Tools; !slices.Contains(tools, "mcp__orders__last") {
		t.Errorf("no tool of the repos is offered: %q", tools)
	}
	var said report
	r.event(t, "workspace_ready", &said)
	if said.RuntimeDir != "/tmp/.agentic-1000" {
		t.Errorf("the runtime directory is %s", said.RuntimeDir)
	}
	wantWarning(t, r, "workspace /workspace: ")
}

// wantWarning checks that a warning holds each of parts.
func wantWarning(t *testing.T, r result, parts ...string) {
	t.Helper()
	for _, line := range strings.Split(r.stderr, "\n") {
		var entry struct{ Level, Message string }
		if json.Unmarshal([]byte(line), &entry) != nil || entry.Level != "warn" {
			continue
		}
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(entry.Message, part) }) {
			return
		}
	}
	t.Errorf("no warning holds %q:\n%s", parts, r.stderr)
}

// git is a session that needs an identity, credentials and a default branch.
var git = bash("set -e", "cd /tmp", "git init -q r", "cd r", "git commit -q --allow-empty -m 'a commit'",
	`git log -1 --format='%an <%ae>, %cn'`, "git branch --show-current",
	`printf 'protocol=https\nhost=github.com\n\n' | git credential fill | sed -n s/^username=//p`,
	"id -u", `ls -A "$HOME"`)

func TestB3IdentityForAnyUser(t *testing.T) {
	docker(t)
	const session = "Ada <agent@agentic.local>, Ada\nmain\nx-access-token\n"
	for name, test := range map[string]struct {
		options []option
		rest    string
		warned  []string
	}{
		"the image's user": {nil, "1000\n", nil},
		"root":             {[]option{user("0")}, "0\n", nil},
		// Docker gives it HOME=/, which it cannot write.
		"a user without a passwd entry": {[]option{user("12345:12345")}, "12345\n", []string{"/.config/git"}},
		"without capabilities":          {[]option{user("1000:1000"), confined}, "1000\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			r := run(t, git, append(test.options, env("GIT_AUTHOR_NAME=Ada", "GITHUB_TOKEN=ghp_0123456789abcdef"))...)
			wantCode(t, r, 0)
			if !strings.HasPrefix(r.stdout, session+test.rest) {
				t.Errorf("the session printed\n%swant\n%s", r.stdout, session+test.rest)
			}
			if strings.Contains(r.stdout, ".gitconfig") {
				t.Errorf("~/.gitconfig was written:\n%s", r.stdout)
			}
			if test.warned != nil {
				wantWarning(t, r, test.warned...)
			}
		})
	}
}

func TestC4PlanChangesNothing(t *testing.T) {
	parallel(t)
	w := start(t, []string{"plan", "--format", "json", "claude", "-p", "hi"}, mounted(t), env("GITHUB_TOKEN=ghp_0123456789abcdef"))
	r := w.wait()
	wantCode(t, r, 0)
	var plan struct{ Argv, Files []string }
	if err := json.Unmarshal([]byte(r.stdout), &plan); err != nil {
		t.Fatal(err)
	}
	if want := []string{"claude", tapSettings, "--plugin-dir=/opt/agentic/plugins/greeter", "--mcp-config=/run/agentic/mcp.json", "-p", "hi"}; !slices.Equal(plan.Argv, want) {
		t.Errorf("argv is %q, want %q", plan.Argv, want)
	}
	if !slices.Contains(plan.Files, "/home/agent/.git-credentials") {
		t.Errorf("files are %q", plan.Files)
	}
	changes, err := w.ContainerDiff(w.ctx, w.id)
	w.must(err)
	for _, c := range changes {
		// Docker itself makes the target of a mount.
		if c.Path != "/usr" && c.Path != "/usr/local" && c.Path != "/usr/local/bin" && c.Path != "/usr/local/bin/mcpserver" {
			t.Errorf("plan changed %s (%s)", c.Path, c.Kind)
		}
	}

	r = run(t, []string{"repos"}, mounted(t))
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "orders", "stock", "What is on the shelves")
}

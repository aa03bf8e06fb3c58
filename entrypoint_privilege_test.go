package entrypoint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
)

// root starts the container as root, for agent-init to step down from.
func root(name string) option {
	return func(c *container.Config, _ *container.HostConfig) {
		c.User = "0"
		c.Env = append(c.Env, "AGENTIC_USER="+name)
	}
}

func TestUserIsTheAgentsForGood(t *testing.T) {
	for name, want := range map[string]string{
		"agent":     "1000 1000 1000/home/agent",
		"1000":      "1000 1000 1000/home/agent",
		"agent:0":   "1000 0 0/home/agent",
		"4321:65":   "4321 65 65/",
		"65534":     "65534 65534 65534/nonexistent",
		"root":      "0 0 0/root",
		"1234:tape": "1234 26 26/",
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			r := run(t, bash(`echo "$(id -u) $(id -g) $(id -G)$HOME"`, `grep -E '^([UG]id|Cap(Prm|Eff)):' /proc/self/status`,
				`kill -0 1 && echo signals PID 1`, `cat /proc/1/environ`, `echo out > /dev/stdout; echo err > /dev/stderr`), root(name), env("LEAVE=x"))
			if !strings.HasPrefix(r.stdout, want+"\n") {
				t.Errorf("%s", r)
			}
			wantIn(t, r.stderr, "err\n")
			wantIn(t, r.stdout, "out\n")
			if name == "root" {
				return
			}
			uid, _, _ := strings.Cut(want, " ")
			wantIn(t, r.stdout, "Uid:\t"+uid+"\t"+uid+"\t"+uid+"\t"+uid+"\n", "CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n")
			if strings.Contains(r.stdout, "signals PID 1") || strings.Contains(r.stdout, "LEAVE=x") {
				t.Errorf("the agent can signal or read PID 1:\n%s", r)
			}
		})
	}
}

func TestUserThatCannotBe(t *testing.T) {
	for _, c := range []struct{ user, name, want string }{
		{"0", "nobody-here", "unable to find user nobody-here"},
		{"0", "agent:nogroup-here", "unable to find group nogroup-here"},
		{"1000", "root", "agent-init was started as uid 1000"},
		{"1000", "4294967295", "AGENTIC_USER"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parallel(t)
			r := run(t, bash("echo ran"), env("AGENTIC_USER="+c.name), user(c.user))
			wantCode(t, r, 78)
			wantIn(t, r.stderr, c.want)
			if r.stdout != "" {
				t.Errorf("%s", r)
			}
		})
	}
	parallel(t)
	r := run(t, bash("echo ran"), root("agent"), host(func(h *container.HostConfig) { h.CapDrop = []string{"ALL"} }))
	wantCode(t, r, 78)
	wantIn(t, r.stderr, "SETUID and SETGID")
}

// What boot writes is the user's, secrets that only root can read reach the agent,
// hooks and finalizers run as the user, and so does what comes later.
func TestUserOwnsTheWorkspace(t *testing.T) {
	parallel(t)
	secrets := t.TempDir()
	if err := os.WriteFile(filepath.Join(secrets, "DEPLOY_TOKEN"), []byte("geheim-geheim\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(secrets, "DEPLOY_TOKEN"), 0, 0); err != nil {
		t.Fatal(err)
	}
	os.Chmod(secrets, 0o755)
	w := start(t, bash(`id -u; echo "token: $DEPLOY_TOKEN"; cat /run/secrets/DEPLOY_TOKEN; sleep infinity`), root("agent"),
		env("GITHUB_TOKEN=ghp_0123456789abcdef", "AGENTIC_PLUGINS_DIR=/plugins"), bind(t, secrets, "/run/secrets"), bind(t, "testdata/privilege", "/plugins"))
	w.await("token: ")
	owned := w.exec("find", "/run/agentic", "/workspace", "/home/agent", "!", "-user", "agent")
	if owned.stdout != "" {
		t.Errorf("these are not the user's: %s", owned)
	}
	r := w.exec("cat", "/workspace/ready")
	wantIn(t, r.stdout, "1000 1000\n")
	for _, command := range [][]string{{"agent-init", "exec", "id", "-u"}, {"agent-init", "exec", "sh", "-c", `echo "$DEPLOY_TOKEN$(id -u)"`}} {
		r := w.exec(command...)
		wantCode(t, r, 0)
		wantIn(t, r.stdout, "1000\n")
	}
	wantIn(t, w.exec("agent-init", "exec", "sh", "-c", `echo "$DEPLOY_TOKEN"`).stdout, "geheim-geheim\n")
	wantIn(t, w.exec("agent-init", "status").stdout, "running")
	wantCode(t, w.exec("agent-init", "health"), 0)
	wantIn(t, w.exec("agent-init", "events").stdout, "agent_started")
	wantCode(t, w.exec("claude", "--version"), 0)
	if r := w.exec("claude", "--version"); r.stderr != "" {
		t.Errorf("%s", r)
	}
	// A process of root's that came from outside is ended with the rest.
	w.execDetached("sh", "-c", "trap '' TERM; sleep infinity")
	end := w.stop()
	wantCode(t, end, 143)
	wantIn(t, end.stdout, "1000\ntoken: geheim-geheim\n")
	if strings.Count(end.stdout, "geheim-geheim") != 1 {
		t.Errorf("the agent can read root's file:\n%s", end)
	}
	w.wantNoKill()
}

// execDetached starts a command beside the agent that nobody waits for.
func (w *workspace) execDetached(command ...string) {
	w.t.Helper()
	made, err := w.ContainerExecCreate(w.ctx, w.id, container.ExecOptions{Cmd: command})
	w.must(err)
	w.must(w.ContainerExecStart(w.ctx, made.ID, container.ExecStartOptions{Detach: true}))
}

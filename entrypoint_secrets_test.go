package entrypoint_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"agent-init/internal/gitserver"
)

// execWith runs a command beside the agent with text on its stdin, as docker exec
// -i does.
func (w *workspace) execWith(user, text string, command ...string) result {
	w.t.Helper()
	made, err := w.ContainerExecCreate(w.ctx, w.id, container.ExecOptions{User: user, Cmd: command, AttachStdin: true, AttachStdout: true, AttachStderr: true})
	w.must(err)
	stream, err := w.ContainerExecAttach(w.ctx, made.ID, container.ExecAttachOptions{})
	w.must(err)
	defer stream.Close()
	_, err = stream.Conn.Write([]byte(text))
	w.must(err)
	w.must(stream.CloseWrite())
	var out, stderr bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &stderr, stream.Reader)
	w.must(err)
	ended, err := w.ContainerExecInspect(w.ctx, made.ID)
	w.must(err)
	return result{ended.ExitCode, out.String(), stderr.String()}
}

// secretDir is a directory with one file, both with the given modes.
func secretDir(t *testing.T, name, content string, dirMode, fileMode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "secrets")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	putFile(t, filepath.Join(dir, name), content, fileMode)
	if err := os.Chmod(dir, dirMode); err != nil {
		t.Fatal(err)
	}
	return dir
}

// putFile replaces a file as a rotation does.
func putFile(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path+".new", mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// nowhere checks that no process shows a secret in its environment, not even to
// root, and that no file that is not mounted holds it.
func (w *workspace) nowhere(secrets ...string) {
	w.t.Helper()
	for _, secret := range secrets {
		// The pattern is no text that grep's own arguments would show.
		pattern := "[" + secret[:1] + "]" + secret[1:]
		r := w.execAs("0", "sh", "-c", "grep -laE '"+pattern+"' /proc/[0-9]*/environ; grep -rlE '"+pattern+"' /run/agentic /home /workspace /tmp /root /etc /var; true")
		if r.stdout != "" {
			w.t.Errorf("%s is in\n%s", secret, r.stdout)
		}
		if r := w.execAs("0", "sh", "-c", "ls /proc/1/environ /run/agentic/launch.json && grep -l agent /run/agentic/boot.json"); r.code != 0 {
			w.t.Errorf("nothing was searched: %s", r)
		}
	}
}

func TestB5HelperForDockerExec(t *testing.T) {
	t.Run("as the agent's user", func(t *testing.T) { testHelper(t, 0o755, 0o444) })
	t.Run("with a file of root's alone", func(t *testing.T) { testHelper(t, 0o700, 0o400, root("agent")) })
}

// testHelper has the token in a file with the given modes.
func testHelper(t *testing.T, dirMode, fileMode os.FileMode, options ...option) {
	parallel(t)
	const token, rotated = "glpat-first-token-1", "glpat-second-token-2"
	server := gitserver.New(t, "oauth2", token, "in-the-repo")
	secrets := secretDir(t, "GIT_ACCESS", token, dirMode, fileMode)
	command := append(bash(`git clone -q "$0" own && ls own; env | grep -c glpat; echo cloned; while ! [ -e go ]; do sleep 0.1; done; echo "it is `+rotated+`" >&2`), server.URL)
	w := start(t, command, append(options,
		host(func(h *container.HostConfig) { h.NetworkMode = "host" }), bind(t, server.CA, "/ca.pem"), bind(t, secrets, "/run/secrets"),
		env("GIT_SSL_CAINFO=/ca.pem", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=Ada", "AGENTIC_GIT_CREDENTIALS=helper", "AGENTIC_WITHHOLD_ENV=GIT_ACCESS",
			"AGENTIC_GIT_HOSTS="+server.Host+"=oauth2:GIT_ACCESS"))...)
	w.await("cloned\n")
	wantIn(t, w.logs().stdout, "in-the-repo\n0\ncloned\n")
	clone := func() result {
		return w.execAs("agent", "sh", "-c", "rm -rf /tmp/x; git clone -q "+server.URL+" /tmp/x && ls /tmp/x")
	}
	wantIn(t, clone().String(), "exit code 0\nstdout: in-the-repo\n")

	server.SetToken(rotated)
	wantIn(t, clone().stderr, "Authentication failed")
	putFile(t, filepath.Join(secrets, "GIT_ACCESS"), rotated, fileMode)
	wantIn(t, clone().String(), "exit code 0\nstdout: in-the-repo\n")
	r := w.execAs("agent", "sh", "-c", "cd /tmp/x && git commit -q --allow-empty -m second && git push -q origin HEAD:main && git ls-remote origin main")
	wantCode(t, r, 0)
	w.nowhere(token, rotated)
	wantCode(t, w.execAs("agent", "touch", "go"), 0)
	end := w.wait()
	wantIn(t, end.stderr, "it is ***\n")
	if warned := strings.Contains(end.stderr, "withheld variable GIT_ACCESS /run/secrets/GIT_ACCESS: the agent's user can read its file"); warned != (fileMode == 0o444) {
		t.Errorf("warned: %v\n%s", warned, end.stderr)
	}
}

// asker sends requests to the control socket as any process of the agent's can.
const asker = `
import socket, struct, sys
for request in (["values"], ["credential", "https", "github.com", ""], ["credential", "https", "other.example", ""], ["put", "A", "b"], ["dump"]):
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/agentic/control")
    body = b"".join(struct.pack("<I", len(t)) + t.encode() for t in request)
    s.sendall(struct.pack("<I", len(body)) + body)
    print(request[0], s.makefile("rb").read())
`

func TestS7WithheldFromTheAgentsUser(t *testing.T) {
	parallel(t)
	const inFile, handed, given = "only-root-reads-this-1", "handed-over-and-withheld-2", "handed-over-for-the-agent-3"
	secrets := secretDir(t, "VAULT_PASS", inFile, 0o700, 0o400)
	w := start(t, bash(`echo "[$VAULT_PASS][$HIDDEN_PASS][$GIVEN]"; echo "`+inFile+` `+handed+` `+given+`" >&2; echo up; while ! [ -e go ]; do sleep 0.1; done`),
		root("agent"), bind(t, secrets, "/secrets"), bind(t, "testdata/vault", "/opt/agentic/plugins"),
		env("AGENTIC_SECRETS_DIR=/secrets", "AGENTIC_SECRETS_WAIT=60s", "AGENTIC_WITHHOLD_ENV=VAULT_PASS,HIDDEN_PASS"))
	// Right after the start, and by root.
	r := w.execWith("", `{"HIDDEN_PASS": "`+handed+`", "GIVEN": "`+given+`"}`, "agent-init", "secrets", "put")
	wantCode(t, r, 0)
	w.await("up\n")
	wantIn(t, w.logs().stdout, "[][]["+given+"]\n")
	w.nowhere(inFile, handed)
	for _, command := range []string{"cat /secrets/VAULT_PASS", "cat /proc/1/environ", "head -c 1 /proc/1/mem", "ls -l /proc/1/fd", "cat /proc/1/auxv"} {
		if r := w.execAs("agent", "sh", "-c", command); r.code == 0 {
			t.Errorf("the agent's user can %s: %s", command, r)
		}
	}
	for _, user := range []string{"agent", "0"} {
		r := w.execAs(user, "agent-init", "exec", "sh", "-c", `echo "[$VAULT_PASS][$HIDDEN_PASS][$GIVEN]"`)
		wantIn(t, r.String(), "exit code 0\nstdout: [][]["+given+"]\n")
		if strings.Contains(r.stderr, "VAULT_PASS") {
			t.Errorf("what is withheld need not be read: %s", r)
		}
	}
	r = w.execAs("agent", "python3", "-c", asker)
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "values ", "GIVEN", given, "no question", "has been given them")
	if strings.Contains(r.stdout, inFile) || strings.Contains(r.stdout, handed) || strings.Contains(r.stdout, "HIDDEN_PASS") {
		t.Errorf("the socket tells what is withheld: %s", r.stdout)
	}
	wantCode(t, w.exec("touch", "/workspace/go"), 0)
	end := w.wait()
	wantIn(t, end.stderr, "*** *** ***\n")
	if strings.Contains(end.stderr, "withheld variable") {
		t.Errorf("a warning where everything is protected:\n%s", end.stderr)
	}
}

// TestS7AnImpostorGetsNothing has the agent put a socket of its own where root
// hands over secrets.
func TestS7AnImpostorGetsNothing(t *testing.T) {
	parallel(t)
	const impostor = `
import os, socket, sys
os.path.exists("/run/agentic/control") and os.remove("/run/agentic/control")
s = socket.socket(socket.AF_UNIX)
s.bind("/run/agentic/control")
s.listen()
print("listening", flush=True)
c, _ = s.accept()
print("got", c.recv(1000), flush=True)
`
	w := start(t, []string{"python3", "-c", impostor}, root("agent"))
	w.await("listening\n")
	r := w.execWith("0", `{"A_TOKEN": "for-pid-1-only"}`, "agent-init", "secrets", "put")
	wantCode(t, r, 1)
	wantIn(t, r.stderr, "which is not agent-init")
	end := w.wait()
	wantIn(t, end.stdout, "got b''\n")
}

func TestS7WarningsSayWhatIsNotProtected(t *testing.T) {
	secrets := secretDir(t, "X_TOKEN", "in-a-readable-file", 0o755, 0o444)
	for name, c := range map[string]struct {
		options []option
		want    string
	}{
		"environment": {[]option{env("X_TOKEN=from-the-environment")}, "withheld variable X_TOKEN: it came from the environment of the container"},
		"as root":     {[]option{env("X_TOKEN=from-the-environment"), root("agent")}, "withheld variable X_TOKEN: it came from the environment of the container"},
		"file":        {[]option{bind(t, secrets, "/run/secrets")}, "withheld variable X_TOKEN /run/secrets/X_TOKEN: the agent's user can read its file"},
		"store": {[]option{env("X_TOKEN=from-the-environment", "AGENTIC_GIT_HOSTS=git.example.com=u:X_TOKEN")},
			"withheld variable X_TOKEN: git's credential store holds it on disk, where the agent can read it"},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			// A plugin declares it, so that the file is looked at.
			r := run(t, bash(`echo "[$X_TOKEN]"`), append(c.options, bind(t, "testdata/vault", "/opt/agentic/plugins"), env("AGENTIC_WITHHOLD_ENV=X_TOKEN"))...)
			wantIn(t, r.String(), "exit code 0\nstdout: []\n", c.want)
		})
	}
	t.Run("not PID 1", func(t *testing.T) {
		parallel(t)
		init := true
		w := start(t, bash(`echo "[$X_TOKEN]"`), env("AGENTIC_WITHHOLD_ENV=X_TOKEN", "AGENTIC_SECRETS_WAIT=60s"), host(func(h *container.HostConfig) { h.Init = &init }))
		r := w.execWith("", fmt.Sprintf(`{"X_TOKEN": %q}`, "handed-over"), "agent-init", "secrets", "put")
		wantCode(t, r, 0)
		wantIn(t, w.wait().String(), "exit code 0\nstdout: []\n", "withheld variable X_TOKEN: agent-init is not PID 1")
	})
}

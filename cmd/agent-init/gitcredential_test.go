package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent-init/internal/gitserver"
)

// built is agent-init itself: git starts it without what would make a test's
// binary one.
func built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it's a $dir", "agent-init")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// shell is an agent that runs what it is told.
type shell struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

func startShell(t *testing.T, s *scene, binary string, env ...string) *shell {
	t.Helper()
	sh := &shell{t: t, cmd: exec.Command(binary, "sh", "-c", `echo ready; while read -r line; do eval "$line"; echo "done $?"; done`)}
	sh.cmd.Env = append(append(s.env, "GIT_TERMINAL_PROMPT=0"), env...)
	sh.cmd.Dir = s.dir
	sh.cmd.Stderr = &sh.stderr
	var err error
	if sh.stdin, err = sh.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := sh.cmd.StdoutPipe()
	if err == nil {
		err = sh.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sh.stdin.Close(); sh.cmd.Wait() })
	sh.out = bufio.NewReader(stdout)
	if line, err := sh.out.ReadString('\n'); line != "ready\n" {
		sh.stdin.Close()
		sh.cmd.Wait()
		t.Fatalf("%q, %v\n%s", line, err, sh.stderr.String())
	}
	return sh
}

// do runs a line and returns its output.
func (sh *shell) do(line string) string {
	sh.t.Helper()
	fmt.Fprintln(sh.stdin, line)
	var out strings.Builder
	for {
		text, err := sh.out.ReadString('\n')
		if err != nil {
			sh.t.Fatalf("%q: %v", line, err)
		}
		if strings.HasPrefix(text, "done ") {
			return out.String()
		}
		out.WriteString(text)
	}
}

// end returns the agent's standard error.
func (sh *shell) end() string {
	sh.stdin.Close()
	if err := sh.cmd.Wait(); err != nil {
		sh.t.Error(err)
	}
	return sh.stderr.String()
}

// beside runs git as docker exec would: the agent's variables are not its.
func (s *scene) beside(args ...string) (output string, ok bool) {
	cmd := exec.Command("git", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.path("home"), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_SSL_CAINFO=" + s.path("ca.pem")}
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func (s *scene) works(args ...string) {
	s.t.Helper()
	if out, ok := s.beside(args...); !ok {
		s.t.Errorf("git %q: %s", args, out)
	}
}

func (s *scene) fails(want string, args ...string) {
	s.t.Helper()
	if out, ok := s.beside(args...); ok || !strings.Contains(out, want) {
		s.t.Errorf("git %q: worked: %v: %s", args, ok, out)
	}
}

// replaceFile puts a file in place as a rotation does.
func (s *scene) replaceFile(name, content string) {
	s.t.Helper()
	s.write(name+".new", content)
	if err := os.Rename(s.path(name+".new"), s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

// holding are the files below a directory that hold a text.
func (s *scene) holding(texts ...string) (found []string) {
	filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && !strings.HasPrefix(path, s.path("secrets")) {
			data, _ := os.ReadFile(path)
			for _, text := range texts {
				if bytes.Contains(data, []byte(text)) {
					found = append(found, path+": "+text)
				}
			}
		}
		return nil
	})
	return found
}

func TestB5HelperWithARealGitServer(t *testing.T) {
	const first, rotated, other = "token-a-first-1", "token-a-rotated-2", "token-b/with+odd&chars"
	a, b := gitserver.New(t, "oauth2", first, "in-a"), gitserver.New(t, "x-token", other, "in-b")
	s := newScene(t)
	s.write("ca.pem", string(must(os.ReadFile(a.CA)))+string(must(os.ReadFile(b.CA))))
	s.write("secrets/TOKEN_A", first+"\n")
	binary := built(t)
	agent := startShell(t, s, binary, "TOKEN_B="+other, "AGENTIC_GIT_CREDENTIALS=helper", "AGENTIC_WITHHOLD_ENV=TOKEN_A,TOKEN_B",
		"AGENTIC_GIT_HOSTS="+a.Host+"=oauth2:TOKEN_A,"+b.Host+"=x-token:TOKEN_B", "GIT_AUTHOR_NAME=Ada")
	info, err := os.Stat(s.path("run/control"))
	if err != nil || info.Mode().Type() != fs.ModeSocket || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}

	s.works("clone", "-q", a.URL, "a")
	s.works("clone", "-q", b.URL, "b")
	for _, name := range []string{"a/in-a", "b/in-b"} {
		if _, err := os.Stat(s.path(name)); err != nil {
			t.Error(err)
		}
	}
	push := []string{"-C", "a", "push", "-q", "origin", "HEAD:main"}
	s.works("-C", "a", "commit", "-q", "--allow-empty", "-m", "second")
	s.works(push...)
	// The agent's own git has no token in its environment either.
	if out := agent.do("GIT_SSL_CAINFO=$PWD/ca.pem git -C a fetch 2>&1 && echo fetched; echo \"[$TOKEN_A$TOKEN_B]\""); out != "fetched\n[]\n" {
		t.Error(out)
	}

	a.SetToken(rotated)
	s.fails("Authentication failed", "-C", "a", "fetch")
	s.replaceFile("secrets/TOKEN_A", rotated+"\n")
	s.works("-C", "a", "fetch")
	s.works("-C", "a", "commit", "-q", "--allow-empty", "-m", "third")
	s.works(push...)
	agent.do("echo said " + rotated + " and " + first + " >&2")

	// A wrong token fails, and is neither forgotten nor replaced.
	s.replaceFile("secrets/TOKEN_A", "token-a-wrong-3\n")
	s.fails("Authentication failed", "-C", "a", "fetch")
	if got := string(must(os.ReadFile(s.path("secrets/TOKEN_A")))); got != "token-a-wrong-3\n" {
		t.Error(got)
	}
	s.replaceFile("secrets/TOKEN_A", "")
	s.fails("agent-init: no git credential for "+a.Host+": TOKEN_A has no value\n", "-C", "a", "fetch")
	s.replaceFile("secrets/TOKEN_A", "two\nlines\n")
	s.fails("agent-init: no git credential for "+a.Host+": TOKEN_A: the token holds a newline", "-C", "a", "fetch")
	os.Remove(s.path("secrets/TOKEN_A"))
	os.Mkdir(s.path("secrets/TOKEN_A"), 0o700)
	s.fails("cannot read variable TOKEN_A from", "-C", "a", "fetch")
	os.Remove(s.path("secrets/TOKEN_A"))
	s.replaceFile("secrets/TOKEN_A", rotated)
	s.works("-C", "a", "fetch")
	s.works("-C", "b", "fetch")

	if found := s.holding(first, rotated, other, "with%2bodd"); len(found) > 0 {
		t.Error(found)
	}
	pid := strings.TrimSpace(agent.do("echo $$"))
	if environ := string(must(os.ReadFile("/proc/" + pid + "/environ"))); strings.Contains(environ, "token-") || !strings.Contains(environ, "HOME=") {
		t.Error(environ)
	}
	for host, want := range map[string]string{a.Host: "oauth2\n" + rotated, "localhost": "", "github.com": ""} {
		if got := credentialOf(t, s, binary, "https", host); got != want {
			t.Errorf("%s: %q", host, got)
		}
	}
	if got := credentialOf(t, s, binary, "http", a.Host); got != "" {
		t.Errorf("http: %q", got)
	}

	stderr := agent.end()
	if !strings.Contains(stderr, "said *** and ***\n") || strings.Contains(stderr, "token-") {
		t.Error(stderr)
	}
	s.fails("agent-init: no git credential for "+a.Host+": no agent-init answers there\n", "-C", "a", "fetch")
	if _, refused := a.Counts(); refused != 2 {
		t.Error(refused, "requests with wrong tokens")
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// credentialOf is what the helper says, called without the path of the socket.
func credentialOf(t *testing.T, s *scene, binary, protocol, host string) string {
	t.Helper()
	cmd := exec.Command(binary, "git-credential", "get")
	cmd.Env = []string{"AGENTIC_RUNTIME_DIR=" + s.path("run")}
	cmd.Stdin = strings.NewReader("protocol=" + protocol + "\nhost=" + host + "\n\n")
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v", host, err)
	}
	user, rest, _ := strings.Cut(string(out), "\n")
	password, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(strings.TrimPrefix(user, "username=")+"\n"+strings.TrimPrefix(password, "password="), "\n")
}

// TestB5AGitHubTokenThatWasPut has a token that is nowhere but in agent-init's
// memory.
func TestB5AGitHubTokenThatWasPut(t *testing.T) {
	s := newScene(t)
	binary := built(t)
	put := exec.Command(binary, "secrets", "put")
	put.Env = s.env
	put.Stdin = strings.NewReader(`{"GH_TOKEN": "ghp_put-and-kept-1"}`)
	done := make(chan string)
	go func() {
		out, err := put.CombinedOutput()
		done <- fmt.Sprint(string(out), err)
	}()
	agent := startShell(t, s, binary, "AGENTIC_GIT_CREDENTIALS=helper", "AGENTIC_WITHHOLD_ENV=GH_TOKEN", "AGENTIC_SECRETS_WAIT=60s")
	if got := <-done; got != "<nil>" {
		t.Error(got)
	}
	if got := credentialOf(t, s, binary, "https", "github.com"); got != "x-access-token\nghp_put-and-kept-1" {
		t.Errorf("%q", got)
	}
	if out := agent.do(`agent=$PPID; tr '\0' '\n' < /proc/$agent/environ | grep -c ghp_; env | grep -c ghp_`); out != "0\n0\n" {
		t.Errorf("%q", out)
	}
	if found := s.holding("ghp_put"); len(found) > 0 {
		t.Error(found)
	}
	agent.end()
}

// TestB1AStopSignalEndsTheWait and leaves nothing behind.
func TestB1AStopSignalEndsTheWait(t *testing.T) {
	s := newScene(t)
	cmd := exec.Command("/proc/self/exe", "true")
	cmd.Env = append(s.env, "RUN_AS_AGENT_INIT=1", "AGENTIC_SECRETS_WAIT=60s", "AGENTIC_LOG_LEVEL=info")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	log := bufio.NewReader(stderr)
	if line, err := log.ReadString('\n'); !strings.Contains(line, "waiting for agent-init secrets put") {
		t.Fatal(line, err)
	}
	start := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(log)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+15 || !strings.Contains(string(rest), "boot was interrupted") || time.Since(start) > 5*time.Second {
		t.Errorf("exit code %d after %v: %s", code, time.Since(start), rest)
	}
	for _, name := range []string{"run/control", "ws", "run/launch.json"} {
		if _, err := os.Stat(s.path(name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

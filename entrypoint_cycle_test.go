package entrypoint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// H3: the agent CLI runs twice with the image's prompt on stdin, and finds in the
// second run what has been added to a repo meanwhile.
func TestH3RealAgentRunsAgainAndSeesWhatIsNew(t *testing.T) {
	parallel(t)
	m := startModel(t, "testdata/cycle/standin.json")
	repos := t.TempDir()
	if err := os.Chmod(repos, 0o755); err != nil {
		t.Fatal(err)
	}
	check := func(name string) {
		t.Helper()
		path := filepath.Join(repos, "api", ".claude-ops", "checks", name+".md")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("# "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check("disk")
	w := start(t, []string{"claude", "-p", "--allowedTools=Bash"}, m.talk(),
		env("AGENTIC_INTERVAL=3s", "AGENTIC_MAX_RUNS=2", "AGENTIC_PROMPT_FILE=/opt/agentic/prompts/monitor.md", "AGENTIC_RESULTS_DIR=/workspace/results"),
		host(func(h *container.HostConfig) {
			h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: repos, Target: "/repos", ReadOnly: true})
		}))
	w.await(`"event_type":"agent_exited"`)
	check("certificates")
	r := w.wait()
	wantCode(t, r, 0)
	if n := strings.Count(r.stderr, `"event_type":"cycle_completed"`); n != 2 {
		t.Errorf("%d cycles instead of 2\n%s", n, r)
	}
	// The hooks of the CLI are heard in both runs.
	if n := strings.Count(r.stderr, `"event_type": "session_completed"`); n != 2 {
		t.Errorf("%d sessions have ended instead of 2\n%s", n, r.stderr)
	}

	prompt, err := os.ReadFile("docker/prompts/monitor.md")
	if err != nil {
		t.Fatal(err)
	}
	var maps []string
	for _, request := range m.requests() {
		if got := strings.TrimSpace(request.Prompt); len(request.ToolResults) == 0 && got != strings.TrimSpace(string(prompt)) {
			t.Errorf("the prompt arrived as %q", got)
		}
		if n := len(request.ToolResults); n > 0 {
			maps = append(maps, request.ToolResults[n-1].Text)
		}
	}
	if len(maps) != 2 || !strings.Contains(maps[0], `"name": "disk"`) || strings.Contains(maps[0], "certificates") ||
		!strings.Contains(maps[1], `"name": "disk"`) || !strings.Contains(maps[1], `"name": "certificates"`) {
		t.Errorf("the repo maps: %q", maps)
	}

	logs := w.files("/workspace/results")
	var listing string
	for _, text := range logs {
		listing += text
	}
	if len(logs) != 2 {
		t.Errorf("the logs: %q", keys(logs))
	}
	wantIn(t, listing, "# cycle: 1\n", "# cycle: 2\n", "# repo api: checks: disk;", "# repo api: checks: certificates, disk;", "The map is read.")
	if strings.Count(r.stdout, "The map is read.") != 2 {
		t.Errorf("stdout is %q", r.stdout)
	}
}

// H3: PID 1 could end everything; between runs it ends what is the agent's.
func TestH3OthersGoOnBetweenRuns(t *testing.T) {
	parallel(t)
	plugin := bind(t, "testdata/cycle/plugins", "/opt/agentic/plugins")
	w := start(t, bash(
		`echo "run $AGENTIC_CYCLE"`,
		`[ "$AGENTIC_CYCLE" = 1 ] || pgrep() { for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline 2>/dev/null | grep -q "^sleep $1 " && echo "$1 lives"; done; }`,
		`case $AGENTIC_CYCLE in`,
		`1) setsid sleep 1001 & until [ -e /tmp/entered ]; do sleep 0.01; done ;;`,
		`2) pgrep 1001; pgrep 1002; pgrep 1003; pgrep 1004; kill -TERM 1; exec sleep 1005 ;;`,
		`esac`), env("AGENTIC_INTERVAL=50ms"), plugin)
	w.await("run 1")
	if r := w.exec("agent-init", "health"); r.code != 0 {
		t.Error(r)
	}
	// A session from outside, and one that has left an orphan.
	w.execDetached("sleep", "1003")
	r := w.exec("sh", "-c", "setsid sleep 1004 > /dev/null 2>&1 & ")
	wantCode(t, r, 0)
	w.exec("touch", "/tmp/entered")
	began := time.Now()
	r = w.wait()
	wantCode(t, r, 143)
	if r.stdout != "run 1\nrun 2\n1002 lives\n1003 lives\n1004 lives\n" {
		t.Errorf("after the first run: %s", r)
	}
	ended := strings.Index(r.stderr, `"event_type":"orphans_ended"`)
	if second := strings.Index(r.stderr, `"event_type":"cycle_started"`); ended < second {
		t.Errorf("what the agent has left is not told of:\n%s", r.stderr)
	}
	if took := time.Since(began); took > 9*time.Second {
		t.Error("stopped after ", took)
	}
}

// H3: the tap and the sinks live between two runs.
func TestH3E3EventsOfASessionBetweenRuns(t *testing.T) {
	parallel(t)
	m := startModel(t, "")
	w := start(t, []string{"true"}, m.talk(), env("AGENTIC_INTERVAL=1h"))
	w.await(`"event_type":"cycle_completed"`)
	r := w.exec("claude", "-p", "hi")
	wantCode(t, r, 0)
	w.await(`"event_type": "session_completed"`)
	if r = w.exec("agent-init", "health"); r.code != 0 || !strings.Contains(r.stdout, "runs again at 20") {
		t.Error(r)
	}
	r = w.stop()
	wantCode(t, r, 0)
	for _, name := range []string{"session_started", "user_prompt_submitted", "session_completed"} {
		if n := strings.Count(r.stderr, `"event_type": "`+name+`"`); n != 1 {
			t.Errorf("%d times %s\n%s", n, name, r.stderr)
		}
	}
}

// H3, B8: what the operator changes in an injected file counts in the next run; what
// the agent has changed is not lost.
func TestH3B8InjectedFileChangesBetweenRuns(t *testing.T) {
	parallel(t)
	var context string
	mounted := injected(t, map[string]string{"CLAUDE.md": "one\n"}, func(dir string) { context = filepath.Join(dir, "CLAUDE.md") })
	w := start(t, bash(`cat CLAUDE.md`, `[ "$AGENTIC_CYCLE" = 1 ] || echo mine > CLAUDE.md`), mounted,
		env("AGENTIC_INTERVAL=2s", "AGENTIC_MAX_RUNS=3"))
	w.await(`"event_type":"agent_exited"`)
	if err := os.WriteFile(context, []byte("two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := w.wait()
	wantCode(t, r, 0)
	if r.stdout != "one\ntwo\nmine\n" || !strings.Contains(r.stderr, "a different file is there") {
		t.Error(r)
	}
}

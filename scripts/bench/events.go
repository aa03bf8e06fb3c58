package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// relayed is how many bytes of events go through a pipe in one run, and
	// reformatted how many of them jq gets, which is slower by far.
	relayed     = 256 << 20
	reformatted = 32 << 20
	// eventFile is the size of the file that holds them, and is read again.
	eventFile = 1 << 20

	relayRounds = 7
	hookRounds  = 150
	emitRounds  = 40
)

// events measures what becomes of the agent's events.
func (b *bench) events() error {
	return errors.Join(b.relay(), b.tap(), b.emit())
}

// relay compares what agent-init moves from an agent's stderr to its own, with
// ten secrets to mask and into the journal, with what cat does.
func (b *bench) relay() error {
	file := filepath.Join(b.scratch, "events")
	var text strings.Builder
	for i := 0; text.Len() < eventFile; i++ {
		fmt.Fprintf(&text, `{"event_type": "tool_execution_started", "timestamp": "2026-11-21T07:45:47.%06d+00:00", "session_id": "0b2f9a54-6a3c-4a87-9b0e-%012d", "provider": "claude", "context": {"tool_name": "Bash", "tool_use_id": "toolu_%x", "input_preview": "go test ./internal/... -run TestThatThingWorks -count=1"}, "metadata": null}`+"\n", i%1_000_000, i, i*7919)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return err
	}
	cat := func(size int) string { return "cat" + strings.Repeat(" "+file, size/eventFile) }
	env, err := b.plain("relay")
	if err != nil {
		return err
	}
	for i := range 10 {
		env = append(env, fmt.Sprintf("BENCH%d_TOKEN=ghp_%030d%s", i, i*1_000_003, strings.Repeat("x", i)))
	}
	ours := func(size int) string {
		return fmt.Sprintf("%s --log-level error sh -c 'exec %s >&2' 2>&1 >/dev/null | cat >/dev/null", b.agentInit, cat(size))
	}
	shell := func(name, line string) program {
		return program{name: name, argv: []string{"/bin/sh", "-c", line}, env: env}
	}
	samples, err := interleave(1, relayRounds, shell("cat", cat(relayed)+" | cat | cat >/dev/null"), shell("agent-init", ours(relayed)))
	if err != nil {
		return err
	}
	reference := measured("cat", samples[0])
	own := measured("agent-init", samples[1]).against("cat", samples[1], samples[0])
	b.add("relay", fmt.Sprintf("%d MiB of events, ten secrets, journal and stderr, from the first process to the last", relayed>>20), reference, own)
	b.report.atLeast("relay", own, 1/own.Ratio, 0.5, "of what cat | cat moves")

	if _, err := exec.LookPath("jq"); err != nil {
		none := row{Name: "jq", NotRun: "jq is not installed"}
		b.add("relay and jq", "agent-init against jq -c .", none)
		b.report.atLeast("relay and jq", none, 0, 15, "x as fast as jq -c .")
		return nil
	}
	samples, err = interleave(0, 3, shell("agent-init", ours(reformatted)), shell("jq", cat(reformatted)+" | jq -c . | cat >/dev/null"))
	if err != nil {
		return err
	}
	own = measured("agent-init", samples[0])
	jq := measured("jq -c .", samples[1]).against("agent-init", samples[1], samples[0])
	b.add("relay and jq", fmt.Sprintf("%d MiB of events", reformatted>>20), own, jq)
	b.report.atLeast("relay and jq", jq, jq.Ratio, 15, "x as fast as jq -c .")
	return nil
}

// plain is the environment of an agent-init with nothing to boot.
func (b *bench) plain(name string) ([]string, error) {
	t, err := newTree(filepath.Join(b.scratch, "nothing"), 0, 0)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(t.baseline()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	w := newWorkspace(filepath.Join(b.scratch, name))
	return w.bare(t), w.clear()
}

// hooksCommand makes this program the agent whose hooks are measured.
const hooksCommand = "measure-hooks"

// tap measures what the tap adds to a hook, within a running agent-init.
func (b *bench) tap() error {
	env, err := b.plain("tap")
	if err != nil {
		return err
	}
	// The tap is there where there is an agent CLI.
	bin := filepath.Join(b.scratch, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	cli := filepath.Join(bin, "claude")
	os.Remove(cli)
	if err := os.Symlink("/bin/true", cli); err != nil {
		return err
	}
	env = append(env, "CLAUDE_CODE_CHILD_SESSION=1")
	env[0] = "PATH=" + bin + ":" + strings.TrimPrefix(env[0], "PATH=")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(b.agentInit, "--log-level", "error", self, hooksCommand)
	cmd.Env = env
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("the hooks under agent-init: %w", err)
	}
	var walls [2][]time.Duration
	if err := json.Unmarshal(out, &walls); err != nil {
		return err
	}
	var samples [2][]sample
	for i, w := range walls {
		for _, d := range w {
			samples[i] = append(samples[i], sample{wall: d})
		}
	}
	bare := measured("bare", samples[0])
	tapped := measured("tapped", samples[1]).against("bare", samples[1], samples[0])
	b.add("tap", "a hook that writes one event, run as the agent CLI runs it", bare, tapped)
	b.report.atMost("tap", tapped, tapped.Median-bare.Median, 5, "ms added to a hook")
	return nil
}

// measureHooks is the agent: it prints the times of bare and of tapped hooks.
func measureHooks() error {
	if err := openNull(); err != nil {
		return err
	}
	const hook = `echo "{\"event_type\":\"e\"}" >&2`
	shell := func(line string) program {
		return program{name: "hook", argv: []string{"/bin/sh", "-c", line}, env: os.Environ()}
	}
	prefix := os.Getenv("CLAUDE_CODE_SHELL_PREFIX")
	if prefix == "" {
		return errors.New("agent-init has made no tap")
	}
	samples, err := interleave(warmUp, hookRounds, shell(hook), shell(prefix+" '"+hook+"'"))
	if err != nil {
		return err
	}
	var walls [2][]time.Duration
	for i := range walls {
		for _, s := range samples[i] {
			walls[i] = append(walls[i], s.wall)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(walls)
}

// emit compares agent-init emit with a Python handler that does the same.
func (b *bench) emit() error {
	python, err := exec.LookPath("python3")
	if err != nil {
		none := row{Name: "Python", NotRun: "python3 is not installed"}
		b.add("emit", "agent-init emit against Python", none)
		b.report.atLeast("emit", none, 0, 5, "x as fast as a Python handler")
		return nil
	}
	input := filepath.Join(b.scratch, "payload.json")
	const payload = `{"session_id":"s1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"toolu_1","tool_input":{"command":"go test ./..."}}`
	if err := os.WriteFile(input, []byte(payload), 0o600); err != nil {
		return err
	}
	// The interpreter itself, not a launcher that looks for one.
	if out, err := exec.Command(python, "-c", "import sys; print(sys.executable)").Output(); err == nil {
		python = strings.TrimSpace(string(out))
	}
	modules, err := filepath.Abs(filepath.Join("docker", "python"))
	if err != nil {
		return err
	}
	env := append(os.Environ(), "PYTHONPATH="+modules)
	shell := func(name, line string) program {
		return program{name: name, argv: []string{"/bin/sh", "-c", line}, env: env}
	}
	handler := filepath.Join("docker", "testdata", "observe.py")
	samples, err := interleave(3, emitRounds, shell("emit", fmt.Sprintf("exec %s emit < %s", b.agentInit, input)),
		shell("Python", fmt.Sprintf("exec %s %s < %s", python, handler, input)))
	if err != nil {
		return err
	}
	own := measured("agent-init emit", samples[0])
	other := measured("Python handler", samples[1]).against("agent-init emit", samples[1], samples[0])
	b.add("emit", "a PreToolUse hook", own, other)
	b.report.atLeast("emit", other, other.Ratio, 5, "x as fast as a Python handler")
	return nil
}

package entrypoint_test

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/pkg/stdcopy"
)

// ended are the processes of an orphans_ended event.
type ended struct {
	Processes []struct{ Name, Signal string }
}

func (e ended) strings() (all []string) {
	for _, p := range e.Processes {
		all = append(all, p.Name+" "+p.Signal)
	}
	slices.Sort(all)
	return all
}

// stop is docker stop with its default timeout.
func (w *workspace) stop() result {
	w.t.Helper()
	w.must(w.ContainerStop(w.ctx, w.id, container.StopOptions{}))
	return w.wait()
}

// wantNoKill checks that Docker had to send TERM only.
func (w *workspace) wantNoKill() {
	w.t.Helper()
	now := time.Now()
	messages, failed := w.Events(w.ctx, events.ListOptions{
		Since: strconv.FormatInt(now.Add(-patience).Unix(), 10), Until: strconv.FormatInt(now.Unix()+1, 10),
		Filters: filters.NewArgs(filters.Arg("container", w.id), filters.Arg("event", "kill")),
	})
	var sent []string
	for {
		select {
		case m := <-messages:
			sent = append(sent, m.Actor.Attributes["signal"])
		case <-failed: // io.EOF at the end
			if !slices.Equal(sent, []string{"15"}) {
				w.t.Errorf("Docker sent the signals %q, not TERM alone", sent)
			}
			return
		}
	}
}

func TestS3StopEndsACooperativeAgent(t *testing.T) {
	docker(t)
	for name, test := range map[string]struct {
		command []string
		code    int
		said    string
	}{
		"that knows nothing of signals": {bash("echo ready; exec sleep infinity"), 143, ""},
		"that cleans up":                {bash("trap 'echo bye; exit 143' TERM; echo ready", "while :; do sleep infinity & wait $!; done"), 143, "bye\n"},
		"that has a code of its own":    {bash("trap 'exit 3' TERM; echo ready", "while :; do sleep infinity & wait $!; done"), 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			w := start(t, test.command)
			w.await("ready\n")
			r := w.stop()
			wantCode(t, r, test.code)
			wantIn(t, r.stdout, test.said)
			w.wantNoKill()
		})
	}
}

func TestS3StopEndsAStubbornAgentAndItsSessions(t *testing.T) {
	parallel(t)
	// Both children are in sessions of their own, as an agent's tools and MCP
	// servers are; the renamed copies tell who was ended.
	w := start(t, bash("cp /bin/sleep /tmp/meek; cp /bin/bash /tmp/deaf",
		"setsid -f /tmp/meek infinity",
		`setsid -f /tmp/deaf -c 'trap "" TERM; echo deaf >&2; while :; do read -t 1000 <> <(:); done'`,
		`trap "" TERM; echo ready; while :; do read -t 1000 <> <(:); done`))
	w.await("ready\n")
	w.await("deaf\n")
	begun := time.Now()
	r := w.stop()
	took := time.Since(begun)
	wantCode(t, r, 137)
	w.wantNoKill()
	// The agent's share of a grace of 8 s is 4.5 s; no child may make it 8.
	if took < 4*time.Second || took > 8*time.Second {
		t.Errorf("the stop took %v", took)
	}
	var left ended
	r.event(t, "orphans_ended", &left)
	if got := left.strings(); !slices.Contains(got, "meek SIGTERM") || !slices.Contains(got, "deaf SIGKILL") {
		t.Errorf("ended were %q, not meek by TERM and deaf by KILL", got)
	}
	wantIn(t, r.stderr, "did not stop in its share of the grace")
}

// inits are the two places that agent-init has in a container.
var inits = map[string]struct {
	options []option
	first   string
}{
	"as PID 1":          {nil, "agent-init\n"},
	"below docker-init": {[]option{host(func(h *container.HostConfig) { h.Init = new(bool); *h.Init = true })}, "docker-init\n"},
}

func TestS3AgentsExitEndsWhatItLeft(t *testing.T) {
	docker(t)
	for name, test := range inits {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			r := run(t, bash("cp /bin/sleep /tmp/forgotten", "setsid -f /tmp/forgotten infinity",
				"until grep -qsx forgotten /proc/[0-9]*/comm; do :; done", "cat /proc/1/comm; exit 7"), test.options...)
			wantCode(t, r, 7)
			if r.stdout != test.first {
				t.Errorf("PID 1 is %q", r.stdout)
			}
			var left ended
			r.event(t, "orphans_ended", &left)
			if got := left.strings(); !slices.Equal(got, []string{"forgotten SIGTERM"}) {
				t.Errorf("ended were %q", got)
			}
		})
	}
}

// countZombies defines a function of that name without starting a process.
const countZombies = `zombies() {
	local file line; count=0
	for file in /proc/[0-9]*/stat; do
		{ read -r line <"$file"; } 2>/dev/null || continue
		case ${line##*) } in Z*) count=$((count + 1)) ;; esac
	done
}
until_none() { local i; for i in {1..200}; do zombies; [ $count = 0 ] && break; read -rt 0.05 <> <(:); done; echo "zombies: $count"; }`

func TestS2OrphansAreReapedWhileTheAgentRuns(t *testing.T) {
	docker(t)
	for name, test := range inits {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			w := start(t, bash(countZombies, "cp /bin/sleep /tmp/orphan",
				"for i in {1..50}; do (/tmp/orphan 0.$((i % 10)) & ); done",
				`for i in {1..200}; do pids=$(grep -lsx orphan /proc/[0-9]*/comm); [ -z "$pids" ] && break; read -rt 0.05 <> <(:); done`,
				"until_none", "exec sleep infinity"), test.options...)
			w.await("zombies: 0\n")
			top, err := w.ContainerTop(w.ctx, w.id, []string{"-eo", "pid,stat,comm"})
			w.must(err)
			for _, process := range top.Processes {
				if strings.HasPrefix(process[1], "Z") {
					t.Errorf("a zombie is left: %q", process)
				}
			}
			r := w.stop()
			wantCode(t, r, 143)
			if strings.Contains(r.stderr, `"warn"`) {
				t.Errorf("a warning:\n%s", r)
			}
		})
	}
}

func TestS2TwoThousandOrphans(t *testing.T) {
	parallel(t)
	// Each ends at once, as a child of agent-init's; 2 processes are agent-init
	// and the shell.
	r := run(t, bash(countZombies, "for i in {1..2000}; do (: & ); done",
		`for i in {1..200}; do set -- /proc/[0-9]*; [ $# = 2 ] && break; read -rt 0.05 <> <(:); done`,
		`zombies; echo "zombies: $count, processes: $#"`))
	wantCode(t, r, 0)
	if r.stdout != "zombies: 0, processes: 2\n" || strings.Contains(r.stderr, "orphans_ended") {
		t.Errorf("something is left:\n%s", r)
	}
}

func TestS5AgentStartsWithNothingOfAgentInits(t *testing.T) {
	parallel(t)
	r := run(t, []string{"grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"})
	if want := "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"; r.stdout != want {
		t.Errorf("the agent's signals are\n%swant\n%s", r.stdout, want)
	}
	// The listing has a descriptor of its own.
	r = run(t, []string{"python3", "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))); print(os.getcwd())"})
	if want := "[0, 1, 2, 3]\n/workspace\n"; r.stdout != want {
		t.Errorf("descriptors and directory are\n%swant\n%s", r.stdout, want)
	}
}

func TestS7AgentCannotReadPID1(t *testing.T) {
	parallel(t)
	r := run(t, bash("cat /proc/1/environ && exit 1", "cat /proc/1/maps && exit 1", `echo "KEPT=$KEPT"`),
		env("KEPT=not-for-the-agent", "AGENTIC_WITHHOLD_ENV=KEPT"))
	wantCode(t, r, 0)
	if r.stdout != "KEPT=\n" {
		t.Errorf("the agent sees %q", r.stdout)
	}
	wantIn(t, r.stderr, `"level":"warn"`, "KEPT")
}

func TestS6StopAtThePidsLimit(t *testing.T) {
	parallel(t)
	limit := int64(64)
	w := start(t, []string{"python3", "-c", strings.Join([]string{
		"import os, signal", "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
		"try:", "  while os.fork(): pass", "  os.setsid()", "except OSError: print('full', flush=True)",
		"while True: signal.pause()"}, "\n")},
		host(func(h *container.HostConfig) { h.PidsLimit = &limit }))
	w.await("full\n")
	r := w.stop()
	wantCode(t, r, 137)
	w.wantNoKill()
	var left ended
	r.event(t, "orphans_ended", &left)
	if got := left.strings(); len(got) < 40 || slices.ContainsFunc(got, func(s string) bool { return s != "python3 SIGKILL" }) {
		t.Errorf("ended were %q", got)
	}
}

func TestS6AgentIsKilledForMemoryAndAgentInitIsNot(t *testing.T) {
	parallel(t)
	const greedy = `python3 -c 'b = bytearray(500 << 20)'`
	r := run(t, bash(greedy+`; echo "tool: $?"`, "cp /bin/sleep /tmp/forgotten", "setsid -f /tmp/forgotten infinity",
		"until grep -qsx forgotten /proc/[0-9]*/comm; do :; done", "exec "+greedy),
		host(func(h *container.HostConfig) { h.Memory, h.MemorySwap = 64<<20, 64<<20 }))
	wantCode(t, r, 137)
	wantIn(t, r.stdout, "tool: 137\n")
	var left ended
	r.event(t, "orphans_ended", &left)
	var exited agentExited
	r.event(t, "agent_exited", &exited)
	if !exited.OOMKilled || exited.OOMKills < 2 || exited.Signal != "SIGKILL" || exited.Code != 137 {
		t.Errorf("it was ended by %+v", exited)
	}
	if exited.Peak < 60<<20 || exited.Peak > 64<<20 || exited.MaxRSS < 30<<20 || exited.MaxRSS > 96<<20 {
		t.Errorf("it used %+v", exited)
	}
	wantIn(t, r.stderr, "the kernel's OOM killer ended the agent")
}

// agentExited is what the event of this name says, as far as tests look.
type agentExited struct {
	Code      int
	Signal    string
	OOMKilled bool  `json:"oom_killed"`
	OOMKills  int   `json:"oom_kills"`
	Peak      int64 `json:"memory_peak_bytes"`
	MaxRSS    int64 `json:"max_rss_bytes"`
}

// A tool that runs out of memory is counted, and the agent goes on.
func TestE6ToolIsKilledForMemoryAndTheAgentIsNot(t *testing.T) {
	parallel(t)
	r := run(t, bash(`python3 -c 'b = bytearray(500 << 20)'`, `exit 5`),
		host(func(h *container.HostConfig) { h.Memory, h.MemorySwap = 64<<20, 64<<20 }))
	wantCode(t, r, 5)
	var exited agentExited
	r.event(t, "agent_exited", &exited)
	if exited.OOMKilled || exited.OOMKills != 1 || exited.Signal != "" {
		t.Errorf("it says %+v", exited)
	}
}

func TestE1StreamsAreTheAgentsOwn(t *testing.T) {
	parallel(t)
	w := create(t, image, []string{"cat"}, openStdin)
	stream, err := w.ContainerAttach(w.ctx, w.id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true})
	w.must(err)
	defer stream.Close()
	w.start()
	var out bytes.Buffer
	read := make(chan error, 1)
	go func() {
		_, err := stdcopy.StdCopy(&out, io.Discard, stream.Reader)
		read <- err
	}()
	var in bytes.Buffer
	for i := range 100_000 {
		in.WriteString(strconv.Itoa(i) + "\x00\xff\n")
	}
	sent := in.String()
	_, err = in.WriteTo(stream.Conn)
	w.must(err)
	w.must(stream.CloseWrite())
	r := w.wait()
	wantCode(t, r, 0)
	w.must(<-read)
	if out.String() != sent {
		t.Errorf("%d bytes went in, %d other bytes came out", len(sent), out.Len())
	}
}

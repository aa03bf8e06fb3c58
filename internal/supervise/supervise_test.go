package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestC2ExitCodes(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		for script, want := range map[string]int{
			"exit 0": 0, "exit 1": 1, "exit 7": 7, "exit 126": 126, "exit 127": 127, "exit 200": 200,
			"kill -TERM $$": 143, "kill -KILL $$": 137, "kill -INT $$": 130,
		} {
			p := startInit(t, pid1, "--", "sh", "-c", script)
			code, o := p.end()
			if code != want || o.Code != want || o.Stopped || o.TimedOut || len(o.Ended) != 0 {
				t.Errorf("%s: exit code %d, %+v, want %d", script, code, o, want)
			}
			if strings.HasPrefix(script, "kill") != (o.Signal != 0) {
				t.Errorf("%s: %+v", script, o)
			}
		}
	})
}

func TestC2CommandThatCannotStart(t *testing.T) {
	if code, _ := startInit(t, false, "--", "no-such-command").end(); code != 127 {
		t.Error(code)
	}
	if code, _ := startInit(t, true, "--", "/").end(); code != 126 && os.Getuid() == 0 {
		t.Error(code)
	}
}

func TestOutcomeHasUsage(t *testing.T) {
	p := startInit(t, false, "--", "sh", "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done")
	_, o := p.end()
	if o.Usage.User+o.Usage.System <= 0 || o.Usage.MaxRSS < 64<<10 || o.Duration <= 0 {
		t.Errorf("%+v", o)
	}
}

func TestS2OrphansAreReapedAtOnce(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		p := startInit(t, pid1, "--", os.Args[0], "role:orphans", burst)
		got := p.line()
		if !strings.HasPrefix(got, "clean ") {
			t.Error(got)
		}
		t.Log(got, "ms after", burst, "processes lost their parent")
		if code, o := p.end(); code != 0 || len(o.Ended) != 0 {
			t.Error(code, o)
		}
	})
}

func TestS3CooperativeAgentStops(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		p := startInit(t, pid1, "-grace", "1h", "--", "sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.02; done")
		p.line()
		p.signal(unix.SIGTERM)
		if code, o := p.end(); code != 3 || !o.Stopped || o.TimedOut {
			t.Error(code, o)
		}
	})
}

func TestS3StubbornAgentIsKilledAtItsShare(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		const grace = 1600 * time.Millisecond
		p := startInit(t, pid1, "-grace", grace.String(), "--", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done")
		p.line()
		p.signal(unix.SIGTERM)
		start := time.Now()
		code, o := p.end()
		if code != 137 || o.Signal != unix.SIGKILL || !o.Stopped {
			t.Error(code, o)
		}
		if took := time.Since(start); took < grace*9/16-50*time.Millisecond {
			t.Error("killed before its share was over, after ", took)
		}
	})
}

// TestS3 wants the names of all that had to be ended, those in the group of an
// agent that had to be killed included.
func TestS3StubbornAgentsGroupIsNamed(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		p := startInit(t, pid1, "-grace", "800ms", "--", "sh", "-c",
			"trap '' TERM; sh -c 'echo ready; while :; do sleep 1000; done' & while :; do sleep 1000; done")
		p.line()
		p.signal(unix.SIGTERM)
		code, o := p.end()
		killed := 0
		for _, e := range o.Ended {
			if e.Signal == unix.SIGKILL {
				killed++
			}
		}
		if code != 137 || killed == 0 {
			t.Error(code, o)
		}
	})
}

func TestS3OtherSignalsStartNothing(t *testing.T) {
	p := startInit(t, false, "-grace", "0s", "--", "sh", "-c", "trap 'echo int' INT; trap 'echo term; exit 0' USR1; echo ready; while :; do sleep 0.02; done")
	p.line()
	p.signal(unix.SIGINT)
	if got := p.line(); got != "int" {
		t.Error(got)
	}
	p.signal(unix.SIGUSR1)
	if code, o := p.end(); code != 0 || o.Stopped {
		t.Error(code, o)
	}
}

func TestS3StopSignalsAreConfigured(t *testing.T) {
	p := startInit(t, false, "-grace", "100ms", "-stop", "USR2,INT", "--", "sh", "-c", "trap '' INT; echo ready; while :; do sleep 1; done")
	p.line()
	p.signal(unix.SIGINT)
	if code, o := p.end(); code != 137 || !o.Stopped {
		t.Error(code, o)
	}
}

func TestTimeoutEndsTheAgentWith124(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		for script, sig := range map[string]unix.Signal{
			"while :; do sleep 0.02; done":                       unix.SIGTERM,
			"trap '' TERM; while :; do sleep 0.1; done":          unix.SIGKILL,
			"trap 'exit 0' TERM; while :; do sleep 0.02; done":   0,
			"trap '' TERM; kill -STOP $$; echo never; sleep 100": unix.SIGKILL,
		} {
			p := startInit(t, pid1, "-grace", "400ms", "-timeout", "200ms", "--", "sh", "-c", script)
			if code, o := p.end(); code != 124 || !o.TimedOut || o.Stopped || o.Signal != sig {
				t.Errorf("%s: %d, %+v", script, code, o)
			}
		}
	})
}

func TestS3StoppedAgentIsContinuedToStop(t *testing.T) {
	p := startInit(t, false, "-grace", "1h", "--", "sh", "-c", "trap 'exit 4' TERM; kill -STOP $$; while :; do sleep 0.02; done")
	until(t, "the stop", func() bool {
		for _, c := range descendants(p.Process.Pid, processes()) {
			if c.halted() {
				return true
			}
		}
		return false
	})
	p.signal(unix.SIGTERM)
	if code, _ := p.end(); code != 4 {
		t.Error(code)
	}
}

// TestS3Sweep leaves behind what escapes from process groups and sessions.
func TestS3SweepReachesEveryone(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		dir := t.TempDir()
		ready := filepath.Join(dir, "r")
		script := strings.Join([]string{
			"setsid sh -c 'touch $0.session; exec sleep 1000' " + ready + " &",
			"(setsid sh -c \"trap '' TERM HUP; touch $0.stubborn; while :; do sleep 1000; done\" " + ready + " &)",
			"(sh -c 'touch $0.stopped; kill -STOP $$; sleep 1000' " + ready + " &)",
			os.Args[0] + " role:daemon " + ready,
			"while ! [ -e $0.session -a -e $0.stubborn -a -e $0.stopped -a -e $0.setsid -a -e $0.double ]; do sleep 0.02; done",
			"ps -eo pid,stat >/dev/null; exit 5",
		}, "\n")
		script = strings.ReplaceAll(script, "$0.stubborn", ready+".stubborn")
		p := startInit(t, pid1, "-grace", "2s", "--", "sh", "-c", script, ready)
		pid := p.Process.Pid
		code, o := p.end()
		if code != 5 {
			t.Error("exit code", code)
		}
		left := descendants(pid, processes())
		if len(left) != 0 {
			t.Error("left behind: ", left)
		}
		signals := map[unix.Signal]int{}
		for _, e := range o.Ended {
			if e.Name == "" || e.PID == 0 {
				t.Errorf("%+v", e)
			}
			signals[e.Signal]++
		}
		// sleep, the stopped sh and one daemon by TERM; two stubborn ones by KILL.
		if signals[unix.SIGTERM] < 3 || signals[unix.SIGKILL] < 2 || signals[0] != 0 {
			t.Errorf("%+v", o.Ended)
		}
		if !slices.ContainsFunc(o.Ended, func(e Ended) bool { return e.Name == "sleep" }) {
			t.Errorf("%+v", o.Ended)
		}
	})
}

// TestS3SweepIsForDescendantsOnly checks that a subreaper leaves the rest of
// the machine alone.
func TestS3SweepIsForDescendantsOnly(t *testing.T) {
	other := startInit(t, false, "--", "sh", "-c", "echo ready; read line")
	other.line()
	p := startInit(t, false, "-grace", "200ms", "--", "sh", "-c", "sleep 1000 & exit 0")
	if code, o := p.end(); code != 0 || len(o.Ended) != 1 {
		t.Error(code, o)
	}
	other.stdin.Close()
	if code, o := other.end(); code != 1 || len(o.Ended) != 0 {
		t.Error(code, o)
	}
}

func TestS3SweepEndsAForkBomb(t *testing.T) {
	group := pidsGroup(t, 200)
	p := startInit(t, false, "-grace", "8s", "-limit", group, "--", "sh", "-c",
		"trap '' TERM; bomb() { trap '' TERM; while :; do (bomb) & sleep 0.05; done; }; bomb 2>/dev/null & sleep 0.5; exit 6")
	pid := p.Process.Pid
	code, o := p.end()
	if code != 6 || len(o.Ended) == 0 {
		t.Error(code, len(o.Ended))
	}
	for _, e := range o.Ended {
		if e.Signal == 0 {
			t.Errorf("not ended: %+v", e)
		}
	}
	if left := descendants(pid, processes()); len(left) != 0 {
		t.Error(left)
	}
}

func TestS3StopDuringTheSweep(t *testing.T) {
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	p := startInit(t, false, "-grace", "4s", "--", "sh", "-c",
		"setsid sh -c \"trap 'touch $0.term' TERM; touch $0; while :; do sleep 0.02; done\" & while ! [ -e $0 ]; do sleep 0.02; done; exit 9", ready)
	until(t, "the sweep", func() bool { return exists(ready + ".term") })
	p.signal(unix.SIGTERM)
	if code, o := p.end(); code != 9 || !o.Stopped || len(o.Ended) == 0 {
		t.Error(code, o)
	}
}

// TestS5NoDescriptorLeaks compares with what the same command sees without
// supervision: a descriptor that we inherited is the agent's too.
func TestS5NoDescriptorLeaks(t *testing.T) {
	direct := exec.Command("ls", "/proc/self/fd")
	direct.Stdin, direct.Stderr = os.Stdin, os.Stderr
	want, err := direct.Output()
	check(t, err)
	p := startInit(t, false, "--", "ls", "/proc/self/fd")
	var got strings.Builder
	_, err = p.lines.WriteTo(&got)
	check(t, err)
	if got.String() != string(want) {
		t.Errorf("got %q, want %q", got.String(), want)
	}
	if code, _ := p.end(); code != 0 {
		t.Error(code)
	}
}

func TestS5WorkingDirectoryAndEnvironmentAreInherited(t *testing.T) {
	t.Setenv("SUPERVISE_TEST", "a b\nc")
	p := startInit(t, false, "--", "sh", "-c", `pwd; printf '%s\n' "$SUPERVISE_TEST"`)
	wd, err := os.Getwd()
	check(t, err)
	if got := []string{p.line(), p.line(), p.line()}; !slices.Equal(got, []string{wd, "a b", "c"}) {
		t.Error(got)
	}
	p.end()
}

// pidsGroup makes a cgroup that holds at most max processes and threads.
func pidsGroup(t *testing.T, limit int) string {
	t.Helper()
	needRoot(t)
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		dir := filepath.Join(root, fmt.Sprintf("supervise-test-%d-%s", os.Getpid(), t.Name()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(dir, "pids.max"), []byte(strconv.Itoa(limit)), 0) != nil {
			_ = os.Remove(dir)
			continue
		}
		t.Cleanup(func() { until(t, "an empty cgroup", func() bool { return os.Remove(dir) == nil }) })
		return dir
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("needs a pids cgroup")
	}
	t.Skip("needs a pids cgroup")
	return ""
}

// TestS6PidsLimit has the agent use up every process that its cgroup allows,
// agent-init being in it; signals, the stop and the sweep must work there while
// every processor has work, memory is collected and a write blocks.
func TestS6PidsLimit(t *testing.T) {
	group := pidsGroup(t, 60)
	// A shell's trap would not do for the agent: a signal between its last look
	// and its read(2) waits there for the next one.
	const agent = `$| = 1; my $both = POSIX::SigSet->new(SIGUSR1, SIGTERM); sigprocmask(SIG_BLOCK, $both);
$SIG{USR1} = sub { print "usr1\n" }; $SIG{TERM} = sub { exit 11 };
print "full\n"; my $none = POSIX::SigSet->new; sigsuspend($none) while 1`
	const script = `(while :; do sleep 1000 & done) 2>/dev/null; exec perl -MPOSIX -e "$0"`
	for range 5 {
		p := startInit(t, false, "-child", "-busy", "-limit", group, "--", "sh", "-c", script, agent)
		if got := p.line(); got != "full" {
			t.Fatal(got)
		}
		for range 200 {
			p.signal(unix.SIGUSR1)
			if got := p.line(); got != "usr1" {
				t.Fatal(got)
			}
		}
		p.signal(unix.SIGTERM)
		if code, o := p.end(); code != 11 || len(o.Ended) < 30 {
			t.Error(code, o)
		}
	}
}

func TestS6AgentHasAHigherOOMScore(t *testing.T) {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	check(t, err)
	score, err := strconv.Atoi(strings.TrimSpace(string(own)))
	check(t, err)
	p := startInit(t, false, "--", "sh", "-c", "sleep 0.2; cat /proc/self/oom_score_adj")
	if got, want := p.line(), strconv.Itoa(min(score+oomRaise, oomMax)); got != want {
		t.Error(got, want)
	}
	p.end()
}

func TestS7Undumpable(t *testing.T) {
	needRoot(t)
	// As nobody, because to root the files of every process are open.
	p := launch(t, false, []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, "-outcome=", "--", "sh", "-c", "echo ready; read line")
	p.line()
	// The files of an undumpable process belong to root, of any other to its user.
	for file, owner := range map[string]uint32{
		fmt.Sprintf("/proc/%d/environ", p.Process.Pid):                                  0,
		fmt.Sprintf("/proc/%d/environ", descendants(p.Process.Pid, processes())[0].pid): 65534,
	} {
		var st unix.Stat_t
		check(t, unix.Stat(file, &st))
		if st.Uid != owner {
			t.Errorf("%s belongs to %d, want %d", file, st.Uid, owner)
		}
	}
	p.stdin.Close()
	if code, _ := p.end(); code != 1 {
		t.Error(code)
	}
}

package supervise

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseSignal(t *testing.T) {
	for text, want := range map[string]unix.Signal{
		"15": 15, "TERM": 15, "SIGTERM": 15, "sigterm": 15, "1": 1, "64": 64, "USR1": 10, "POLL": 29, "CLD": 17, "IOT": 6,
		"RTMIN": 34, "RTMIN+1": 35, "SIGRTMIN+3": 37, "RTMAX": 64, "RTMAX-1": 63, "RTMIN+30": 64,
	} {
		if got, err := ParseSignal(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "65", "SIG", "FOO", "RTMIN-1", "RTMAX+1", "RTMIN+x", "TERM+1", "15 ", "RTMIN+"} {
		if got, err := ParseSignal(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
}

func TestParseRewrite(t *testing.T) {
	for text, want := range map[string][2]unix.Signal{
		"15:2": {15, 2}, "TERM:INT": {15, 2}, "sigterm:0": {15, 0}, "RTMIN+3:QUIT": {37, 3}, "1:9": {1, 9},
	} {
		from, to, err := ParseRewrite(text)
		if err != nil || from != want[0] || to != want[1] {
			t.Errorf("%s: got %d:%d, %v", text, from, to, err)
		}
	}
	for _, text := range []string{"", "15", "15:", ":2", "0:2", "9:15", "STOP:TERM", "CHLD:TERM", "15:2:3", "15:65", "32:2", "URG:2"} {
		if _, _, err := ParseRewrite(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func FuzzParseSignal(f *testing.F) {
	for _, seed := range []string{"15", "TERM", "SIGRTMIN+3", "RTMAX-64", "+", "RTMIN+9999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sig, err := ParseSignal(text)
		if err == nil && (sig < 1 || sig > sigRTMax) {
			t.Errorf("%q: got %d", text, sig)
		}
		if err == nil {
			if again, err := ParseSignal(SignalName(sig)); sig != 32 && sig != 33 && (err != nil || again != sig) {
				t.Errorf("%s: got %d, %v", SignalName(sig), again, err)
			}
		}
	})
}

// catchable are all signals that a test can send.
func catchable() (all []unix.Signal) {
	for sig := unix.Signal(1); sig <= sigRTMax; sig++ {
		if Catchable(sig) {
			all = append(all, sig)
		}
	}
	return all
}

// TestS1 sends 10,000 signals of every kind, each after the one before was
// acknowledged: none may be lost, none invented.
func TestS1EverySignalIsPassedOn(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		p := startInit(t, pid1, "-stop", "RTMAX", "-grace", "1h", "--", os.Args[0], "role:signals")
		if got := p.line(); !strings.HasPrefix(got, "ready") {
			t.Fatal(got)
		}
		all := catchable()
		for i := range 10_000 {
			sig := all[rand.IntN(len(all))]
			if i < len(all) {
				sig = all[i]
			}
			p.signal(sig)
			if got, want := p.line(), fmt.Sprint("got ", int(sig)); got != want {
				t.Fatalf("signal %d: %s, want %s", i, got, want)
			}
		}
		p.stdin.Close()
		if code, _ := p.end(); code != 0 {
			t.Error("exit code", code)
		}
	})
}

func TestS1FloodOfOneSignalDoesNotPushOutAnother(t *testing.T) {
	p := startInit(t, false, "-stop", "RTMAX", "--", os.Args[0], "role:signals")
	p.line()
	for range 5000 {
		p.signal(unix.SIGUSR1)
	}
	p.signal(unix.SIGTERM)
	for p.line() != "got 15" {
	}
	p.stdin.Close()
	p.end()
}

func TestS1Rewrite(t *testing.T) {
	p := startInit(t, false, "-rewrite", "USR1:USR2,WINCH:0,TERM:0", "--", os.Args[0], "role:signals")
	p.line()
	p.signal(unix.SIGWINCH)
	// Dropped, TERM does not start the grace either.
	p.signal(unix.SIGTERM)
	p.signal(unix.SIGUSR1)
	if got := p.line(); got != "got 12" {
		t.Error(got)
	}
	p.stdin.Close()
	if code, o := p.end(); code != 0 || o.Stopped {
		t.Error(code, o)
	}
}

func TestS1ScopeChildLeavesTheGroupAlone(t *testing.T) {
	for _, scope := range []string{"-child", "-child=false"} {
		p := startInit(t, false, scope, "--", "sh", "-c",
			`trap 'echo agent' USR1; (trap 'echo member' USR1; echo ready; while :; do sleep 0.02; done) & while :; do sleep 0.02; done`)
		if got := p.line(); got != "ready" {
			t.Fatal(got)
		}
		p.signal(unix.SIGUSR1)
		seen := map[string]bool{p.line(): true}
		if scope == "-child=false" {
			seen[p.line()] = true
		} else {
			p.signal(unix.SIGUSR1)
			seen[p.line()] = true
		}
		if !seen["agent"] || seen["member"] != (scope == "-child=false") {
			t.Error(scope, seen)
		}
		p.signal(unix.SIGTERM)
		p.end()
	}
}

func TestS1SignalsDuringBootReachTheAgent(t *testing.T) {
	kinds(t, func(t *testing.T, pid1 bool) {
		gate := filepath.Join(t.TempDir(), "gate")
		check(t, unix.Mkfifo(gate, 0o600))
		p := startInit(t, pid1, "-gate", gate, "--", "sh", "-c", "sleep 100")
		until(t, "boot", func() bool { return exists(gate + ".up") })
		p.signal(unix.SIGUSR1)
		check(t, os.WriteFile(gate, []byte("x"), 0))
		if code, o := p.end(); code != 128+10 || o.Signal != unix.SIGUSR1 {
			t.Error(code, o)
		}
	})
}

func TestS3StopDuringBootStartsTheGrace(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	check(t, unix.Mkfifo(gate, 0o600))
	p := startInit(t, false, "-gate", gate, "-grace", "400ms", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
	until(t, "boot", func() bool { return exists(gate + ".up") })
	p.signal(unix.SIGTERM)
	check(t, os.WriteFile(gate, []byte("x"), 0))
	if _, o := p.end(); !o.Stopped {
		t.Error(o)
	}
}

// TestS1OwnFileTooLarge has agent-init write to a file at the limit of its size.
func TestS1OwnFileTooLarge(t *testing.T) {
	p := launch(t, false, []string{os.Args[0], "role:large", t.TempDir()})
	if got := p.line(); got != "false" {
		t.Error("an XFSZ of our own came as a signal: ", got)
	}
	p.signal(unix.SIGXFSZ)
	if got := p.line(); got != "file size limit exceeded" {
		t.Error("an XFSZ that was sent came as ", got)
	}
	p.end()
}

func roleLarge(args []string) {
	s, err := Listen()
	must(err)
	<-s.ready
	file, err := os.Create(args[0] + "/file")
	must(err)
	must(unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{}))
	s.Configure(Options{StopSignals: []unix.Signal{unix.SIGXFSZ}, Grace: defaultGrace})
	for range 100 {
		if _, err := file.WriteString("x"); !errors.Is(err, unix.EFBIG) {
			must(err)
		}
	}
	_, requested := s.StopRequested()
	fmt.Println(requested)
	<-s.Stop()
	sig, _ := s.StopRequested()
	fmt.Println(sig)
}

// TestS1OwnBrokenPipe has agent-init write into a pipe without a reader: the
// PIPE that the kernel raises is nobody's to pass on.
func TestS1OwnBrokenPipe(t *testing.T) {
	p := launch(t, false, []string{os.Args[0], "role:broken"})
	if got := p.line(); got != "false" {
		t.Error("a PIPE of our own came as a signal: ", got)
	}
	p.signal(unix.SIGPIPE)
	if got := p.line(); got != "broken pipe" {
		t.Error("a PIPE that was sent came as ", got)
	}
	p.end()
}

// roleBroken is a process of its own because Listen makes its own the reaper.
func roleBroken([]string) {
	s, err := Listen()
	must(err)
	<-s.ready
	var pipe [2]int
	must(unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	unix.Close(pipe[0])
	s.Configure(Options{StopSignals: []unix.Signal{unix.SIGPIPE}, Grace: defaultGrace})
	for range 100 {
		if _, err := unix.Write(pipe[1], []byte("x")); err != unix.EPIPE {
			must(err)
		}
	}
	_, requested := s.StopRequested()
	fmt.Println(requested)
	<-s.Stop()
	sig, _ := s.StopRequested()
	fmt.Println(sig)
}

// TestS5 is about what exec hands on to the agent.
func TestS5SignalsAreAtTheirDefaults(t *testing.T) {
	for _, tt := range []struct{ wrap, ignored string }{
		{"env", "0000000000000000"},
		{"env --ignore-signal=USR1,PIPE,TTOU,TSTP,TERM,CHLD,WINCH,URG,RTMIN,RTMAX --block-signal=TERM,USR2,CHLD,HUP", "0000000000000000"},
		{"env --ignore-signal=HUP,INT,QUIT", "0000000000000003"},
		{"nohup", "0000000000000001"},
	} {
		p := startWrapped(t, strings.Fields(tt.wrap), "--", "grep", "^Sig", "/proc/self/status")
		got := map[string]string{}
		for range 6 {
			name, value, _ := strings.Cut(p.line(), ":\t")
			got[name] = value
		}
		if got["SigIgn"] != tt.ignored || got["SigBlk"] != "0000000000000000" {
			t.Errorf("%s: %v", tt.wrap, got)
		}
		p.end()
	}
}

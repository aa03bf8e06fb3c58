package relay

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/secret"
)

// patience bounds waits for what has to happen.
const patience = 20 * time.Second

// rig is an Output whose other end the test reads.
type rig struct {
	*Output
	t      *testing.T
	reader *os.File
}

func newRig(t *testing.T) *rig {
	r, w := pipe(t)
	return &rig{NewOutput(int(w.Fd())), t, r}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// agent is the write end of a pipe that the rig copies.
func (g *rig) agent() *os.File {
	r, w := pipe(g.t)
	g.Copy(r)
	return w
}

// expect reads exactly as much as want has and compares.
func (g *rig) expect(want string) {
	g.t.Helper()
	g.reader.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(want))
	n, err := io.ReadFull(g.reader, got)
	if string(got[:n]) != want {
		g.t.Fatalf("got %q (%v), want %q", abbreviate(got[:n]), err, abbreviate([]byte(want)))
	}
}

// consumed waits until the relay has read all of a pipe.
func (g *rig) consumed(w *os.File) {
	g.t.Helper()
	conn, err := w.SyscallConn()
	if err != nil {
		g.t.Fatal(err)
	}
	for left := 1; left > 0; runtime.Gosched() {
		conn.Control(func(fd uintptr) { left, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		if err != nil {
			g.t.Fatal(err)
		}
	}
}

// nothing checks that no more has been written.
func (g *rig) nothing() {
	g.t.Helper()
	g.reader.SetReadDeadline(time.Now().Add(time.Millisecond))
	got := make([]byte, 100)
	if n, _ := g.reader.Read(got); n > 0 {
		g.t.Fatalf("unexpected %q", got[:n])
	}
}

func (g *rig) drain() {
	g.t.Helper()
	if !g.Drain(time.Now().Add(patience)) {
		g.t.Fatal("not drained")
	}
}

func abbreviate(b []byte) string {
	if len(b) < 200 {
		return string(b)
	}
	return fmt.Sprintf("%s... (%d bytes)", b[:200], len(b))
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func TestE2BytesPassUnchanged(t *testing.T) {
	for name, text := range map[string]string{
		"lines":             "one\ntwo\r\n\n\n{\"event_type\":\"x\"}\n",
		"no final newline":  "one\ntwo",
		"half an event":     "one\n  {\"event_type\": ",
		"NUL and not UTF-8": "a\x00b\xff\xfe\n\xc3",
		"blanks":            " \t ",
		"empty":             "",
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			w := g.agent()
			write(t, w, text)
			w.Close()
			g.drain()
			g.expect(text)
			g.nothing()
		})
	}
}

func TestE2PartialLineIsShownAfterItsTime(t *testing.T) {
	g := newRig(t)
	event, prompt := g.agent(), g.agent()
	write(t, event, `  {"event_type":`)
	// Were the event shown too, it would stand between these.
	for range 3 {
		start := time.Now()
		write(t, prompt, "Password: ")
		g.expect("Password: ")
		if took := time.Since(start); took < partialDelay*9/10 {
			t.Errorf("shown after %v", took)
		}
		write(t, prompt, "thanks\n")
		g.expect("thanks\n")
	}
	write(t, event, "\"x\"}\n")
	g.expect("  {\"event_type\":\"x\"}\n")
}

// TestE2AnEarlierLinesTimeShowsNothing has a timer go off that was set for a
// line which has ended since.
func TestE2AnEarlierLinesTimeShowsNothing(t *testing.T) {
	g := newRig(t)
	event, prompt := g.agent(), g.agent()
	write(t, event, "li")
	g.consumed(event)
	write(t, event, "ne\n{\"event_type\":")
	g.expect("line\n")
	for range 2 {
		write(t, prompt, "Password: ")
		g.expect("Password: ")
		write(t, prompt, "\n")
		g.expect("\n")
	}
	write(t, event, "\"x\"}\n")
	g.expect("{\"event_type\":\"x\"}\n")
}

func TestE2PartialLineHoldsBackTheBeginningOfASecret(t *testing.T) {
	g := newRig(t)
	g.SetMasker(secret.NewMasker([]string{"secret-value"}))
	w := g.agent()
	write(t, w, "token: secret-v")
	g.expect("token: ")
	g.nothing()
	write(t, w, "alue and secret-")
	g.expect("*** and ")
	w.Close()
	g.drain()
	g.expect("secret-")
}

func TestE5OwnLinesBeginOnAFreshLine(t *testing.T) {
	g := newRig(t)
	w := g.agent()
	write(t, w, "Continue? ")
	g.expect("Continue? ")
	start := time.Now()
	write(t, g, "{\"level\":\"info\"}\n")
	g.expect("\n{\"level\":\"info\"}\n")
	if took := time.Since(start); took < openQuiet*8/10 {
		t.Errorf("the open line had only %v to end", took)
	}
	write(t, w, "{\"event_type\":\"x\"")
	g.expect("{\"event_type\":\"x\"")
	w.Close()
	g.drain()
	start = time.Now()
	write(t, g, "no newline")
	g.expect("\nno newline\n")
	if took := time.Since(start); took > openQuiet*8/10 {
		t.Errorf("waited %v for a line that nobody can end", took)
	}
}

func TestE2OwnLineWaitsForTheEndOfAnOpenLine(t *testing.T) {
	g := newRig(t)
	w := g.agent()
	write(t, w, "Continue? ")
	g.expect("Continue? ")
	write(t, g, "own\n")
	write(t, w, "yes\n")
	g.expect("Continue? yes\nown\n"[len("Continue? "):])
}

// TestE2ManyWriters has lines of many sizes from many writers at once, own ones
// among them: each arrives once, whole, and in its writer's order.
func TestE2ManyWriters(t *testing.T) {
	const writers, lines = 8, 200
	g := newRig(t)
	var wg sync.WaitGroup
	for i := range writers {
		w := g.agent()
		wg.Go(func() {
			defer w.Close()
			random := rand.New(rand.NewPCG(uint64(i), 0))
			for n := range lines {
				size := random.IntN(2000)
				if random.IntN(100) == 0 {
					size = 100_000 + random.IntN(3<<20)
				}
				fmt.Fprintf(w, "%d %d %d %s\n", i, n, size, strings.Repeat("x", size))
			}
		})
	}
	wg.Go(func() {
		for n := range lines {
			fmt.Fprintf(g, "own %d 0 \n", n)
			runtime.Gosched()
		}
	})
	text := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(g.reader)
		text <- all
	}()
	wg.Wait()
	g.drain()
	unix.Close(g.dest.fd)
	g.dest.pipe.Close()
	next := map[string]int{}
	for line := range bytes.Lines(<-text) {
		head, xs, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" x"))
		var who string
		var n, size int
		fmt.Sscanf(string(head), "%s %d %d", &who, &n, &size)
		if n != next[who] || max(0, size-1) != len(xs) || bytes.Count(xs, []byte("x")) != len(xs) {
			t.Fatalf("%s: line %d instead of %d, %d bytes instead of %d", who, n, next[who], len(xs), size)
		}
		next[who]++
	}
	if len(next) != writers+1 || next["own"] != lines || next["3"] != lines {
		t.Errorf("lines of each: %v", next)
	}
	if g.Lost() != 0 {
		t.Errorf("%d bytes lost", g.Lost())
	}
}

func TestE2ALongLineFlowsInBoundedMemory(t *testing.T) {
	for _, first := range []string{"x", "{"} {
		g := newRig(t)
		g.SetMasker(secret.NewMasker([]string{"the-secret-in-it"}))
		w := g.agent()
		const pieces = 1024
		piece := strings.Repeat("p", 64<<10-len("the-secret-in-it")) + "the-secret-in-it"
		go func() {
			io.WriteString(w, first)
			for range pieces {
				io.WriteString(w, piece)
			}
			io.WriteString(w, "\nnext\n")
			w.Close()
		}()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		g.expect(first)
		masked := strings.Replace(piece, "the-secret-in-it", "***", 1)
		for range pieces {
			g.expect(masked)
		}
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 24<<20 {
			t.Errorf("heap grew by %d bytes", grown)
		}
		g.expect("\nnext\n")
		g.drain()
	}
}

func TestB1OwnLinesAreMasked(t *testing.T) {
	g := newRig(t)
	g.SetMasker(secret.NewMasker([]string{"p\"ssword/1"}))
	write(t, g, `{"message":"p\"ssword\/1"}`+"\n")
	g.expect("{\"message\":\"***\"}\n")
}

func TestB1ASecretSplitBetweenWrites(t *testing.T) {
	g := newRig(t)
	g.SetMasker(secret.NewMasker([]string{"first line\nsecond line\nend"}))
	w := g.agent()
	for _, c := range "a first line\nsecond line\nend b\nfirst line\n" {
		write(t, w, string(c))
	}
	w.Close()
	g.drain()
	g.expect("a *** b\n***\n")
	g.nothing()
}

// TestE2AnyChunks sends random lines in random pieces, with and without
// secrets.
func TestE2AnyChunks(t *testing.T) {
	for seed := range uint64(60) {
		checkChunks(t, seed, seed%2 == 0)
	}
}

func FuzzChunks(f *testing.F) {
	f.Add(uint64(1000), true)
	f.Fuzz(checkChunks)
}

func checkChunks(t *testing.T, seed uint64, secrets bool) {
	random := rand.New(rand.NewPCG(seed, 1))
	values := []string{"aaaaaaaaaab", "bbbb{\nbbbbb", "secret/with space"}
	var m *secret.Masker
	if secrets {
		m = secret.NewMasker(values)
	}
	parts := append(values, "\n", "\n", "{", "x", " ", "aaaaaaa", "secret%2fwith+space", "\xff\x00", "\r\n", strings.Repeat("long ", 40_000), strings.Repeat("a", 300_000))
	var text []byte
	for range random.IntN(60) {
		text = append(text, parts[random.IntN(len(parts)-2*random.IntN(2))]...)
	}
	g := newRig(t)
	g.SetMasker(m)
	w := g.agent()
	go func() {
		for rest := text; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			if random.IntN(3) > 0 {
				n = min(n, 20)
			}
			w.Write(rest[:n])
			rest = rest[n:]
			if random.IntN(8) == 0 {
				runtime.Gosched()
			}
		}
		w.Close()
	}()
	g.expect(string(m.Mask(nil, text)))
	g.drain()
	g.nothing()
}

func TestS6ReaderGone(t *testing.T) {
	for _, blocking := range []bool{false, true} {
		g := newRig(t)
		if blocking {
			g.dest.pipe.Close()
			g.dest.pipe = nil
		}
		w := g.agent()
		g.reader.Close()
		text := strings.Repeat("a line that nobody reads\n", 100_000)
		write(t, w, text)
		w.Close()
		write(t, g, "own\n")
		g.drain()
		if got, want := g.Lost(), int64(len(text)+len("own\n")); got != want {
			t.Errorf("lost %d, want %d", got, want)
		}
	}
}

// TestS6ReaderOfStderrGone does it with descriptor 2 of a process of its own,
// for which Go has a rule of its own: writes through os.Stderr would end it.
func TestS6ReaderOfStderrGone(t *testing.T) {
	if os.Getenv("RELAY_TEST_STDERR") != "" {
		o := NewOutput(2)
		write(t, o, "lost\n")
		if o.Drain(time.Now().Add(patience)) && o.Lost() == int64(len("lost\n")) {
			os.Exit(42)
		}
		os.Exit(1)
	}
	r, w := pipe(t)
	r.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestS6ReaderOfStderrGone$")
	cmd.Env = append(os.Environ(), "RELAY_TEST_STDERR=1")
	cmd.Stderr = w
	cmd.Run()
	if got := cmd.ProcessState.String(); got != "exit status 42" {
		t.Error(got)
	}
}

func TestS6DiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	o := NewOutput(int(full.Fd()))
	r, w := pipe(t)
	o.Copy(r)
	text := strings.Repeat("a line that does not fit\n", 20_000)
	write(t, w, text)
	w.Close()
	if !o.Drain(time.Now().Add(patience)) {
		t.Error("not drained")
	}
	if o.Lost() != int64(len(text)) {
		t.Errorf("lost %d, want %d", o.Lost(), len(text))
	}
}

func TestS6FileThatFillsUpAndRecovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o := NewOutput(int(f.Fd()))
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	limited := old
	limited.Cur = 10
	unix.Setrlimit(unix.RLIMIT_FSIZE, &limited)
	defer unix.Setrlimit(unix.RLIMIT_FSIZE, &old)
	write(t, o, "0123456789 lost\n")
	if !o.Drain(time.Now().Add(patience)) {
		t.Error("not drained")
	}
	unix.Setrlimit(unix.RLIMIT_FSIZE, &old)
	write(t, o, "whole\n")
	o.Drain(time.Now().Add(patience))
	got, _ := os.ReadFile(path)
	if string(got) != "0123456789\nwhole\n" || o.Lost() != int64(len(" lost\n")) {
		t.Errorf("got %q, lost %d", got, o.Lost())
	}
}

// TestS6OthersSetNonBlocking has the state in which Node leaves descriptors
// that it shares, on each kind of descriptor.
func TestS6OthersSetNonBlocking(t *testing.T) {
	for _, kind := range []string{"pipe", "pipe that cannot be opened again", "socket"} {
		t.Run(kind, func(t *testing.T) {
			var r *os.File
			var fd int
			if kind == "socket" {
				fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				r, fd = os.NewFile(uintptr(fds[0]), ""), fds[1]
				defer unix.Close(fd)
			} else {
				var w *os.File
				r, w = pipe(t)
				fd = int(w.Fd())
			}
			defer r.Close()
			o := NewOutput(fd)
			if kind == "pipe that cannot be opened again" {
				o.dest.pipe.Close()
				o.dest.pipe = nil
			}
			if err := unix.SetNonblock(fd, true); err != nil {
				t.Fatal(err)
			}
			in, w := pipe(t)
			o.Copy(in)
			text := strings.Repeat("many lines for a slow reader\n", 40_000)
			go func() { io.WriteString(w, text); w.Close() }()
			got := make([]byte, len(text))
			if _, err := io.ReadFull(r, got); err != nil || string(got) != text {
				t.Errorf("text differs (%v)", err)
			}
			o.Drain(time.Now().Add(patience))
			if o.Lost() != 0 {
				t.Errorf("lost %d", o.Lost())
			}
			if flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); flags&unix.O_NONBLOCK == 0 {
				t.Error("the shared description was changed")
			}
		})
	}
}

func TestS6SharedDescriptionStaysBlocking(t *testing.T) {
	g := newRig(t)
	write(t, g, "x\n")
	g.expect("x\n")
	if flags, _ := unix.FcntlInt(uintptr(g.dest.fd), unix.F_GETFL, 0); flags&unix.O_NONBLOCK != 0 {
		t.Error("the shared description became non-blocking")
	}
}

func TestE4DrainIsBoundedWhenAPipeStaysOpen(t *testing.T) {
	g := newRig(t)
	w := g.agent()
	write(t, w, "line\n{\"last\"")
	start := time.Now()
	if g.Drain(start.Add(50 * time.Millisecond)) {
		t.Error("drained although the pipe is open")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	g.expect("line\n{\"last\"")
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("the pipe is still read")
	}
	write(t, g, "after\n")
	g.drain()
	g.expect("\nafter\n")
	if g.Lost() != 0 {
		t.Errorf("lost %d", g.Lost())
	}
}

func TestE4DrainIsBoundedWhenNobodyReads(t *testing.T) {
	for _, blocking := range []bool{false, true} {
		g := newRig(t)
		if blocking {
			g.dest.pipe.Close()
			g.dest.pipe = nil
		}
		w := g.agent()
		text := strings.Repeat("x", 1<<10-1) + "\n"
		w.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		sent := 0
		for {
			n, err := io.WriteString(w, text)
			sent += n
			if err != nil {
				break // Both pipes and what lies between are full.
			}
		}
		write(t, g, "own\n")
		start := time.Now()
		if g.Drain(start.Add(50 * time.Millisecond)) {
			t.Errorf("blocking %v: drained", blocking)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("blocking %v: took %v", blocking, took)
		}
		arrived := 0
		g.reader.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		for buf := make([]byte, 1<<16); ; {
			n, err := g.reader.Read(buf)
			arrived += n
			if err != nil {
				break
			}
		}
		if all := int64(sent + len("own\n")); int64(arrived)+g.Lost() != all {
			t.Errorf("blocking %v: %d arrived, %d lost, %d sent", blocking, arrived, g.Lost(), all)
		}
	}
}

func TestOwnLinesAreBoundedAndNeverWait(t *testing.T) {
	g := newRig(t)
	line := strings.Repeat("o", 1023) + "\n"
	const lines = 4096
	for range lines {
		write(t, g, line)
	}
	lost := g.Lost()
	if lost == 0 || lost%1024 != 0 {
		t.Fatalf("lost %d of %d", lost, lines*1024)
	}
	go g.Drain(time.Now().Add(patience))
	g.expect(strings.Repeat(line, lines-int(lost)/1024))
	g.drain()
	g.nothing()
}

// TestNoThreadWaits keeps many pipes open: waiting for them may take none.
func TestNoThreadWaits(t *testing.T) {
	g := newRig(t)
	before := threads(t)
	for range 64 {
		w := g.agent()
		write(t, w, "x\n")
		g.expect("x\n")
	}
	if now := threads(t); now > before+8 {
		t.Errorf("%d threads, before %d", now, before)
	}
}

func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}

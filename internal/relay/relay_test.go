package relay

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
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

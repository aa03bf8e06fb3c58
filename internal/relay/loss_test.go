package relay

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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
	const lines = 16384
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

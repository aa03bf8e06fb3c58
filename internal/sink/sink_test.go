package sink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds waits for what has to happen.
const patience = 20 * time.Second

// TestMain lets the test binary be another process that appends.
func TestMain(m *testing.M) {
	if path := os.Getenv("SINK_TEST_APPEND"); path != "" {
		s := New(NewFile(path), Options{})
		for i := range perWriter {
			s.Put(numbered(os.Getpid(), i), 1)
		}
		if _, lost := s.Lost(); !s.Await(time.Now().Add(patience)) || lost > 0 {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const perWriter = 5000

func numbered(writer, i int) []byte {
	return fmt.Appendf(nil, "%d %d %s\n", writer, i, strings.Repeat("x", i%700))
}

// finish delivers everything.
func finish(t *testing.T, s *Sink) {
	t.Helper()
	deadline := time.Now().Add(patience)
	if !s.Await(deadline) || !s.Stop(deadline) {
		t.Fatal("not everything is delivered")
	}
	if size, events := s.Lost(); size != 0 || events != 0 {
		t.Errorf("%d bytes, %d events lost", size, events)
	}
}

// held is a target that takes nothing before it is let go, and then a few bytes
// at once.
type held struct {
	mu   sync.Mutex
	free chan struct{}
	got  []byte
	err  error
}

func newHeld() *held { return &held{free: make(chan struct{})} }

func (h *held) SetDeadline(time.Time) {}

func (h *held) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		n := bytes.IndexByte(text, '\n') + 1
		h.got = append(h.got, text[:n]...)
		return n, h.err
	}
	h.mu.Unlock()
	<-h.free
	h.mu.Lock()
	h.got = append(h.got, text...)
	return len(text), nil
}

func (h *held) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

func TestE4OrderIsKeptInMemoryAndOnDisk(t *testing.T) {
	h := newHeld()
	dir := t.TempDir()
	s := New(h, Options{Dir: dir, Memory: 100_000})
	var want []byte
	add := func(from, to int) {
		for i := from; i < to; i++ {
			s.Put(numbered(0, i), 1)
			want = append(want, numbered(0, i)...)
			if i%1000 == 0 {
				l, err := NewLine(dir)
				if err != nil {
					t.Fatal(err)
				}
				text := bytes.Repeat([]byte("long"), 1<<20)
				if err := errors.Join(l.Append(text), l.End()); err != nil {
					t.Fatal(err)
				}
				s.PutLine(l)
				l.Close()
				want = append(append(want, text...), '\n')
			}
		}
	}
	add(0, 3000)
	close(h.free)
	add(3000, 6000)
	finish(t, s)
	add(6000, 6100)
	finish(t, s)
	if !bytes.Equal(h.got, want) {
		t.Errorf("got %d bytes, want %d", len(h.got), len(want))
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("%v is left", entries)
	}
	if n := descriptorsOf(t, dir); n > 0 {
		t.Errorf("%d spool files are still open", n)
	}
}

// descriptorsOf counts open files that are, or were, in a directory.
func descriptorsOf(t *testing.T, dir string) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if to, _ := os.Readlink(l); strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

func TestE4BoundsHoldAndWritersWait(t *testing.T) {
	h := newHeld()
	s := New(h, Options{Dir: t.TempDir(), Memory: 100_000, Disk: 1 << 20})
	line := []byte(strings.Repeat("x", 999) + "\n")
	var put atomic.Int64
	done := make(chan struct{})
	const lines = 3000
	go func() {
		defer close(done)
		for range lines {
			s.Put(line, 1)
			put.Add(1)
		}
	}()
	for last := int64(-1); put.Load() != last || last == 0; time.Sleep(3 * fullRetry) {
		last = put.Load()
	}
	if n := put.Load() * int64(len(line)); n < 1<<20 || n > 1<<20+300_000 {
		t.Errorf("%d bytes were taken", n)
	}
	close(h.free)
	<-done
	finish(t, s)
	if len(h.got) != lines*len(line) {
		t.Errorf("%d bytes, want %d", len(h.got), lines*len(line))
	}
}

func TestE4SinkThatFailsDropsAndCountsOnlyBeyondItsBounds(t *testing.T) {
	h := newHeld()
	close(h.free)
	h.fail(unix.EIO)
	var failed, recovered atomic.Int32
	s := New(h, Options{Dir: t.TempDir(), Memory: 10_000, Disk: 20_000,
		Failed:    func(error) { failed.Add(1) },
		Recovered: func() { recovered.Add(1) },
	})
	s.Put([]byte("first\n"), 1)
	for end := time.Now().Add(patience); failed.Load() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	const lines = 100
	for i := range lines {
		s.Put([]byte(fmt.Sprintf("%d %s\n", i, strings.Repeat("y", 990))), 1)
	}
	h.fail(nil)
	s.Await(time.Now().Add(patience))
	size, lost := s.Lost()
	if got := bytes.Count(h.got, newline); int64(got)+lost != lines+1 || lost < 60 || size < 60_000 {
		t.Errorf("%d delivered, %d (%d bytes) lost of %d", got, lost, size, lines+1)
	}
	if failed.Load() != 1 || recovered.Load() != 1 {
		t.Errorf("%d failures, %d recoveries reported", failed.Load(), recovered.Load())
	}
}

// TestE4StopCountsWhatIsLeft also has a target that hangs.
func TestE4StopCountsWhatIsLeft(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		h := newHeld()
		if !hangs {
			h.fail(unix.ENOSPC)
		}
		s := New(h, Options{Dir: t.TempDir(), Memory: 10_000})
		const lines = 1000
		for i := range lines {
			s.Put(numbered(0, i), 1)
		}
		start := time.Now()
		if s.Await(start) || s.Stop(start) {
			t.Error("said to be delivered")
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		h.mu.Lock()
		got := bytes.Count(h.got, newline)
		h.mu.Unlock()
		if _, lost := s.Lost(); int64(got)+lost != lines {
			t.Errorf("hangs %v: %d delivered, %d lost", hangs, got, lost)
		}
		s.Put([]byte("late\n"), 1)
		if hangs {
			close(h.free)
		}
	}
}

func TestE4ManyProcessesAppendToOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(path, []byte("somebody's half line"), 0o600); err != nil {
		t.Fatal(err)
	}
	const processes = 4
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "SINK_TEST_APPEND="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v %s", err, out)
			}
		})
	}
	wg.Wait()
	data, _ := os.ReadFile(path)
	next := map[int]int{}
	for i, line := range strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n") {
		if i == 0 {
			if line != "somebody's half line\n" {
				t.Errorf("%q", line)
			}
			continue
		}
		var writer, n int
		fmt.Sscanf(line, "%d %d", &writer, &n)
		if strings.TrimSuffix(line, "\n")+"\n" != string(numbered(writer, n)) || next[writer] != n {
			t.Fatalf("line %d: %q", i, line)
		}
		next[writer]++
	}
	if len(next) != processes {
		t.Errorf("%d writers", len(next))
	}
	for writer, n := range next {
		if n != perWriter {
			t.Errorf("%d lines of %d", n, writer)
		}
	}
}

func TestE5FileThatIsMovedAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	s := New(NewFile(path), Options{})
	s.Put([]byte("one\n"), 1)
	finish(t, s)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	s.Put([]byte("two\n"), 1)
	finish(t, s)
	old, _ := os.ReadFile(path + ".1")
	fresh, _ := os.ReadFile(path)
	if string(old) != "one\n" || string(fresh) != "two\n" {
		t.Errorf("%q, %q", old, fresh)
	}
}

func TestE5FilesThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		file:                          nil,
		filepath.Join(dir, "new"):     nil,
		fifo:                          ErrNotRegular,
		dir:                           unix.EISDIR,
		filepath.Join(dir, "no", "x"): unix.ENOENT,
		filepath.Join(file, "x"):      unix.ENOTDIR,
		"/proc/no/such":               unix.ENOENT,
	} {
		if err := CheckFile(path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "new")); err == nil {
		t.Error("a file was made")
	}
}

// listen returns a socket on which nobody has accepted yet.
func listen(t *testing.T, path string) (accept func() *os.File, leave func()) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 8))
	}
	if err != nil {
		t.Fatal(err)
	}
	accept = func() *os.File {
		c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(c), path)
		f.SetReadDeadline(time.Now().Add(patience))
		return f
	}
	return accept, func() { unix.Close(fd); os.Remove(path) }
}

func TestE4SocketSendsALineAgainThatWasCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s := New(NewSocket(path, func(n int64) { t.Errorf("%d unread", n) }), Options{})
	var want []byte
	for i := range 3000 {
		s.Put(numbered(0, i), 1)
		want = append(want, numbered(0, i)...)
	}
	var got []byte
	for try := range 20 {
		accept, leave := listen(t, path)
		conn := accept()
		// A reader that has enough, and takes what is under way.
		text := make([]byte, 30_000)
		n, _ := io.ReadFull(conn, text)
		text = text[:n]
		if try < 19 {
			c, _ := conn.SyscallConn()
			c.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_RD) })
			rest, _ := io.ReadAll(conn)
			text = append(text, rest...)
		} else {
			for {
				more := make([]byte, 64<<10)
				n, err := conn.Read(more)
				text = append(text, more[:n]...)
				if err != nil || len(got)+len(text) >= len(want) {
					break
				}
			}
		}
		leave()
		conn.Close()
		got = append(got, text[:bytes.LastIndexByte(text, '\n')+1]...)
		if len(got) >= len(want) {
			break
		}
	}
	finish(t, s)
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

func TestE4ListenerThatClosesWithoutReadingIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	accept, leave := listen(t, path)
	defer leave()
	unread := make(chan int64, 1)
	s := New(NewSocket(path, func(n int64) { unread <- n }), Options{})
	s.Put([]byte("one\n"), 1)
	s.Put([]byte("two\n"), 1)
	conn := accept()
	finish(t, s)
	conn.Close()
	s.Put([]byte("three\n"), 1)
	conn = accept()
	defer conn.Close()
	text := make([]byte, 6)
	if _, err := io.ReadFull(conn, text); err != nil || string(text) != "three\n" {
		t.Errorf("%q, %v", text, err)
	}
	finish(t, s)
	select {
	case n := <-unread:
		if n != 2 {
			t.Errorf("%d unread", n)
		}
	default:
		t.Error("not reported")
	}
}

package relay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/journal"
	"agent-init/internal/sink"
)

// TestMain lets the test binary be a process that writes events to stderr.
func TestMain(m *testing.M) {
	if text := os.Getenv("RELAY_TEST_WRITER"); text != "" {
		var writer, events int
		fmt.Sscanf(text, "%d %d", &writer, &events)
		out := bufio.NewWriterSize(os.Stderr, 30*eventSize)
		for n := range events {
			out.Write(numberedEvent(writer, n))
		}
		out.Flush()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// eventSize is the length in bytes of an event of the many.
const eventSize = 300

var padding = strings.Repeat("0123456789", eventSize/10)

func numberedEvent(writer, n int) []byte {
	line := fmt.Appendf(nil, `{"event_type":"e","writer":"%03d","n":"%07d","text":"`, writer, n)
	line = append(line, padding[:eventSize-len(line)-3]...)
	return append(line, "\"}\n"...)
}

const manyWriters = 50

// tally checks what arrives at one end: each writer's events in order, once and
// whole.
type tally struct {
	name   string
	events int64
	next   [manyWriters]int
	// gaps says that events may be missing.
	gaps bool
	bad  int
}

func (c *tally) take(t *testing.T, line []byte) {
	if c.bad > 5 {
		return
	}
	writer, n := -1, -1
	if len(line) == eventSize {
		writer, _ = strconv.Atoi(string(line[28:31]))
		n, _ = strconv.Atoi(string(line[38:45]))
	}
	if writer < 0 || writer >= manyWriters || n%1000 == 0 && !bytes.Equal(line, numberedEvent(writer, n)) {
		c.bad++
		t.Errorf("%s: torn: %q", c.name, line)
		return
	}
	if n != c.next[writer] && (!c.gaps || n < c.next[writer]) {
		c.bad++
		t.Errorf("%s: event %d of writer %d, want %d", c.name, n, writer, c.next[writer])
	}
	c.next[writer] = n + 1
	c.events++
}

// from takes what a stream has until its end; half a line at the end is left.
func (c *tally) from(t *testing.T, r io.Reader) {
	in := bufio.NewReaderSize(r, 256<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			if err != io.EOF && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %v", c.name, err)
			}
			return
		}
		c.take(t, line)
	}
}

// smallDisk is a file system of so many bytes.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("a small file system is needed: %v", err)
		}
		t.Skipf("this container may not mount a small file system: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func resize(t *testing.T, dir, size string) {
	t.Helper()
	if err := unix.Mount("", dir, "tmpfs", unix.MS_REMOUNT, "size="+size); err != nil {
		t.Fatal(err)
	}
}

// writeMany has the events of many processes written to as many streams, some of
// them tapped, and returns when the processes have ended.
func writeMany(t *testing.T, g *rig, events int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range manyWriters {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			g.Tap(r, null)
		} else {
			g.Copy(r)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("RELAY_TEST_WRITER=%d %d", i, events/manyWriters))
		cmd.Stderr = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		wg.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// listener listens on a socket, takes what comes, and can go away as it should:
// nothing that was sent is left unread.
type listener struct {
	t      *testing.T
	path   string
	taken  tally
	fd     int
	mu     sync.Mutex
	conn   *os.File
	served chan struct{}
}

func (l *listener) listen() {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: l.path}), unix.Listen(fd, 8))
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.fd, l.served = fd, make(chan struct{})
	go func() {
		defer close(l.served)
		c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err != nil {
			return
		}
		conn := os.NewFile(uintptr(c), l.path)
		l.mu.Lock()
		l.conn = conn
		l.mu.Unlock()
		l.taken.from(l.t, conn)
		conn.Close()
	}()
}

// leave ends the listening.
func (l *listener) leave() {
	os.Remove(l.path)
	unix.Shutdown(l.fd, unix.SHUT_RDWR)
	l.mu.Lock()
	if l.conn != nil {
		onDescriptor(l.conn, func(fd int) (int, error) { return 0, unix.Shutdown(fd, unix.SHUT_RD) })
	}
	l.conn = nil
	l.mu.Unlock()
	<-l.served
	unix.Close(l.fd)
}

func wait(d time.Duration) <-chan time.Time { return time.After(d) }

// TestE4NoEventIsLost has a million events of many processes, a reader of stderr
// that stalls, a listener that goes away and comes back, and a full disk.
func TestE4NoEventIsLost(t *testing.T) {
	g := newRig(t)
	dir, disk := t.TempDir(), smallDisk(t, "8m")
	file := filepath.Join(disk, "events.jsonl")
	l := &listener{t: t, path: filepath.Join(dir, "s"), taken: tally{name: "unix"}}
	var failed, recovered atomic.Int32
	options := sink.Options{Dir: dir, Failed: func(error) { failed.Add(1) }, Recovered: func() { recovered.Add(1) }}
	g.SetEvents(Events{Stderr: true, Dir: dir, Sinks: []Sink{
		journalSink(t, dir),
		{"file", sink.New(sink.NewFile(file), options)},
		{"unix", sink.New(sink.NewSocket(l.path, func(n int64) { t.Errorf("%d events unread", n) }), options)},
	}})
	follow, err := journal.NewReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer follow.Close()

	shown, journaled := tally{name: "stderr"}, tally{name: "journal", gaps: true}
	var ends sync.WaitGroup
	stall := 5 * time.Second
	ends.Go(func() {
		<-wait(stall)
		resize(t, disk, "1g")
		shown.from(t, g.reader)
	})
	done := make(chan struct{})
	ends.Go(func() { followAll(t, dir, follow, &journaled, done) })
	l.listen()
	away := async(func() {
		<-wait(time.Second)
		l.leave()
		<-wait(stall / 3)
		l.listen()
	})

	writeMany(t, g, million)
	<-away
	g.drain()
	close(done)
	g.dest.pipe.Close()
	unix.Close(g.dest.fd)
	ends.Wait()
	l.leave()

	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	filed := tally{name: "file"}
	filed.from(t, text)
	for _, c := range []*tally{&shown, &filed, &l.taken} {
		if c.events != million {
			t.Errorf("%s: %d events", c.name, c.events)
		}
	}
	if journaled.events+follow.Missed() != million {
		t.Errorf("journal: %d events and %d missed", journaled.events, follow.Missed())
	}
	if lost := g.Losses(); len(lost) > 0 || g.Lost() > 0 {
		t.Errorf("lost %v, %d bytes", lost, g.Lost())
	}
	if failed.Load() != recovered.Load() || failed.Load() < 1 {
		t.Errorf("%d failures reported, %d recoveries", failed.Load(), recovered.Load())
	}
}

// followAll reads a journal until done is closed and everything is read.
func followAll(t *testing.T, dir string, r *journal.Reader, c *tally, done chan struct{}) {
	watch := journal.NewWatch(dir)
	defer watch.Close()
	for last := false; ; {
		line, err := r.Next()
		switch {
		case err == nil:
			c.take(t, line)
		case err != io.EOF:
			t.Error(err)
			return
		case last:
			return
		default:
			select {
			case <-done:
				last = true
			default:
				watch.Wait(50 * time.Millisecond)
			}
		}
	}
}

// TestE4WhatIsDroppedIsCounted has a disk that stays full and a listener that
// never comes, and nobody waits.
func TestE4WhatIsDroppedIsCounted(t *testing.T) {
	g := newRig(t)
	dir, disk := t.TempDir(), smallDisk(t, "4m")
	file := filepath.Join(disk, "events.jsonl")
	g.SetEvents(Events{Stderr: true, Drop: true, Dir: disk, Sinks: []Sink{
		{"file", sink.New(sink.NewFile(file), sink.Options{Dir: disk, Drop: true})},
		{"unix", sink.New(sink.NewSocket(filepath.Join(dir, "s"), nil), sink.Options{Dir: dir, Drop: true, Disk: 1 << 20})},
	}})
	shown := tally{name: "stderr", gaps: true}
	read := async(func() { shown.from(t, g.reader) })
	const events = 50_000
	writeMany(t, g, events)
	start := time.Now()
	if g.Drain(start.Add(100 * time.Millisecond)) {
		t.Error("drained")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	g.dest.pipe.Close()
	unix.Close(g.dest.fd)
	<-read
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	filed := tally{name: "file", gaps: true}
	filed.from(t, text)
	want := []Loss{{"file", events - filed.events}, {"unix", events}}
	if shown.events < events {
		want = append(want, Loss{"stderr", events - shown.events})
	}
	if lost := g.Losses(); !slices.Equal(lost, want) || filed.events == 0 || shown.events == 0 {
		t.Errorf("reported %v, lost %v", lost, want)
	}
}

// TestE4StalledReaderHoldsUpOnlyItself has nobody read stderr: events go on to
// the journal, and no plain line is lost.
func TestE4StalledReaderHoldsUpOnlyItself(t *testing.T) {
	g := newRig(t)
	dir := g.keepJournal()
	tapped, w := pipe(t)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	g.Tap(tapped, null)
	agent := g.agent()
	plain := strings.Repeat("a line that is no event\n", 1000)
	var sent int
	agent.SetWriteDeadline(time.Now().Add(time.Second))
	for {
		n, err := io.WriteString(agent, plain)
		sent += n
		if err != nil {
			break
		}
	}
	agent.SetWriteDeadline(time.Time{})
	if sent < sink.MaxMemory || sent > 2*sink.MaxMemory {
		t.Errorf("%d bytes were taken", sent)
	}
	const events = 50_000
	for n := range events {
		if _, err := w.Write(numberedEvent(0, n)); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return strings.Count(journaled(t, dir), "\n") == events })
	w.Close()
	agent.Close()
	var lines, shown tally
	lines.name, shown.name = "plain", "stderr"
	read := async(func() {
		in := bufio.NewReader(g.reader)
		for {
			line, err := in.ReadBytes('\n')
			if bytes.HasPrefix(line, []byte("{")) {
				shown.take(t, line)
			} else {
				lines.events += int64(len(line))
			}
			if err != nil {
				return
			}
		}
	})
	g.drain()
	g.dest.pipe.Close()
	unix.Close(g.dest.fd)
	<-read
	if shown.events != events || lines.events < int64(sent) || lines.events > int64(sent)+1 || g.Lost() > 0 {
		t.Errorf("%d events, %d of %d bytes of lines, %d lost", shown.events, lines.events, sent, g.Lost())
	}
}

// TestE5NoneShowsNoEvents has sinks without stderr: all but events is shown,
// long lines too.
func TestE5NoneShowsNoEvents(t *testing.T) {
	g := newRig(t)
	dir := g.collect()
	w := g.agent()
	long := strings.Repeat("0123456789", 2<<20/10)
	text, shown := "", ""
	events := ""
	for _, line := range []string{"plain\n", "{\"event_type\":\"a\"}\n", "{\"no\":1}\n", "{\"event_type\":\"" + long + "\"}\n", "{\"no\":\"" + long + "\"}\n", "{\"event_type\":\"b\"}\r\n", long + "\n", "{\"event_type\":\"c\"}\n", "end"} {
		text += line
		if strings.HasPrefix(line, "{\"event_type") {
			events += line
		} else {
			shown += line
		}
	}
	go func() { io.WriteString(w, text); w.Close() }()
	g.expect(shown)
	g.drain()
	g.nothing()
	if got := journaled(t, dir); got != events {
		t.Errorf("%d bytes of events, want %d", len(got), len(events))
	}
}

// TestE4WritersWaitWhileDiskIsFull has the spool on the disk that is full.
func TestE4WritersWaitWhileDiskIsFull(t *testing.T) {
	g := newRig(t)
	disk := smallDisk(t, "2m")
	file := filepath.Join(disk, "events.jsonl")
	g.SetEvents(Events{Dir: disk, Sinks: []Sink{{"file", sink.New(sink.NewFile(file), sink.Options{Dir: disk})}}})
	w := g.agent()
	w.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	n := 0
	for err := error(nil); err == nil; n++ {
		_, err = w.Write(numberedEvent(0, n))
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	// The last one may have been cut.
	w.SetWriteDeadline(time.Time{})
	resize(t, disk, "100m")
	write(t, w, "\n")
	w.Close()
	g.drain()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := tally{name: "file"}
	got.from(t, bytes.NewReader(text))
	if got.events < int64(n-1) || len(g.Losses()) > 0 {
		t.Errorf("%d events of %d, lost %v", got.events, n, g.Losses())
	}
}

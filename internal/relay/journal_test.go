package relay

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agent-init/internal/journal"
	"agent-init/internal/secret"
	"agent-init/internal/sink"
)

// keepJournal gives the rig a journal that must not fail.
func (g *rig) keepJournal() (dir string) {
	dir = g.t.TempDir()
	g.SetEvents(Events{Sinks: []Sink{journalSink(g.t, dir)}, Stderr: true, Dir: dir})
	return dir
}

// journalSink is a journal that must not fail.
func journalSink(t testing.TB, dir string) Sink {
	j := journal.Open(dir, journal.Notify{Failed: func(err error) { t.Errorf("journal failed: %v", err) }})
	if err := j.Make(); err != nil {
		t.Fatal(err)
	}
	return Sink{"journal", sink.New(j, sink.Options{Dir: dir, Failed: func(err error) { t.Errorf("journal failed: %v", err) }})}
}

// collect gives the rig a journal and nobody who wants its events on stderr.
func (g *rig) collect() (dir string) {
	dir = g.keepJournal()
	e := *g.events.Load()
	e.Stderr = false
	g.SetEvents(e)
	return dir
}

func journaled(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, journal.Name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestE5EventsGoToTheJournalAsTheyAreShown(t *testing.T) {
	g := newRig(t)
	g.SetMasker(secret.NewMasker([]string{"geheim-geheim"}))
	dir := g.keepJournal()
	w := g.agent()
	text := "plain\n{\"event_type\": \"a\", \"key\": \"geheim-geheim\", \"n\": NaN}\r\n{\"no\": 1}\n  {\"event_type\":\"\xff\"}\n"
	for _, c := range []byte(text) {
		w.Write([]byte{c})
	}
	write(t, w, "Password: ")
	shown := strings.ReplaceAll(text, "geheim-geheim", "***")
	g.expect(shown + "Password: ")
	write(t, w, "{\"event_type\":\"no\"}\n{\"event_type\":\"b\"}")
	w.Close()
	g.expect("{\"event_type\":\"no\"}\n{\"event_type\":\"b\"}")
	g.Event([]byte("{\"event_type\":\"own\",\"key\":\"geheim-geheim\"}\n"))
	g.drain()
	g.expect("\n{\"event_type\":\"own\",\"key\":\"***\"}\n")
	g.nothing()
	want := "{\"event_type\": \"a\", \"key\": \"***\", \"n\": NaN}\r\n  {\"event_type\":\"\xff\"}\n"
	own := "{\"event_type\":\"own\",\"key\":\"***\"}\n"
	last := "{\"event_type\":\"b\"}\n"
	if got := journaled(t, dir); got != want+last+own && got != want+own+last {
		t.Errorf("got  %q\nwant %q", got, want+last+own)
	}
}

// TestE4LongEventsTakeBoundedMemory sends long lines, events and others, of up
// to 64 MiB.
func TestE4LongEventsTakeBoundedMemory(t *testing.T) {
	g := newRig(t)
	g.SetMasker(secret.NewMasker([]string{"geheim-geheim"}))
	dir := g.keepJournal()
	w := g.agent()
	go io.Copy(io.Discard, g.reader)
	filler := strings.Repeat("0123456789 geheim-geheim {", 1<<12)
	const times = 1 << 20 / (26 << 12)
	var most uint64
	runtime.GC() // what other tests have left
	long := func(megabytes int, head, end string) {
		io.WriteString(w, head)
		for range megabytes * times {
			io.WriteString(w, filler)
		}
		io.WriteString(w, end)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
	}
	long(64, `{"event_type":"long","text":"`, "\"}\n")
	long(4, `{"other":"`, "\"}\n")
	long(4, `plain`, "\n")
	long(4, `  {"event_type":"last","text":"`, "\"}")
	w.Close()
	g.drain()
	if most > 16<<20 {
		t.Errorf("%d MiB of heap", most>>20)
	}
	masked := strings.Repeat(strings.ReplaceAll(filler, "geheim-geheim", "***"), times)
	want := `{"event_type":"long","text":"` + strings.Repeat(masked, 64) + "\"}\n"
	var got []byte
	for _, name := range []string{journal.OldName, journal.Name} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, data...)
	}
	want += `  {"event_type":"last","text":"` + strings.Repeat(masked, 4) + "\"}\n"
	if string(got) != want {
		t.Errorf("the journal has %d bytes (%s), want %d", len(got), abbreviate(got), len(want))
	}
}

// TestE4CountedAtBothEnds has many writers, and a reader of each end that
// checks that every event came once, whole and in its writer's order.
func TestE4CountedAtBothEnds(t *testing.T) {
	const writers, each = 20, 10_000
	g := newRig(t)
	dir := g.keepJournal()
	r, err := journal.NewReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var wg, sending sync.WaitGroup
	wg.Go(func() {
		g.reader.SetReadDeadline(time.Now().Add(4 * patience))
		in := bufio.NewReader(g.reader)
		var c counter
		for c.events < writers*each {
			line, err := in.ReadBytes('\n')
			if err != nil {
				t.Errorf("stderr: %d events, then %v", c.events, err)
				return
			}
			c.take(t, line)
		}
	})
	wg.Go(func() {
		watch := journal.NewWatch(dir)
		defer watch.Close()
		var c counter
		for end := time.Now().Add(4 * patience); c.events < writers*each && time.Now().Before(end); {
			line, err := r.Next()
			if err == io.EOF {
				watch.Wait(100 * time.Millisecond)
			} else if err != nil {
				t.Error(err)
				return
			} else {
				c.take(t, line)
			}
		}
		if c.events+r.Missed() != writers*each || r.Missed() != 0 {
			t.Errorf("journal: %d events, %d missed", c.events, r.Missed())
		}
	})
	for n := range writers {
		w := g.agent()
		sending.Go(func() {
			defer w.Close()
			var lines []byte
			for i := range each {
				lines = fmt.Appendf(lines, "{\"event_type\":\"e\",\"writer\":%d,\"n\":%d,\"text\":\"%s\"}\n", n, i, strings.Repeat("t", i%300))
				if i%7 == 0 {
					lines = append(lines, "not an event\n"...)
				}
				if i%13 == 0 || i == each-1 {
					w.Write(lines)
					lines = lines[:0]
				}
			}
		})
	}
	sending.Wait()
	g.drain()
	wg.Wait()
}

// counter checks the events of many writers.
type counter struct {
	events int64
	next   [20]int
}

func (c *counter) take(t *testing.T, line []byte) {
	if string(line) == "not an event\n" {
		return
	}
	c.events++
	var writer, n int
	if _, err := fmt.Sscanf(string(line), `{"event_type":"e","writer":%d,"n":%d,`, &writer, &n); err != nil || !bytes.HasSuffix(line, []byte("\"}\n")) {
		t.Errorf("torn: %q", line)
		return
	}
	if n != c.next[writer] {
		t.Errorf("event %d of writer %d, want %d", n, writer, c.next[writer])
	}
	c.next[writer] = n + 1
}

func TestE5JournalThatFailsStopsNothing(t *testing.T) {
	g := newRig(t)
	var failures atomic.Int32
	j := journal.Open(filepath.Join(t.TempDir(), "none"), journal.Notify{})
	dir := t.TempDir()
	g.SetEvents(Events{Sinks: []Sink{{"journal", sink.New(j, sink.Options{Dir: dir, Failed: func(error) { failures.Add(1) }})}}, Stderr: true, Dir: dir})
	w := g.agent()
	long := `{"event_type":"` + strings.Repeat("x", 2<<20) + "\"}\n"
	write(t, w, "{\"event_type\":\"a\"}\nx\n{\"event_type\":\"b\"}\n")
	g.expect("{\"event_type\":\"a\"}\nx\n{\"event_type\":\"b\"}\n")
	go func() { io.WriteString(w, long); w.Close() }()
	g.expect(long)
	if g.Drain(time.Now().Add(200 * time.Millisecond)) {
		t.Error("drained")
	}
	want := []Loss{{"journal", 3}}
	if got := g.Losses(); failures.Load() != 1 || !slices.Equal(got, want) {
		t.Errorf("%d failures reported, %v lost", failures.Load(), got)
	}
}

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds waits for what has to happen.
const patience = 30 * time.Second

// TestMain lets the test binary be another process that appends.
func TestMain(m *testing.M) {
	if dir := os.Getenv("JOURNAL_TEST_APPEND"); dir != "" {
		j := Open(dir, Notify{})
		j.limit = 1 << 20
		for i := range perWriter {
			if _, err := j.Write(numbered(os.Getpid(), i)); err != nil {
				os.Exit(1)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const perWriter = 2000

func numbered(writer, i int) []byte {
	return fmt.Appendf(nil, `{"event_type":"test","writer":%d,"n":%d,"rest":"%s"}`+"\n", writer, i, strings.Repeat("x", i%700))
}

func newJournal(t *testing.T, dir string) *Journal {
	t.Helper()
	j := Open(dir, Notify{Failed: func(err error) { t.Errorf("failed: %v", err) }})
	if err := j.Make(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(j.fd) })
	return j
}

// write writes lines that the journal has to take.
func write(t *testing.T, j *Journal, lines []byte) {
	t.Helper()
	if n, err := j.Write(lines); err != nil || n != len(lines) {
		t.Errorf("%d of %d bytes written: %v", n, len(lines), err)
	}
}

// all reads what the journal has now.
func all(t *testing.T, r *Reader) (text []byte) {
	t.Helper()
	for {
		line, err := r.Next()
		if err == io.EOF {
			return text
		}
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, line...)
	}
}

func open2(t *testing.T, dir string) *Reader {
	t.Helper()
	r, err := NewReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestE5EventsByteForByte(t *testing.T) {
	dir := t.TempDir()
	j := newJournal(t, dir)
	want := "{\"event_type\": \"a\", \"n\": NaN, \"metadata\": null}\r\n{\"event_type\":\"\xff\"}\n"
	write(t, j, []byte(want))
	if got := all(t, open2(t, dir)); string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	info, _ := os.Stat(filepath.Join(dir, Name))
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestE5RotationKeepsOneOldFileAndCountsWhatItDrops(t *testing.T) {
	dir := t.TempDir()
	dropped := 0
	j := Open(dir, Notify{Dropped: func(n int) { dropped += n }})
	t.Cleanup(func() { unix.Close(j.fd) })
	j.limit = 100_000
	const events = 3000
	var want []byte
	for i := range events {
		line := numbered(0, i)
		want = append(want, line...)
		write(t, j, line)
	}
	r := open2(t, dir)
	got := all(t, r)
	if !bytes.HasSuffix(want, got) || len(got) < 100_000 || len(got) > 200_000 {
		t.Errorf("%d bytes are no end of what was written", len(got))
	}
	if kept := bytes.Count(got, newline); dropped != events-kept || r.Missed() != int64(dropped) {
		t.Errorf("%d kept, %d reported dropped, %d missed by the reader", kept, dropped, r.Missed())
	}
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "events.jsonl events.jsonl.1 events.jsonl.dropped" {
		t.Error(got)
	}
}

// follower reads until done and everything is read.
func follower(t *testing.T, dir string, take func(line []byte)) (stop func() *Reader) {
	r := open2(t, dir)
	w := NewWatch(dir)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer w.Close()
		for last := false; ; {
			line, err := r.Next()
			switch {
			case err == nil:
				take(line)
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
					w.Wait(50 * time.Millisecond)
				}
			}
		}
	}()
	return func() *Reader {
		close(done)
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("the reader does not end")
		}
		return r
	}
}

// TestE5FollowAcrossRotationsOfManyWriters has other processes append, too.
// Whatever a reader does not get it must know to be missing.
func TestE5FollowAcrossRotationsOfManyWriters(t *testing.T) {
	dir := t.TempDir()
	j := newJournal(t, dir)
	j.limit = 1 << 20
	next := map[string]int{}
	var got int64
	stop := follower(t, dir, func(line []byte) {
		got++
		var writer string
		var n int
		fields := strings.SplitN(string(line), ",", 4)
		if _, err := fmt.Sscanf(fields[1]+" "+fields[2], `"writer":%s "n":%d`, &writer, &n); err != nil {
			t.Errorf("torn: %q", line)
		}
		if n < next[writer] {
			t.Errorf("event %d of %s after %d", n, writer, next[writer])
		}
		next[writer] = n + 1
	})
	const processes, writers = 3, 5
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "JOURNAL_TEST_APPEND="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v %s", err, out)
			}
		})
	}
	for w := range writers {
		wg.Go(func() {
			for i := range perWriter {
				write(t, j, numbered(w, i))
			}
		})
	}
	wg.Wait()
	r := stop()
	if total := int64((processes + writers) * perWriter); got+r.Missed() != total {
		t.Errorf("%d read, %d missed, %d written", got, r.Missed(), total)
	}
}

func TestE5ReaderThatStallsKnowsWhatItMissed(t *testing.T) {
	dir := t.TempDir()
	j := newJournal(t, dir)
	j.limit = 10_000
	total := 0
	add := func(n int) {
		for range n {
			write(t, j, numbered(1, total))
			total++
		}
	}
	add(3)
	r := open2(t, dir)
	got := bytes.Count(all(t, r), newline)
	for _, n := range []int{5, 100, 1, 40, 300} {
		add(n)
		got += bytes.Count(all(t, r), newline)
	}
	if r.Missed() == 0 || got+int(r.Missed()) != total {
		t.Errorf("%d read, %d missed, %d written", got, r.Missed(), total)
	}
}

func TestE5DiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root to mount a small file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("this container may not mount: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	j := newJournal(t, dir)
	var want []byte
	for i := 0; ; i += 3 {
		lines := slices.Concat(numbered(0, i), numbered(0, i+1), numbered(0, i+2))
		n, err := j.Write(lines)
		want = append(want, lines[:n]...)
		if err != nil {
			if !errors.Is(err, unix.ENOSPC) || n == len(lines) {
				t.Errorf("%d of %d bytes: %v", n, len(lines), err)
			}
			break
		}
	}
	r := open2(t, dir)
	got := all(t, r)
	if !bytes.Equal(got, want) {
		t.Errorf("the journal has not what was said to be written: %d bytes, want %d", len(got), len(want))
	}
	// With room again it goes on.
	if err := unix.Mount("", dir, "tmpfs", unix.MS_REMOUNT, "size=1m"); err != nil {
		t.Fatal(err)
	}
	write(t, j, numbered(7, 7))
	if got := all(t, r); string(got) != string(numbered(7, 7)) {
		t.Errorf("after: %q", got)
	}
}

func TestE5FileThatIsRemovedOrReplaced(t *testing.T) {
	dir := t.TempDir()
	j := newJournal(t, dir)
	path := filepath.Join(dir, Name)
	os.Remove(path)
	write(t, j, []byte("{\"event_type\":\"a\"}\n"))
	if got, _ := os.ReadFile(path); string(got) != "{\"event_type\":\"a\"}\n" {
		t.Errorf("removed: %q", got)
	}
	for _, replace := range []func() error{
		func() error { return os.Symlink(filepath.Join(dir, "elsewhere"), path) },
		func() error { return unix.Mkfifo(path, 0o600) },
		func() error { return os.Mkdir(path, 0o700) },
	} {
		os.Remove(path)
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		if n, err := j.Write([]byte("{\"event_type\":\"b\"}\n")); n != 0 || err == nil {
			t.Error("written")
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("the symlink was followed")
	}
}

func TestE5DirectoryThatIsMissing(t *testing.T) {
	j := Open(filepath.Join(t.TempDir(), "none"), Notify{})
	if n, err := j.Write([]byte("{\"event_type\":\"a\"}\n")); n != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := NewReader(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestE5HalfALineIsNotRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("one\ntw")
	r := open2(t, dir)
	if got := all(t, r); string(got) != "one\n" {
		t.Errorf("%q", got)
	}
	f.Truncate(4)
	f.WriteString("three\n")
	if got := all(t, r); string(got) != "three\n" {
		t.Errorf("%q", got)
	}
}

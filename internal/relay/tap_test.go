package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/secret"
	"agent-init/internal/sink"
)

// stderrKinds make what a hook may have as its stderr: its end, and one to read
// what arrives.
var stderrKinds = map[string]func(t *testing.T) (dest, reader *os.File){
	"socket": func(t *testing.T) (*os.File, *os.File) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.SetNonblock(fds[1], true)
		return os.NewFile(uintptr(fds[0]), ""), os.NewFile(uintptr(fds[1]), "")
	},
	"pipe": func(t *testing.T) (*os.File, *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return w, r
	},
	"file": func(t *testing.T) (*os.File, *os.File) {
		path := filepath.Join(t.TempDir(), "stderr")
		w, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		r, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return w, r
	},
}

// nasty is text with events in it, which events has, one of them of so many
// bytes.
func nasty(long int) (text string, events []string) {
	events = []string{
		"{\"event_type\":\"a\",\"key\":\"geheim-geheim\",\"n\":NaN}\r\n",
		"{\"event_type\":\"\xff\xfe\"}\n",
		"{\"event_type\":\"long\",\"text\":\"" + strings.Repeat("0123456789abcdef", long/16) + "\"}\n",
		" \t{\"event_type\":\"last\"}",
	}
	text = "plain\x00\n" + events[0] + "\n\r\n{\"x\":1}\n{\"event_type\":\n" + events[1] + "\xff\n" + events[2] + "{}" + "\n" + events[3]
	for i := range events {
		events[i] = strings.ReplaceAll(strings.TrimSuffix(events[i], "\n")+"\n", "geheim-geheim", "***")
	}
	return text, events
}

func TestE3TapCopiesBytesAndCollectsEvents(t *testing.T) {
	for kind, make := range stderrKinds {
		t.Run(kind, func(t *testing.T) {
			g := newRig(t)
			g.SetMasker(secret.NewMasker([]string{"geheim-geheim"}))
			file := g.collectFile()
			dest, reader := make(t)
			defer reader.Close()
			r, w := pipe(t)
			g.Tap(r, dest)
			long := 2 << 20
			if kind == "socket" {
				long = 64 << 20
			}
			text, events := nasty(long)
			sh := exec.Command("sh", "-c", "cat >&2")
			sh.Stdin, sh.Stderr = strings.NewReader(text), w
			var all []byte
			read := func() { all, _ = io.ReadAll(reader) }
			done := async(func() {
				if kind != "file" {
					read()
				}
			})
			if err := sh.Run(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			g.drain()
			<-done
			if kind == "file" {
				read()
			}
			if string(all) != text {
				t.Errorf("got %d bytes, want %d", len(all), len(text))
			}
			if got := content(t, file); got != strings.Join(events, "") {
				t.Errorf("events %q", abbreviate([]byte(got)))
			}
		})
	}
}

// collectFile gives the rig a file for events, which does not rotate, and nobody
// who wants them on stderr.
func (g *rig) collectFile() (path string) {
	dir := g.t.TempDir()
	path = filepath.Join(dir, "events")
	g.SetEvents(Events{Sinks: []Sink{{"file", sink.New(sink.NewFile(path), sink.Options{Dir: dir})}}, Dir: dir})
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func async(do func()) chan struct{} {
	done := make(chan struct{})
	go func() { do(); close(done) }()
	return done
}

func TestE3TapDoesNotWaitForALineEnd(t *testing.T) {
	g := newRig(t)
	dest, reader := stderrKinds["socket"](t)
	defer reader.Close()
	r, w := pipe(t)
	g.Tap(r, dest)
	for _, text := range []string{"a", "{", "\"event_type", "\n"} {
		write(t, w, text)
		got := make([]byte, len(text))
		reader.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.ReadFull(reader, got); err != nil || string(got) != text {
			t.Fatalf("%q (%v), want %q", got, err, text)
		}
	}
	if n := g.Streams(); n != 1 {
		t.Errorf("%d streams", n)
	}
	w.Close()
	g.drain()
	if n := g.Streams(); n != 0 {
		t.Errorf("%d streams", n)
	}
	reader.SetReadDeadline(time.Now().Add(patience))
	if n, err := reader.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		t.Errorf("the hook's stderr is still open: %d, %v", n, err)
	}
}

func TestE3TapWhoseReaderIsGoneCollectsOn(t *testing.T) {
	for _, kind := range []string{"socket", "pipe"} {
		g := newRig(t)
		dir := g.collect()
		dest, reader := stderrKinds[kind](t)
		r, w := pipe(t)
		g.Tap(r, dest)
		reader.Close()
		event := "{\"event_type\":\"e\"}\n"
		for range 10_000 {
			write(t, w, event)
		}
		w.Close()
		g.drain()
		if got := journaled(t, dir); got != strings.Repeat(event, 10_000) {
			t.Errorf("%s: %d bytes of events", kind, len(got))
		}
	}
}

// TestE4DrainEndsTaps has a hook that does not end and a reader that does not
// read: what was written is collected, in bounded time, without a thread each.
func TestE4DrainEndsTaps(t *testing.T) {
	g := newRig(t)
	dir := g.collect()
	before := threads(t)
	event := "{\"event_type\":\"e\",\"text\":\"" + strings.Repeat("x", 1000) + "\"}\n"
	const times = 16
	var want int
	for range times {
		dest, reader := stderrKinds["socket"](t)
		defer reader.Close()
		r, w := pipe(t)
		g.Tap(r, dest)
		w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		for {
			n, err := io.WriteString(w, event)
			want += n
			if err != nil {
				break
			}
		}
	}
	if now := threads(t); now > before+8 {
		t.Errorf("%d threads, before %d", now, before)
	}
	start := time.Now()
	if g.Drain(start.Add(50 * time.Millisecond)) {
		t.Error("drained")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if n := strings.Count(journaled(t, dir), event); n != want/len(event) {
		t.Errorf("%d events, want %d", n, want/len(event))
	}
}

// followed is a file to which a shell appends, as a Bash tool's.
func followed(t *testing.T, g *rig, dir, script string) (path string, sh *exec.Cmd, stdin io.Writer) {
	t.Helper()
	path = filepath.Join(dir, "output")
	if err := os.WriteFile(path, []byte("{\"event_type\":\"before\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	sh = exec.Command("bash", "-c", script)
	sh.Stdout, sh.Stderr = f, f
	in, err := sh.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sh.Process.Kill(); sh.Wait() })
	fd, err := unix.PidfdOpen(sh.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Follow(f, int64(len("{\"event_type\":\"before\"}\n")), os.NewFile(uintptr(fd), "")); err != nil {
		t.Fatal(err)
	}
	return path, sh, in
}

func TestE3FollowCollectsWhatIsAppended(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/dev/shm"} {
		long := 64 << 20
		if dir == "/dev/shm" {
			dir, long = tempIn(t, dir), 2<<20
		}
		g := newRig(t)
		g.SetMasker(secret.NewMasker([]string{"geheim-geheim"}))
		file := g.collectFile()
		text, events := nasty(long)
		_, sh, in := followed(t, g, dir, "cat")
		for rest := text; rest != ""; {
			n := min(len(rest), 1+len(rest)/3)
			write(t, in, rest[:n])
			rest = rest[n:]
		}
		in.(io.Closer).Close()
		sh.Wait()
		g.drain()
		if got := content(t, file); got != strings.Join(events, "") {
			t.Errorf("events %q", abbreviate([]byte(got)))
		}
		if n := g.Streams(); n != 0 {
			t.Errorf("%d streams", n)
		}
	}
}

func tempIn(t *testing.T, dir string) string {
	t.Helper()
	path, err := os.MkdirTemp(dir, "relay-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(path) })
	return path
}

// TestE3FollowOutlivesTheShell has a child of the shell that goes on writing,
// and the events be there long before the end.
func TestE3FollowOutlivesTheShell(t *testing.T) {
	g := newRig(t)
	dir := g.collect()
	more, hold := filepath.Join(t.TempDir(), "more"), filepath.Join(t.TempDir(), "hold")
	if err := errors.Join(unix.Mkfifo(more, 0o600), unix.Mkfifo(hold, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, sh, _ := followed(t, g, t.TempDir(), `echo '{"event_type":"shell"}'; read x < `+hold+` & disown; exit 0`)
	defer os.WriteFile(hold, []byte("\n"), 0)
	sh.Process.Wait()
	waitFor(t, func() bool { return bytes.Contains([]byte(journaled(t, dir)), []byte("shell")) })
	if g.Drain(time.Now().Add(3 * pollFile)) {
		t.Error("drained although a child has the file")
	}
	g = newRig(t)
	dir = g.collect()
	_, sh, _ = followed(t, g, t.TempDir(), fmt.Sprintf(`echo '{"event_type":"shell"}'; { read x < %s; echo '{"event_type":"child"}'; printf '{"event_type":"last"}'; } & disown; exit 0`, more))
	sh.Process.Wait()
	if err := os.WriteFile(more, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	g.drain()
	if got := journaled(t, dir); got != "{\"event_type\":\"shell\"}\n{\"event_type\":\"child\"}\n{\"event_type\":\"last\"}\n" {
		t.Errorf("%q", got)
	}
}

// waitFor waits until something is the case.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain")
		}
	}
}

func TestE3NamesAreOfAnyFile(t *testing.T) {
	for kind, make := range stderrKinds {
		a, b := make(t)
		other, _ := make(t)
		if Name(int(a.Fd())) == "" || Name(int(a.Fd())) == Name(int(other.Fd())) {
			t.Errorf("%s: %q", kind, Name(int(a.Fd())))
		}
		a.Close()
		b.Close()
		other.Close()
	}
	if got := Name(-1); got != "" {
		t.Errorf("%q", got)
	}
}

package control

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestMain makes this binary a client of another user's.
func TestMain(m *testing.M) {
	if path := os.Getenv("ASK_AT"); path != "" {
		reply, err := Ask(path, anybody, "who")
		if err != nil {
			os.Stdout.WriteString(err.Error())
		} else {
			os.Stdout.WriteString(strings.Join(reply, " "))
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func serve(t *testing.T, path string, handle func([]string) []string) *Server {
	t.Helper()
	s, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(handle)
	t.Cleanup(s.Close)
	return s
}

func anybody(Peer) bool { return true }

func echo(request []string) []string { return request }

func TestRequestsGetTheirReplies(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), strings.Repeat("a long name/", 12))} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "control")
		serve(t, path, echo)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info, err)
		}
		for _, request := range [][]string{{"a", "", "b\x00\nc"}, {strings.Repeat("x", Limit-4)}, nil} {
			reply, err := Ask(path, anybody, request...)
			if err != nil || !slices.Equal(reply, request) {
				t.Errorf("%d texts, %v", len(reply), err)
			}
		}
		if _, err := Ask(path, anybody, strings.Repeat("x", Limit)); err == nil || !strings.Contains(err.Error(), "more than the limit") {
			t.Error(err)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	if _, err := Ask(path, anybody, "x"); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
	s := serve(t, path, echo)
	s.Close()
	if _, err := Ask(path, anybody, "x"); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
	// As after a crash: the file is there and nobody listens.
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: path})
	}
	if err != nil {
		t.Fatal(err)
	}
	syscall.Close(fd)
	if _, err := Ask(path, anybody, "x"); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
	serve(t, path, echo)
	if reply, err := Ask(path, anybody, "x"); err != nil || !slices.Equal(reply, []string{"x"}) {
		t.Error(reply, err)
	}
}

// TestS7WhoListensIsKnown has a client that asks one process only.
func TestS7WhoListensIsKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	var asked atomic.Int32
	serve(t, path, func(r []string) []string { asked.Add(1); return r })
	_, err := Ask(path, func(p Peer) bool { return p != Peer{os.Getpid(), os.Geteuid()} }, "a secret")
	if err == nil || !strings.Contains(err.Error(), "which is not agent-init") || asked.Load() != 0 {
		t.Error(err, asked.Load())
	}
}

// TestS7OtherUsersAreNotAnswered has a client of another user.
func TestS7OtherUsersAreNotAnswered(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("only root can become another user")
		}
		t.Skip("only root can become another user")
	}
	dir, err := os.MkdirTemp("", "control")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "client"), self, 0o755), os.Chmod(dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string, uid uint32) string {
		cmd := exec.Command(filepath.Join(dir, "client"))
		cmd.Env = []string{"ASK_AT=" + path}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	var asked atomic.Int32
	count := func(r []string) []string { asked.Add(1); return r }
	path := filepath.Join(dir, "own")
	serve(t, path, count)
	if got := ask(path, 1000); !strings.Contains(got, "permission denied") {
		t.Error(got)
	}
	// Even where the file's mode let it through.
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := ask(path, 1000); got != ErrRefused.Error() || asked.Load() != 0 {
		t.Error(got, asked.Load())
	}
	if got := ask(path, 0); got != "who" || asked.Load() != 1 {
		t.Error(got, asked.Load())
	}
}

// TestBadRequestsHarmNobody sends what is no request, while others ask.
func TestBadRequestsHarmNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	var asked atomic.Int32
	serve(t, path, func(r []string) []string { asked.Add(1); return r })
	for _, bad := range []string{"\xff\xff\xff\xff", "\x04\x00\x00\x00\xff\xff\xff\xff", "\x03\x00\x00\x00abc", "GET / HTTP/1.1\r\n\r\n", "\x00"} {
		conn, err := dial(path)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(bad))
		// Half closed, as by a client that has died.
		raw, _ := conn.SyscallConn()
		raw.Control(func(fd uintptr) { syscall.Shutdown(int(fd), syscall.SHUT_WR) })
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
			t.Errorf("%q: got %d bytes, %v", bad, n, err)
		}
		conn.Close()
	}
	if asked.Load() != 0 {
		t.Error(asked.Load(), "bad requests reached the handler")
	}
	if reply, err := Ask(path, anybody, "x"); err != nil || len(reply) != 1 {
		t.Error(reply, err)
	}
}

// TestManyClients has more clients than places, and some that say nothing.
func TestManyClients(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	var now, most atomic.Int32
	serve(t, path, func(r []string) []string {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		defer now.Add(-1)
		return r
	})
	for range connections - 1 {
		conn, err := dial(path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if reply, err := Ask(path, anybody, "x"); err != nil || !slices.Equal(reply, []string{"x"}) {
				t.Error(reply, err)
			}
		})
	}
	all.Wait()
	if most.Load() > connections {
		t.Error(most.Load())
	}
}

func TestCloseWhileServing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	s, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	taken, answer := make(chan struct{}), make(chan struct{})
	go func() {
		s.Serve(func(r []string) []string { close(taken); <-answer; return r })
		close(ended)
	}()
	replied := make(chan error)
	go func() {
		_, err := Ask(path, anybody, "x")
		replied <- err
	}()
	<-taken
	go close(answer)
	s.Close()
	if err := <-replied; err != nil {
		t.Error(err)
	}
	<-ended
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, texts := range [][]string{nil, {""}, {"put", "NAME", "value"}, {strings.Repeat("x", 300)}} {
		data, err := encode(texts)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		texts, err := decode(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := encode(texts)
		if err != nil || !bytes.HasPrefix(data, again) {
			t.Errorf("%q became %q, %v", data, again, err)
		}
	})
}

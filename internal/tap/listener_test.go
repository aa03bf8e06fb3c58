package tap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain sends a message instead where a test asks for it.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TAP_TEST_SEND"); dir != "" {
		fmt.Println(send(dir, failed, []byte("hello")))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func listenIn(t *testing.T, dir string) *Listener {
	t.Helper()
	l, err := Listen(dir, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func listening(t *testing.T) *Listener {
	t.Helper()
	return listenIn(t, filepath.Join(t.TempDir(), "tap"))
}

func TestE3PipeAndFileAreHandedOver(t *testing.T) {
	// A path that no socket address can hold.
	for _, dir := range []string{t.TempDir() + "/tap", t.TempDir() + strings.Repeat("/directory", 20)} {
		l := listenIn(t, dir)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		if err := send(dir, pipe, nil, int(r.Fd()), int(stderr.Fd())); err != nil {
			t.Fatal(err)
		}
		self, err := unix.PidfdOpen(os.Getpid(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := send(dir, file, offset(1<<40), int(stderr.Fd()), self); err != nil {
			t.Fatal(err)
		}
		m, err := l.Receive()
		if err != nil || m.Pipe == nil || m.Stderr == nil {
			t.Fatalf("%+v, %v", m, err)
		}
		w.WriteString("through the pipe")
		w.Close()
		if got, _ := io.ReadAll(m.Pipe); string(got) != "through the pipe" {
			t.Errorf("read %q", got)
		}
		m, err = l.Receive()
		if err != nil || m.File == nil || m.Process == nil || m.From != 1<<40 {
			t.Fatalf("%+v, %v", m, err)
		}
	}
}

// What anybody of the agent's user can send must neither be taken for a
// command nor cost descriptors.
func TestE3WhatIsNoMessageCostsNothing(t *testing.T) {
	l := listening(t)
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	before := openFiles(t)
	n, p := int(null.Fd()), int(r.Fd())
	var sending sync.WaitGroup
	sending.Go(func() {
		send(l.dir, 'z', nil, n)
		send(l.dir, pipe, nil, n, n)
		send(l.dir, pipe, nil, p)
		send(l.dir, pipe, nil)
		send(l.dir, file, offset(0), n, n)
		send(l.dir, file, []byte("short"), n, n)
		send(l.dir, failed, nil, n)
		send(l.dir, failed, []byte("why"), n)
	})
	if m, err := l.Receive(); err != nil || m.Failure != "why" {
		t.Errorf("%+v, %v", m, err)
	}
	sending.Wait()
	if after := openFiles(t); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
	// More descriptors than a message has.
	many := make([]int, 20)
	for i := range many {
		many[i] = n
	}
	sending.Go(func() { send(l.dir, pipe, nil, many...) })
	if m, err := l.Receive(); err != nil || m.Failure == "" {
		t.Errorf("%+v, %v", m, err)
	}
	sending.Wait()
	if after := openFiles(t); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Taps wait for a queue that is full, and what they have sent before Stop
// arrives.
func TestE3FullQueueLosesNothing(t *testing.T) {
	const taps = 3000
	l := listening(t)
	var sending sync.WaitGroup
	for i := range taps {
		sending.Go(func() {
			if err := send(l.dir, failed, fmt.Append(nil, i)); err != nil {
				t.Error(err)
			}
		})
	}
	seen := map[string]bool{}
	for range taps / 2 {
		m, err := l.Receive()
		if err != nil {
			t.Fatal(err)
		}
		seen[m.Failure] = true
	}
	go func() {
		sending.Wait()
		l.Stop()
	}()
	for {
		m, err := l.Receive()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[m.Failure] = true
	}
	if len(seen) != taps {
		t.Errorf("%d messages of %d", len(seen), taps)
	}
}

func TestE3NobodyListens(t *testing.T) {
	l := listening(t)
	if err := send(filepath.Dir(l.dir), failed, nil); !errors.Is(err, unix.ENOENT) {
		t.Error(err)
	}
	// As a killed agent-init leaves it.
	l.socket.Close()
	if err := send(l.dir, failed, nil); !errors.Is(err, unix.ECONNREFUSED) {
		t.Error(err)
	}
}

func TestE3AnotherUserCannotSend(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("only root can become another user")
		}
		t.Skip("only root can become another user")
	}
	l := listening(t)
	program := filepath.Join(t.TempDir(), "test")
	if err := os.Link("/proc/self/exe", program); err != nil {
		data, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for dir := program; dir != "/"; dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o755)
	}
	// The socket's own mode has to be enough.
	os.Chmod(l.dir, 0o755)
	cmd := exec.Command(program)
	cmd.Env = []string{"TAP_TEST_SEND=" + l.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "permission denied") {
		t.Errorf("%v: %s", err, out)
	}
}

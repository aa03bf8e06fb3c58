// Package entrypoint_test drives the shipped images in real containers, as an
// operator does. AGENTIC_TEST_IMAGE and AGENTIC_TEST_BINARY_IMAGE name other
// images than those that scripts/images builds.
package entrypoint_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
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

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
)

var (
	image       = cmp.Or(os.Getenv("AGENTIC_TEST_IMAGE"), "agentic-workspace:dev")
	binaryImage = cmp.Or(os.Getenv("AGENTIC_TEST_BINARY_IMAGE"), "agent-init:dev")
)

// testLabel marks what tests leave behind if they are killed.
const testLabel = "agentic.test"

// patience bounds the life of one container: two cores may run the agent CLI
// several times at once.
const patience = 90 * time.Second

// tools is where the programs that tests mount are built.
var tools string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if tools, err = os.MkdirTemp("", "agentic-test-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(tools)
		return m.Run()
	}())
}

// engine is Docker with the images under test.
type engine struct {
	*client.Client
	arch string
}

var connect = sync.OnceValues(func() (engine, error) {
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return engine{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var arch string
	for _, name := range []string{binaryImage, image} {
		found, err := c.ImageInspect(ctx, name)
		if err != nil {
			return engine{}, fmt.Errorf("%w (scripts/images builds the images)", err)
		}
		arch = found.Architecture
	}
	return engine{c, arch}, nil
})

func docker(t *testing.T) engine {
	t.Helper()
	e, err := connect()
	if err == nil {
		return e
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
	return e
}

// slots bounds the containers at work where there are many processors.
var slots = make(chan struct{}, 4)

// parallel is for tests without subtests.
func parallel(t *testing.T) {
	t.Helper()
	t.Parallel()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
}

// tool builds a program of scripts for the image's architecture.
func tool(t *testing.T, name string) string {
	t.Helper()
	e := docker(t)
	buildMutex.Lock()
	defer buildMutex.Unlock()
	path := filepath.Join(tools, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./scripts/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+e.arch)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

var buildMutex sync.Mutex

// option changes how a container is made.
type option func(*container.Config, *container.HostConfig)

func env(entries ...string) option {
	return func(c *container.Config, _ *container.HostConfig) { c.Env = append(c.Env, entries...) }
}

func user(name string) option {
	return func(c *container.Config, _ *container.HostConfig) { c.User = name }
}

// entrypoint takes the place of agent-init; an empty word leaves none.
func entrypoint(words ...string) option {
	return func(c *container.Config, _ *container.HostConfig) { c.Entrypoint = words }
}

func host(change func(*container.HostConfig)) option {
	return func(_ *container.Config, h *container.HostConfig) { change(h) }
}

// bind mounts a path of the host, read-only.
func bind(t *testing.T, source, target string) option {
	t.Helper()
	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(source); err != nil {
		t.Fatal(err)
	}
	return host(func(h *container.HostConfig) {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: source, Target: target, ReadOnly: true})
	})
}

func openStdin(c *container.Config, _ *container.HostConfig) {
	c.OpenStdin, c.StdinOnce, c.AttachStdin = true, true, true
}

// workspace is a container; it is removed at the end of the test.
type workspace struct {
	engine
	t    *testing.T
	id   string
	name string
	ctx  context.Context
	tty  bool
}

var created atomic.Int64

// create makes a container without starting it.
func create(t *testing.T, from string, command []string, options ...option) *workspace {
	t.Helper()
	e := docker(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	config := &container.Config{Image: from, Cmd: command, Labels: map[string]string{testLabel: t.Name()}}
	hostConfig := &container.HostConfig{NetworkMode: "none"}
	for _, change := range options {
		change(config, hostConfig)
	}
	name := fmt.Sprintf("agentic-test-%d-%d", os.Getpid(), created.Add(1))
	made, err := e.ContainerCreate(ctx, config, hostConfig, nil, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	w := &workspace{engine: e, t: t, id: made.ID, name: name, ctx: ctx, tty: config.Tty}
	t.Cleanup(func() {
		err := e.ContainerRemove(context.Background(), w.id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil {
			t.Errorf("%v", err)
		}
	})
	return w
}

// start starts a container of the image under test.
func start(t *testing.T, command []string, options ...option) *workspace {
	t.Helper()
	w := create(t, image, command, options...)
	w.start()
	return w
}

// run waits for its end, too.
func run(t *testing.T, command []string, options ...option) result {
	t.Helper()
	return start(t, command, options...).wait()
}

func (w *workspace) start() {
	w.t.Helper()
	w.must(w.ContainerStart(w.ctx, w.id, container.StartOptions{}))
}

// startWith starts a container, writes text to its stdin and closes it.
func (w *workspace) startWith(text string) {
	w.t.Helper()
	stream, err := w.ContainerAttach(w.ctx, w.id, container.AttachOptions{Stream: true, Stdin: true})
	w.must(err)
	defer stream.Close()
	w.start()
	_, err = stream.Conn.Write([]byte(text))
	w.must(err)
	w.must(stream.CloseWrite())
}

func (w *workspace) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.logs())
	}
}

// result is what an ended command left.
type result struct {
	code           int
	stdout, stderr string
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d\nstdout: %s\nstderr: %s", r.code, r.stdout, r.stderr)
}

func (w *workspace) wait() result {
	w.t.Helper()
	ended, failed := w.ContainerWait(w.ctx, w.id, container.WaitConditionNotRunning)
	select {
	case end := <-ended:
		r := w.logs()
		r.code = int(end.StatusCode)
		return r
	case err := <-failed:
		w.must(err)
	}
	return result{}
}

// logs are what the container has printed so far.
func (w *workspace) logs() result {
	var out, err bytes.Buffer
	// A context of its own: it tells what went wrong when the other is over.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	w.copyLogs(ctx, false, &out, &err)
	return result{stdout: out.String(), stderr: err.String()}
}

func (w *workspace) copyLogs(ctx context.Context, follow bool, stdout, stderr io.Writer) error {
	logs, err := w.ContainerLogs(ctx, w.id, container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: follow})
	if err != nil {
		return err
	}
	defer logs.Close()
	if w.tty {
		_, err = io.Copy(stdout, logs)
	} else {
		_, err = stdcopy.StdCopy(stdout, stderr, logs)
	}
	return err
}

// await waits until the container has printed text.
func (w *workspace) await(text string) {
	w.t.Helper()
	seen := &watcher{text: text}
	err := w.copyLogs(w.ctx, true, seen, seen)
	if !errors.Is(err, errSeen) {
		w.t.Fatalf("%q is not in the log: %v\n%s", text, err, w.logs())
	}
}

var errSeen = errors.New("seen")

// watcher ends a copy at a text.
type watcher struct {
	text string
	got  []byte
}

func (s *watcher) Write(p []byte) (int, error) {
	s.got = append(s.got, p...)
	if bytes.Contains(s.got, []byte(s.text)) {
		return 0, errSeen
	}
	return len(p), nil
}

// exec runs a command beside the agent, as docker exec does.
func (w *workspace) exec(command ...string) result {
	w.t.Helper()
	return w.execAs("", command...)
}

// execAs does it as docker exec -u does.
func (w *workspace) execAs(user string, command ...string) result {
	w.t.Helper()
	made, err := w.ContainerExecCreate(w.ctx, w.id, container.ExecOptions{User: user, Cmd: command, AttachStdout: true, AttachStderr: true})
	w.must(err)
	stream, err := w.ContainerExecAttach(w.ctx, made.ID, container.ExecAttachOptions{})
	w.must(err)
	defer stream.Close()
	var out, stderr bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &stderr, stream.Reader)
	w.must(err)
	ended, err := w.ContainerExecInspect(w.ctx, made.ID)
	w.must(err)
	return result{ended.ExitCode, out.String(), stderr.String()}
}

// files reads a file, or all files below a directory, of the container.
func (w *workspace) files(path string) map[string]string {
	w.t.Helper()
	archive, _, err := w.CopyFromContainer(w.ctx, w.id, path)
	w.must(err)
	defer archive.Close()
	found := make(map[string]string)
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if err == io.EOF {
			return found
		}
		w.must(err)
		if header.Typeflag == tar.TypeReg {
			data, err := io.ReadAll(r)
			w.must(err)
			found[header.Name] = string(data)
		}
	}
}

// bash is a command for short scripts.
func bash(lines ...string) []string { return []string{"bash", "-c", strings.Join(lines, "\n")} }

func wantCode(t *testing.T, r result, code int) {
	t.Helper()
	if r.code != code {
		t.Errorf("want exit code %d:\n%s", code, r)
	}
}

// wantIn checks that text holds each of parts.
func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

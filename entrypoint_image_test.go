package entrypoint_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/container"
	imagetypes "github.com/docker/docker/api/types/image"
	"github.com/google/go-cmp/cmp"
)

func inspect(t *testing.T) imagetypes.InspectResponse {
	t.Helper()
	found, err := docker(t).ImageInspect(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestI2ImageConfig(t *testing.T) {
	config := inspect(t).Config
	if config.User != "agent" || config.WorkingDir != "/workspace" {
		t.Errorf("user %q, directory %q", config.User, config.WorkingDir)
	}
	if !slices.Equal(config.Entrypoint, []string{"/opt/agentic/bin/agent-init"}) || !slices.Equal(config.Cmd, []string{"bash"}) {
		t.Errorf("entrypoint %q, command %q", config.Entrypoint, config.Cmd)
	}
	if i := slices.IndexFunc(config.Env, func(e string) bool { return strings.HasPrefix(e, "PATH=/opt/agentic/bin:") }); i < 0 {
		t.Errorf("environment %q", config.Env)
	}
	for _, entry := range config.Env {
		if name, _, _ := strings.Cut(entry, "="); strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_KEY") {
			t.Errorf("the image brings %s", name)
		}
	}
	for _, name := range []string{"org.opencontainers.image.title", "org.opencontainers.image.licenses", "org.opencontainers.image.version", "agentic.versions.agent-init", "agentic.versions.claude-code"} {
		if config.Labels[name] == "" {
			t.Errorf("no label %s", name)
		}
	}
}

// The label has to say what the plugins say.
func TestI2RequiresEnvLabel(t *testing.T) {
	var label map[string]any
	if err := json.Unmarshal([]byte(inspect(t).Config.Labels["agentic.requires_env"]), &label); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob("docker/plugins/*/.claude-plugin/plugin.json")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no plugins: %v", err)
	}
	want := make(map[string]any)
	for _, path := range manifests {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Name        string
			RequiresEnv any `json:"requires_env"`
		}
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		want[m.Name] = m.RequiresEnv
	}
	if diff := cmp.Diff(want, label); diff != "" {
		t.Errorf("label (-manifests +label):\n%s", diff)
	}
}

func TestI2HealthCheck(t *testing.T) {
	parallel(t)
	check := inspect(t).Config.Healthcheck
	if check == nil || !slices.Equal(check.Test, []string{"CMD", "/opt/agentic/bin/agent-init", "health"}) ||
		check.Interval != 30*time.Second || check.Timeout != 5*time.Second || check.Retries != 3 {
		t.Fatalf("the image has %+v", check)
	}
	// Docker asks every second here, and says what it thinks.
	w := start(t, bash("echo ready >&2", "until test -e /tmp/end; do sleep 0.1; done"), func(c *container.Config, _ *container.HostConfig) {
		c.Healthcheck = &container.HealthConfig{Interval: time.Second}
	})
	w.await("ready")
	for {
		found, err := w.ContainerInspect(w.ctx, w.id)
		w.must(err)
		if found.State.Health.Status == "healthy" {
			break
		}
		if len(found.State.Health.Log) > 0 {
			t.Fatalf("%+v", found.State.Health.Log[0])
		}
	}
	r := w.exec(append(check.Test[1:2:2], "status")...)
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "state      running\nagent-init process 1\nagent      process ", ", bash\n", "runtime    /run/agentic\n")
	wantCode(t, w.exec("touch", "/tmp/end"), 0)
	wantCode(t, w.wait(), 0)
}

// Without agent-init, and without a place for its records.
func TestI2HealthOfOtherContainers(t *testing.T) {
	parallel(t)
	r := run(t, []string{"agent-init", "health"}, entrypoint("env"))
	wantCode(t, r, 1)
	wantIn(t, r.stdout, "no workspace lives here /run/agentic")
	w := start(t, bash("echo ready >&2", "read -r line < <(exec sleep infinity)"), host(func(h *container.HostConfig) { h.ReadonlyRootfs = true }))
	w.await("ready")
	r = w.exec("agent-init", "health")
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "agent-init runs; ")
	wantCode(t, w.exec("agent-init", "status"), 1)
}

func TestI2ImageContents(t *testing.T) {
	parallel(t)
	r := run(t, bash(
		`id -un; id -u; echo "$HOME"`,
		`find / -xdev -type f -perm /6000 2>/dev/null`,
		`find /opt /usr /etc -xdev -writable -not -type l 2>/dev/null`,
		`python3 -c 'import agentic_events; print(agentic_events.__name__)'`,
		`bash -lc 'type -P claude agent-init; claude --version'`,
		`git --version | cut -d " " -f 1-2`,
	))
	wantCode(t, r, 0)
	want := "agent\n1000\n/home/agent\nagentic_events\n/usr/local/bin/claude\n/usr/local/bin/agent-init\n" +
		inspect(t).Config.Labels["agentic.versions.claude-code"] + " (Claude Code)\ngit version\n"
	if diff := cmp.Diff(want, r.stdout); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A login shell resets PATH; a bash without arguments is what the image runs.
func TestI2DefaultCommandIsAShell(t *testing.T) {
	parallel(t)
	w := create(t, image, nil, openStdin)
	w.startWith("echo \"$0 in $PWD\"; exit 7\n")
	r := w.wait()
	wantCode(t, r, 7)
	if r.stdout != "bash in /workspace\n" {
		t.Errorf("stdout is %q", r.stdout)
	}
}

// layers lists the files of an image.
func layers(t *testing.T, name string) (files []string) {
	t.Helper()
	saved, err := docker(t).ImageSave(t.Context(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	members := make(map[string][]byte)
	each(t, saved, func(h *tar.Header, r io.Reader) {
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		members[h.Name] = data
	})
	var manifest []struct{ Layers []string }
	if err := json.Unmarshal(members["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	for _, layer := range manifest[0].Layers {
		each(t, bytes.NewReader(members[layer]), func(h *tar.Header, _ io.Reader) { files = append(files, h.Name) })
	}
	return files
}

func each(t *testing.T, archive io.Reader, do func(*tar.Header, io.Reader)) {
	t.Helper()
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		do(h, r)
	}
}

func TestI2BinaryImageHoldsOneFileAndRunsFromScratch(t *testing.T) {
	parallel(t)
	if got := layers(t, binaryImage); !slices.Equal(got, []string{"agent-init"}) {
		t.Errorf("the image holds %q", got)
	}
	scratch := func(command ...string) result {
		w := create(t, binaryImage, command)
		w.start()
		return w.wait()
	}
	r := scratch("version")
	wantCode(t, r, 0)
	if want := "agent-init " + inspect(t).Config.Labels["agentic.versions.agent-init"] + "\n"; r.stdout != want {
		t.Errorf("it says %q, the workspace image's label %q", r.stdout, want)
	}
	// Boot works without anything else in the image; agent-init is its own agent.
	r = scratch("--", "/agent-init", "help", "config")
	wantCode(t, r, 0)
	wantIn(t, r.stdout, "AGENTIC_STOP_GRACE")
	wantCode(t, scratch("sh"), 127)
}

var baseArgument = regexp.MustCompile(`(?m)^ARG BASE_IMAGE=(.*)$`)

// The README's Dockerfile lines make any image a workspace image.
func TestI2BinaryInAnotherImage(t *testing.T) {
	parallel(t)
	e := docker(t)
	lines := fenced(t, "README.md", "dockerfile")
	if len(lines) == 0 {
		t.Fatal("README.md shows no Dockerfile")
	}
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	base := baseArgument.FindStringSubmatch(string(dockerfile))[1]
	text := "FROM " + base + "\n" + strings.ReplaceAll(strings.Join(lines, "\n"), "agent-init:dev", binaryImage) + "\n"

	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	archive.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(text))})
	io.WriteString(archive, text)
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	tag := "agentic-test-" + strings.ToLower(t.Name())
	made, err := e.ImageBuild(t.Context(), &files, build.ImageBuildOptions{Tags: []string{tag}, Labels: map[string]string{testLabel: t.Name()}, Remove: true, ForceRemove: true})
	if err != nil {
		t.Fatal(err)
	}
	log, err := io.ReadAll(made.Body)
	made.Body.Close()
	if err != nil || bytes.Contains(log, []byte(`"errorDetail"`)) {
		t.Fatalf("%v\n%s\n%s", err, text, log)
	}
	t.Cleanup(func() {
		if _, err := e.ImageRemove(context.Background(), tag, imagetypes.RemoveOptions{Force: true, PruneChildren: true}); err != nil {
			t.Error(err)
		}
	})
	w := create(t, tag, []string{"sh", "-c", "cat /proc/1/comm; exit 7"})
	w.start()
	r := w.wait()
	wantCode(t, r, 7)
	if r.stdout != "agent-init\n" {
		t.Errorf("PID 1 is %q", r.stdout)
	}
}

package entrypoint_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
)

// newVolume is a volume that is removed at the end of the test, mounted at target.
func newVolume(t *testing.T, target string) option {
	t.Helper()
	e := docker(t)
	made, err := e.VolumeCreate(context.Background(), volume.CreateOptions{Labels: map[string]string{testLabel: t.Name()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.VolumeRemove(context.Background(), made.Name, true); err != nil {
			t.Error(err)
		}
	})
	return host(func(h *container.HostConfig) {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeVolume, Source: made.Name, Target: target})
	})
}

// B4: repos of a uid that nobody here has, wherever they are: mounted, the
// workspace itself, and those in it.
func TestB4ReposOfAnotherOwnerWorkEverywhere(t *testing.T) {
	for _, path := range []string{"/repos/x", "/workspace", "/workspace/repos/y"} {
		for kind, commands := range map[string]string{
			"working tree": "git init -q -b main %[1]s && git -C %[1]s commit -q --allow-empty -m first",
			"bare":         "git init -q -b main /tmp/x && git -C /tmp/x commit -q --allow-empty -m first && git clone -q --bare /tmp/x %[1]s",
		} {
			if kind == "bare" && path == "/workspace" {
				continue // It gets directories of ours: no bare repository.
			}
			t.Run(path+" "+kind, func(t *testing.T) {
				parallel(t)
				volume := newVolume(t, "/"+strings.Split(path, "/")[1])
				prepared := run(t, bash("set -e", "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com",
					"git config --global safe.directory '*'", "mkdir -p "+path, fmt.Sprintf(commands, path), "chown -R 4242:4242 "+path, "chmod -R a+rwX "+path), volume, user("0"), entrypoint(""))
				wantCode(t, prepared, 0)

				script := []string{"set -e", "cd " + path, "git log --format=%s"}
				if kind == "bare" {
					script = append(script, "git clone -q "+path+" /tmp/clone", "git -C /tmp/clone log --format=%s")
				} else {
					script = append(script, "git status --short", "git commit -q --allow-empty -m second", "git log -1 --format='%s by %an'")
				}
				r := run(t, bash(script...), volume, env("GIT_AUTHOR_NAME=the agent"))
				wantCode(t, r, 0)
				want := "first\nsecond by the agent\n"
				if kind == "bare" {
					want = "first\nfirst\n"
				}
				if r.stdout != want {
					t.Errorf("%s", r)
				}
				if without := run(t, []string{"git", "-C", path, "log"}, volume, entrypoint("")); without.code == 0 {
					t.Error("git finds no dubious ownership without agent-init: this test shows nothing")
				}
			})
		}
	}
}

// B6 in the image: its own hook, those of plugins and the repo's, also in a login
// shell and under docker exec.
func TestB6HooksOfImagePluginsAndRepo(t *testing.T) {
	parallel(t)
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		for file, text := range map[string]string{
			".claude-plugin/plugin.json": fmt.Sprintf(`{"name": %q}`, name),
			"hooks/git/pre-commit":       "#!/bin/sh\necho " + name + " >>/tmp/ran\n",
			"hooks/git/pre-push":         "#!/bin/sh\necho " + name + " pushes $(cut -d' ' -f1) >>/tmp/ran\n",
		} {
			path := filepath.Join(dir, name, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := start(t, bash("set -e", "git init -q repos/x", "cd repos/x",
		`printf '#!/bin/sh\necho repo >>/tmp/ran\ntest ! -e /tmp/veto\n' >.git/hooks/pre-commit`, "chmod +x .git/hooks/pre-commit",
		"git commit -q --allow-empty -m first", "git init -q --bare /tmp/bare", "git push -q /tmp/bare main",
		"bash -lc 'git commit -q --allow-empty -m second'",
		"touch /tmp/veto", "! git commit -q --allow-empty -m third",
		"cat /tmp/ran", "rm /tmp/veto", "echo done >&2", "read -r _"),
		bind(t, dir, "/opt/agentic/plugins"), env("GIT_AUTHOR_NAME=n"), openStdin)
	w.await("done")
	inside := w.exec("git", "-C", "/workspace/repos/x", "commit", "-q", "--allow-empty", "-m", "from outside")
	wantCode(t, inside, 0)
	if got := w.exec("sh", "-c", "tail -3 /tmp/ran"); got.stdout != "a\nb\nrepo\n" {
		t.Errorf("under docker exec ran %q", got.stdout)
	}
	r := w.stop()
	const commit = "a\nb\nrepo\n"
	if want := commit + "a pushes refs/heads/main\nb pushes refs/heads/main\n" + commit + commit; r.stdout != want {
		t.Errorf("ran %q, not %q", r.stdout, want)
	}
	// The image's own post-commit.
	var events []string
	for line := range strings.Lines(r.stderr) {
		if strings.Contains(line, `"event_type": "git_commit"`) {
			events = append(events, line)
		}
	}
	if len(events) != 2 || !strings.Contains(events[0], "first") || !strings.Contains(events[1], "second") {
		t.Errorf("events of the image's hook: %q", slices.Collect(strings.Lines(r.stderr)))
	}
}

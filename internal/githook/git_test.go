package githook

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// dispatcher is agent-init as it is shipped: git calls it thousands of times, and
// the race detector's start takes long.
var dispatcher string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "githook-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		dispatcher = filepath.Join(dir, "agent-init")
		build := exec.Command("go", "build", "-o", dispatcher, "agent-init/cmd/agent-init")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			panic(string(out))
		}
		return m.Run()
	}())
}

// world is a home in which git runs composed hooks, and a log that hooks write.
type world struct {
	t         testing.TB
	dir, repo string
	env       []string
}

// hook is one of a source; the order of sources is that of their names.
type hook struct{ source, name, body string }

func newWorld(t testing.TB, hooks ...hook) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, dir: dir, repo: filepath.Join(dir, "repo")}
	w.env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "GIT_") }),
		"HOME="+dir, "XDG_CONFIG_HOME="+dir+"/config", "GIT_CONFIG_NOSYSTEM=1", "LOG="+dir+"/log")
	var sources []string
	for _, h := range hooks {
		w.write(filepath.Join("sources", h.source, h.name), h.body)
		if !slices.Contains(sources, h.source) {
			sources = append(sources, h.source)
		}
	}
	slices.Sort(sources)
	var all []Hook
	for _, s := range sources {
		found, bad := Find(filepath.Join(dir, "sources", s), s)
		if len(bad) > 0 {
			t.Fatal(bad)
		}
		all = append(all, found...)
	}
	if err := Compose(w.composed(), dispatcher, all); err != nil {
		t.Fatal(err)
	}
	w.write("config/git/config", "[core]\n\thooksPath = "+w.composed()+"\n[user]\n\tname = n\n\temail = n@example.com\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n")
	w.git("init", "-q", w.repo)
	return w
}

func (w *world) composed() string { return filepath.Join(w.dir, "composed") }

// write writes an executable; a body without a first line of its own is sh's and
// begins by noting who runs.
func (w *world) write(name, body string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if !strings.HasPrefix(body, "#!") && !strings.HasPrefix(body, "[") {
		body = "#!/bin/sh\necho \"${0#$HOME/} $*\" >>$LOG\n" + body + "\n"
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(body), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// try runs git and returns its exit code and what it printed.
func (w *world) try(dir string, args ...string) (int, string) {
	w.t.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = dir, w.env
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	dir := w.repo
	if _, err := os.Stat(dir); err != nil {
		dir = w.dir
	}
	code, out := w.try(dir, args...)
	if code != 0 {
		w.t.Fatalf("git %q: exit code %d\n%s", args, code, out)
	}
	return out
}

// ran is the log since it was last read, without hooks of the names given.
func (w *world) ran() (lines []string) {
	w.t.Helper()
	data, _ := os.ReadFile(filepath.Join(w.dir, "log"))
	os.Remove(filepath.Join(w.dir, "log"))
	for line := range strings.Lines(string(data)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func (w *world) wantRan(want ...string) {
	w.t.Helper()
	if got := w.ran(); !slices.Equal(got, want) {
		w.t.Errorf("ran\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestB6AllOfANameRunInOrderAndThenTheRepositorys(t *testing.T) {
	w := newWorld(t, hook{"a", "pre-commit", ""}, hook{"b", "pre-commit", ""}, hook{"b", "commit-msg", "echo by b >>$1"}, hook{"a", "post-commit", ""})
	w.write("repo/.git/hooks/pre-commit", "")
	w.write("repo/.git/hooks/commit-msg", "echo by the repo >>$1")
	w.git("commit", "-q", "--allow-empty", "-m", "first")
	w.wantRan("sources/a/pre-commit", "sources/b/pre-commit", ".git/hooks/pre-commit",
		"sources/b/commit-msg .git/COMMIT_EDITMSG", ".git/hooks/commit-msg .git/COMMIT_EDITMSG", "sources/a/post-commit")
	if got := w.git("log", "--format=%B"); !strings.Contains(got, "by b\nby the repo") {
		t.Errorf("the message is %q", got)
	}
}

func TestB6FirstVetoStopsTheRest(t *testing.T) {
	w := newWorld(t, hook{"a", "pre-commit", "test ! -e $HOME/veto-a || exit 3"}, hook{"b", "pre-commit", ""})
	w.write("repo/.git/hooks/pre-commit", "test ! -e $HOME/veto-repo")
	for _, c := range []struct {
		veto string
		want []string
	}{
		{"veto-a", []string{"sources/a/pre-commit"}},
		{"veto-repo", []string{"sources/a/pre-commit", "sources/b/pre-commit", ".git/hooks/pre-commit"}},
	} {
		path := w.write(c.veto, "")
		if code, out := w.try(w.repo, "commit", "-q", "--allow-empty", "-m", "x"); code != 1 {
			t.Errorf("%s: exit code %d: %s", c.veto, code, out)
		}
		w.wantRan(c.want...)
		os.Remove(path)
	}
	w.git("commit", "-q", "--allow-empty", "-m", "x")
}

func TestB6NoticesAllRunWhateverOneSays(t *testing.T) {
	w := newWorld(t, hook{"a", "post-checkout", "exit 3"}, hook{"b", "post-checkout", "kill -TERM $$"})
	w.write("repo/.git/hooks/post-checkout", "")
	w.git("commit", "-q", "--allow-empty", "-m", "x")
	w.ran()
	code, out := w.try(w.repo, "checkout", "-q", "-b", "other")
	if code != 1 || !strings.Contains(out, "terminated") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if got := w.ran(); len(got) != 3 || !strings.HasPrefix(got[2], ".git/hooks/post-checkout ") || !strings.HasSuffix(got[2], " 1") {
		t.Errorf("ran %q", got)
	}
}

// Whatever git calls when there is no composition, it calls with one, with the
// same arguments, input and environment. Ours has a hook of no name here.
func TestB6RepositorysHooksRunAsWithoutOurs(t *testing.T) {
	w := newWorld(t)
	observe := `{ echo "in $(pwd)"; env | grep ^GIT_ | grep -v -e DATE -e QUARANTINE -e OBJECT_DIRECTORY | sort
case ${0##*/} in pre-push|p*-receive|post-rewrite|reference-transaction) cat;; esac; } >>$LOG`
	session := func(config ...string) []string {
		t.Helper()
		for _, name := range []string{"repo", "bare.git", "clone", "linked"} {
			if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		w.ran()
		git := func(args ...string) {
			t.Helper()
			w.git(slices.Concat(config, []string{"-c", "core.commentChar=#"}, args)...)
		}
		git("init", "-q", w.repo)
		git("init", "-q", "--bare", filepath.Join(w.dir, "bare.git"))
		for _, k := range known {
			if k.trait&converses == 0 && k.name != "push-to-checkout" {
				w.write("repo/.git/hooks/"+k.name, observe)
				w.write("bare.git/hooks/"+k.name, observe)
			}
		}
		w.env = append(w.env, "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000")
		w.write("repo/file", "#!x\n")
		git("add", "file")
		git("commit", "-q", "-m", "first")
		git("checkout", "-q", "-b", "side")
		git("commit", "-q", "--allow-empty", "-m", "on the side")
		git("commit", "-q", "--amend", "--allow-empty", "-m", "amended")
		git("checkout", "-q", "main")
		w.write("repo/more", "#!x\n")
		git("add", "more")
		git("commit", "-q", "-m", "second")
		git("rebase", "-q", "main", "side")
		git("checkout", "-q", "main")
		git("merge", "-q", "--no-ff", "-m", "merged", "side")
		git("push", "-q", filepath.Join(w.dir, "bare.git"), "main", "side", "main:third")
		git("worktree", "add", "-q", filepath.Join(w.dir, "linked"), "HEAD")
		if code, out := w.try(filepath.Join(w.dir, "linked"), slices.Concat(config, []string{"commit", "-q", "--allow-empty", "-m", "linked"})...); code != 0 {
			t.Fatal(out)
		}
		if code, out := w.try(w.dir, slices.Concat(config, []string{"--git-dir=repo/.git", "--work-tree=repo", "commit", "-q", "--allow-empty", "-m", "far"})...); code != 0 {
			t.Fatal(out)
		}
		return w.ran()
	}
	with := session()
	w.write("config/git/config", "[user]\n\tname = n\n\temail = n@example.com\n[init]\n\tdefaultBranch = main\n")
	without := session()
	text := strings.Join(without, "\n")
	for _, name := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-rewrite", "pre-rebase", "post-checkout", "post-merge", "pre-merge-commit",
		"pre-push", "pre-receive", "update", "post-receive", "post-update", "reference-transaction", "post-index-change"} {
		if !strings.Contains(text+"\n", "hooks/"+name+" ") && !strings.Contains(text+"\n", "hooks/"+name+"\n") {
			t.Errorf("%s was not called: this test shows nothing about it", name)
		}
	}
	if !strings.Contains(text, "refs/heads/third") {
		t.Error("no hook has read its input")
	}
	with, without = steady(with), steady(without)
	if !slices.Equal(with, without) {
		for i := range min(len(with), len(without)) {
			if with[i] != without[i] {
				t.Errorf("line %d of %d and %d: %q, not %q; before: %q", i, len(with), len(without), with[i], without[i], without[max(0, i-3):i])
				break
			}
		}
	}
}

// steady leaves out what post-index-change has noted: git also writes the index
// when a file was changed in the second in which it was read, or not.
func steady(lines []string) (out []string) {
	skip := false
	for _, line := range lines {
		if strings.Contains(line, "hooks/") {
			skip = strings.Contains(line, "hooks/post-index-change")
		}
		if !skip {
			out = append(out, line)
		}
	}
	return out
}

// Once by git, and once with more than is kept in memory.
func TestB6EachHookReadsTheWholeInput(t *testing.T) {
	const count = `wc -c >>$LOG`
	w := newWorld(t, hook{"a", "pre-push", count}, hook{"b", "pre-push", "exit 0"}, hook{"c", "pre-push", "head -1 >/dev/null"}, hook{"d", "post-receive", "cat >>$LOG"})
	w.write("repo/.git/hooks/pre-push", count)
	bare := filepath.Join(w.dir, "bare.git")
	w.git("init", "-q", "--bare", bare)
	w.write("bare.git/hooks/post-receive", "cat >>$LOG")
	w.git("commit", "-q", "--allow-empty", "-m", "x")
	w.git("push", "-q", bare, "main:one", "main:two")
	head, zero := strings.TrimSpace(w.git("rev-parse", "HEAD")), strings.Repeat("0", 40)
	size := fmt.Sprint(2 * len("refs/heads/main "+head+" refs/heads/one "+zero+"\n"))
	one, two := zero+" "+head+" refs/heads/one", zero+" "+head+" refs/heads/two"
	args := " " + bare + " " + bare
	w.wantRan("sources/a/pre-push"+args, size, "sources/b/pre-push"+args, "sources/c/pre-push"+args, ".git/hooks/pre-push"+args, size,
		"sources/d/post-receive", one, two, "hooks/post-receive", one, two)

	for _, size := range []int{0, 1, memoryLimit - 1, memoryLimit, memoryLimit + 1, 5 * memoryLimit} {
		c := exec.Command(filepath.Join(w.composed(), "pre-push"))
		c.Dir, c.Env, c.Stdin = w.repo, w.env, strings.NewReader(strings.Repeat("x", size))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		n := fmt.Sprint(size)
		w.wantRan("sources/a/pre-push", n, "sources/b/pre-push", "sources/c/pre-push", ".git/hooks/pre-push", n)
	}
}

func TestB6PushIsVetoedAtEitherEnd(t *testing.T) {
	w := newWorld(t, hook{"a", "pre-push", "! grep -q secret"}, hook{"a", "update", `test "$1" != refs/heads/no`})
	bare := filepath.Join(w.dir, "bare.git")
	w.git("init", "-q", "--bare", bare)
	w.write("bare.git/hooks/update", `test "$1" != refs/heads/never`)
	w.git("commit", "-q", "--allow-empty", "-m", "x")
	for _, branch := range []string{"secret", "no", "never"} {
		if code, out := w.try(w.repo, "push", "-q", bare, "main:"+branch); code != 1 {
			t.Errorf("%s: exit code %d: %s", branch, code, out)
		}
	}
	w.git("push", "-q", bare, "main:yes")
	if _, out := w.try(bare, "branch", "--format=%(refname:short)"); out != "yes\n" {
		t.Errorf("there are %q", out)
	}
}

// A hook that does nothing would keep git from updating the working tree.
func TestB6PushToACheckedOutBranch(t *testing.T) {
	w := newWorld(t)
	target := filepath.Join(w.dir, "target")
	w.git("init", "-q", target)
	w.git("-C", target, "config", "receive.denyCurrentBranch", "updateInstead")
	w.write("repo/file", "#!one\n")
	w.git("add", "file")
	w.git("commit", "-q", "-m", "one")
	w.git("push", "-q", target, "main")
	want := func(text string) {
		t.Helper()
		if data, _ := os.ReadFile(filepath.Join(target, "file")); string(data) != text {
			t.Errorf("the working tree has %q, not %q", data, text)
		}
	}
	want("#!one\n")
	w.write("repo/file", "#!two\n")
	w.git("commit", "-q", "-a", "-m", "two")
	w.git("push", "-q", target, "main")
	want("#!two\n")

	w.write("target/file", "#!changed\n")
	w.write("repo/file", "#!three\n")
	w.git("commit", "-q", "-a", "-m", "three")
	if code, out := w.try(w.repo, "push", "-q", target, "main"); code != 1 || !strings.Contains(out, "unstaged changes") {
		t.Errorf("exit code %d: %s", code, out)
	}
	want("#!changed\n")
	w.git("-C", target, "checkout", "-q", "file")
	w.write("target/.git/hooks/push-to-checkout", "#!/bin/sh\necho by the hook >$GIT_WORK_TREE/file\n")
	w.git("push", "-q", target, "main")
	want("by the hook\n")
}

func TestB6HooksWithoutAnInterpreterAndThoseThatAreNotExecutable(t *testing.T) {
	w := newWorld(t, hook{"a", "post-commit", "#!"}, hook{"b", "post-commit", ""})
	// Not even "#!": git has sh read it.
	for _, path := range []string{"sources/a/post-commit", "repo/.git/hooks/post-commit"} {
		if err := os.WriteFile(filepath.Join(w.dir, path), []byte("echo plain >>$LOG\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ignored := w.write("repo/.git/hooks/commit-msg", "")
	if err := os.Chmod(ignored, 0o644); err != nil {
		t.Fatal(err)
	}
	out := w.git("commit", "-q", "--allow-empty", "-m", "x")
	w.wantRan("plain", "sources/b/post-commit", "plain")
	if !strings.Contains(out, ".git/hooks/commit-msg' hook was ignored") {
		t.Errorf("git says %q", out)
	}
}

func TestB6HookThatIsGone(t *testing.T) {
	w := newWorld(t, hook{"a", "pre-commit", ""}, hook{"b", "pre-commit", ""})
	if err := os.Remove(filepath.Join(w.dir, "sources/a/pre-commit")); err != nil {
		t.Fatal(err)
	}
	code, out := w.try(w.repo, "commit", "-q", "--allow-empty", "-m", "x")
	if code != 1 || !strings.Contains(out, "git hook pre-commit: cannot start") || !strings.Contains(out, "sources/a/pre-commit") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// What git is told by the environment wins over a repository's configuration, and
// must not lose that one's hooks.
func TestB6RepositorysHooksPathWhereOursIsInTheEnvironment(t *testing.T) {
	w := newWorld(t, hook{"a", "pre-commit", ""})
	w.write("repo/.husky/pre-commit", "")
	w.git("config", "core.hooksPath", ".husky")
	w.git("commit", "-q", "--allow-empty", "-m", "ours does not run")
	w.wantRan(".husky/pre-commit")
	w.env = append(w.env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0="+w.composed())
	w.git("commit", "-q", "--allow-empty", "-m", "x")
	w.wantRan("sources/a/pre-commit", ".husky/pre-commit")
}

func TestB6RepositoryInASubmodule(t *testing.T) {
	w := newWorld(t, hook{"a", "pre-commit", ""})
	w.git("commit", "-q", "--allow-empty", "-m", "x")
	w.git("submodule", "--quiet", "add", w.repo, "sub")
	w.ran()
	w.write("repo/.git/modules/sub/hooks/pre-commit", "exit 5")
	if code, out := w.try(filepath.Join(w.repo, "sub"), "commit", "-q", "--allow-empty", "-m", "y"); code != 1 {
		t.Errorf("exit code %d: %s", code, out)
	}
	w.wantRan("sources/a/pre-commit", "repo/.git/modules/sub/hooks/pre-commit")
}

func TestB6LinkToTheDispatcherDoesNotCallItself(t *testing.T) {
	w := newWorld(t, hook{"a", "post-commit", ""})
	if err := os.Symlink(filepath.Join(w.composed(), "post-commit"), filepath.Join(w.repo, ".git/hooks/post-commit")); err != nil {
		t.Fatal(err)
	}
	w.git("commit", "-q", "--allow-empty", "-m", "x")
	w.wantRan("sources/a/post-commit")
}

// The last hook is git's own child: a signal is the hook's own end.
func TestB6LastHookTakesTheDispatchersPlace(t *testing.T) {
	w := newWorld(t, hook{"a", "pre-commit", "echo $PPID >>$LOG"})
	w.write("repo/.git/hooks/pre-commit", "echo $PPID >>$LOG")
	w.git("commit", "-q", "--allow-empty", "-m", "x")
	got := w.ran()
	if len(got) != 4 || got[1] == got[3] {
		t.Errorf("parents: %q", got)
	}
}

// BenchmarkCommit compares commits with every hook name in place and without.
func BenchmarkCommit(b *testing.B) {
	for name, config := range map[string][]string{"composed": nil, "without": {"-c", "core.hooksPath=/nonexistent"}} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			for b.Loop() {
				w.git(append(config, "commit", "-q", "--allow-empty", "-m", "x")...)
			}
		})
	}
}

func TestB6FindTellsWhatDoesNotRun(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	file("pre-commit", 0o755)
	file("post-merge", 0o644)
	file("pre-comit", 0o755)
	file("pre-push.sample", 0o755)
	file("README", 0o644)
	file("proc-receive", 0o755)
	file("with\nnewline", 0o755)
	os.Mkdir(filepath.Join(dir, "post-commit"), 0o755)
	os.Mkdir(filepath.Join(dir, "lib"), 0o755)
	if err := syscall.Mkfifo(filepath.Join(dir, "pre-rebase"), 0o755); err != nil {
		t.Fatal(err)
	}
	os.Symlink("nowhere", filepath.Join(dir, "commit-msg"))
	hooks, found := Find(dir, "p")
	if len(hooks) != 1 || hooks[0] != (Hook{"pre-commit", filepath.Join(dir, "pre-commit"), "p"}) {
		t.Errorf("found %+v", hooks)
	}
	var got []string
	for _, f := range found {
		if strings.Contains(f.Text(), "\n") {
			t.Errorf("%q has more than one line", f.Text())
		}
		got = append(got, f.Severity.String()+" "+strings.TrimPrefix(f.Text(), f.What+" "))
	}
	for i, want := range []string{"error", "post-commit: it is not a regular file", "post-merge: it is not executable", "pre-comit: git knows no hook", "pre-rebase: it is not a regular", "proc-receive: it speaks", "git knows no hook"} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Errorf("%d: %q does not say %q", i, got, want)
		}
	}
	if _, found := Find(filepath.Join(dir, "README"), ""); !found.Refuses() {
		t.Error("a file is taken for a directory of hooks")
	}
	if hooks, found := Find(filepath.Join(dir, "absent"), ""); len(hooks)+len(found) > 0 {
		t.Error(hooks, found)
	}
}

// Cycles compose again in the same place.
func TestB6ComposedAgain(t *testing.T) {
	w := newWorld(t, hook{"a", "pre-commit", ""}, hook{"b", "post-commit", ""})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := Compose(w.composed(), self, []Hook{{Name: "post-commit", Path: filepath.Join(w.dir, "sources/b/post-commit")}}); err != nil {
		t.Fatal(err)
	}
	w.git("commit", "-q", "--allow-empty", "-m", "x")
	w.wantRan("sources/b/post-commit")
}

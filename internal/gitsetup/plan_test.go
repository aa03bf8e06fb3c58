package gitsetup

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const configFile = ".config/git/config"

func TestB3IdentityReachesCommitsAndAnswersGlobally(t *testing.T) {
	for _, uid := range []uint32{uint32(os.Getuid()), 1000} {
		w := newWorld(t)
		if uid != w.uid {
			needRoot(t)
			w.uid = uid
			w.chown(w.dir)
		}
		w.env["GIT_AUTHOR_NAME"] = `Ada "the first" Lovelace; # ünïcode`
		p := w.boot()
		if len(p.Problems) > 0 {
			t.Errorf("problems: %v", p.Problems)
		}
		want(t, "user.name", w.git("config", "--global", "user.name"), w.env["GIT_AUTHOR_NAME"])
		want(t, "user.email", w.git("config", "--global", "user.email"), "agent@agentic.local")
		want(t, "committer", w.env["GIT_COMMITTER_NAME"]+" "+w.env["GIT_COMMITTER_EMAIL"], w.env["GIT_AUTHOR_NAME"]+" agent@agentic.local")
		repo := filepath.Join(w.home, "repo")
		w.git("init", "-q", repo)
		want(t, "branch", w.git("-C", repo, "symbolic-ref", "--short", "HEAD"), "main")
		who := w.env["GIT_AUTHOR_NAME"] + " <agent@agentic.local>"
		want(t, "commit", w.commit(repo), who+" "+who)
		for name := range w.env {
			if strings.HasPrefix(name, "GIT_CONFIG_COUNT") {
				t.Errorf("%s is set beside the file", name)
			}
		}
	}
}

func TestB3BootingTwiceChangesNothing(t *testing.T) {
	contents := []string{"", "[user]\r\n\tname = Mine\r\n", "[alias]\n\tst = status", "\xef\xbb\xbf[core]\n\teditor = vi\n", "\n\n# note\n[a \"b\"]\n\tc = \"d\\\"\"\n"}
	for _, content := range contents {
		w := newWorld(t)
		w.env["GIT_AUTHOR_NAME"] = "Ada"
		w.env["GIT_AUTHOR_EMAIL"] = "ada@example.com"
		w.in.Hosts = []Host{{"github.com", "x-access-token", "GITHUB_TOKEN", "ghp_1"}}
		w.write(configFile, content)
		before := listing(w.entries(content))
		w.boot()
		first := w.read(configFile)
		if after, ok := strings.CutPrefix(content, bom); ok {
			contains(t, "start", first[:3], bom)
			content = after
		}
		if !strings.HasSuffix(first, content) {
			t.Errorf("%q is not kept in %q", content, first)
		}
		if got := w.git("config", "--file", filepath.Join(w.home, configFile), "--list", "-z"); !strings.HasSuffix(got+"\n", before) && !strings.HasSuffix(got, before) {
			t.Errorf("git reads %q, want %q at the end", got, before)
		}
		p := New(w.in)
		if n := w.apply(p); n != 0 || w.read(configFile) != first {
			t.Errorf("the second boot changed %d files; config %q", n, w.read(configFile))
		}
		for _, f := range p.Files {
			if !f.Same() {
				t.Errorf("%s differs", f.Path)
			}
		}
	}
}

func (w *world) entries(content string) []Entry {
	e, bad := ParseConfig("/f", []byte(content))
	if bad != nil {
		w.t.Fatal(bad)
	}
	return e
}

func TestB3BlockIsReplacedAndTheUserWins(t *testing.T) {
	w := newWorld(t)
	w.env["GIT_AUTHOR_NAME"] = "Old"
	w.boot()
	delete(w.env, "GIT_COMMITTER_NAME")
	w.env["GIT_AUTHOR_NAME"] = "New"
	w.boot()
	want(t, "replaced", w.git("config", "--global", "--get-all", "user.name"), "New")

	path := w.write(configFile, w.read(configFile)+"[user]\n\tname = Further Down\n")
	w.boot()
	want(t, "same file", w.git("config", "--global", "user.name"), "Further Down")
	if got := w.read(configFile); strings.Count(got, blockBegin) != 1 || !strings.HasPrefix(got, blockBegin) {
		t.Errorf("file %q", got)
	}

	gitconfig := "[user]\n\tname = Home\n\temail = home@example.com\n[init]\n\tdefaultBranch = trunk\n"
	w.write(".gitconfig", gitconfig)
	w.boot()
	want(t, "~/.gitconfig", w.read(".gitconfig"), gitconfig)
	want(t, "user.name", w.git("config", "user.name"), "Home")
	want(t, "init.defaultBranch", w.git("config", "init.defaultBranch"), "trunk")
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestB3WhatGitWroteIntoTheBlockIsKept(t *testing.T) {
	w := newWorld(t)
	w.env["GIT_AUTHOR_NAME"] = "Ada"
	w.boot()
	w.git("config", "--global", "user.signingkey", "K1")
	w.git("config", "--global", "user.name", "Grace")
	w.git("config", "--global", "--add", "safe.directory", "/elsewhere")
	w.git("config", "--global", "alias.st", "status")
	w.write(configFile, strings.Replace(w.read(configFile), blockEnd, "# a note\n"+blockEnd, 1))
	p := w.boot()
	contains(t, "warning", warnings(p), "lines inside agent-init's block are not its own and move below it")
	for key, value := range map[string]string{"user.signingkey": "K1", "user.name": "Grace", "safe.directory": "/elsewhere", "alias.st": "status"} {
		want(t, key, w.git("config", "--global", key), value)
	}
	contains(t, "comment", w.read(configFile), "# a note\n")
	first := w.read(configFile)
	if p := w.boot(); len(p.Problems) > 0 || w.read(configFile) != first {
		t.Errorf("second boot: %v, %q became %q", p.Problems, first, w.read(configFile))
	}
}

func TestB3UnpairedMarkerRefuses(t *testing.T) {
	for content, place := range map[string]string{
		"[a]\n" + blockBegin + "\n[user]\n\tname = x\n[alias]\n\tst = status\n": ":2: the begin marker of the block has no end marker",
		"[a]\n\tb = c\n" + blockEnd + "\n":                                      ":3: the end marker of the block has no begin marker",
		blockBegin + "\n" + blockBegin + "\n" + blockEnd + "\n":                 ":1: the begin marker of the block has no end marker",
	} {
		w := newWorld(t)
		w.write(configFile, content)
		p := New(w.in)
		contains(t, "error", errorsOf(p), place)
		for _, f := range p.Files {
			t.Errorf("%s would be written", f.Path)
		}
		w.env["GIT_CONFIG_GLOBAL"] = ""
		if p := New(w.in); p.Problems.Refuses() {
			t.Errorf("a file that git does not read refuses: %v", p.Problems)
		}
	}
}

func TestB3OnlyAnEmailAndNothing(t *testing.T) {
	w := newWorld(t)
	w.env["GIT_AUTHOR_EMAIL"] = "a@example.com"
	p := w.boot()
	want(t, "user.email", w.git("config", "--global", "user.email"), "a@example.com")
	want(t, "env", strings.Join(p.Env, " "), "GIT_COMMITTER_EMAIL=a@example.com")
	w = newWorld(t)
	p = w.boot()
	want(t, "settings", w.git("config", "--global", "--list"), "init.defaultbranch=main")
	want(t, "env", strings.Join(p.Env, " "), "")
}

func TestB3CommitterVariables(t *testing.T) {
	w := newWorld(t)
	w.env["GIT_AUTHOR_NAME"], w.env["GIT_AUTHOR_EMAIL"] = "Ada", ""
	w.env["GIT_COMMITTER_NAME"], w.env["GIT_COMMITTER_EMAIL"] = "", "c@example.com"
	w.boot()
	w.git("init", "-q", "repo")
	want(t, "commit", w.commit("repo"), "Ada <agent@agentic.local> Ada <c@example.com>")

	w = newWorld(t)
	w.write(".gitconfig", "[user]\n\temail = mine@example.com\n[committer]\n\tname = Bot\n")
	w.env["GIT_AUTHOR_NAME"] = "Ada"
	w.boot()
	w.git("init", "-q", "repo")
	want(t, "commit", w.commit("repo"), "Ada <mine@example.com> Bot <mine@example.com>")

	w = newWorld(t)
	w.env["GIT_AUTHOR_NAME"] = ""
	p := w.boot()
	contains(t, "warning", warnings(p), "GIT_AUTHOR_NAME: it is set but empty")
	w.git("init", "-q", "repo")
	if out, err := w.try("", "-C", "repo", "-c", "user.name=x", "commit", "-q", "--allow-empty", "-m", "x"); err == nil {
		t.Errorf("git commits with an empty name after all: %s", out)
	}
}

// obstacles are worlds in which the file cannot be written or is not read.
func obstacles(t *testing.T) map[string]func(*world) {
	all := map[string]func(*world){
		"GIT_CONFIG_GLOBAL is set": func(w *world) { w.env["GIT_CONFIG_GLOBAL"] = w.write("mine", "") },
		"HOME is not set":          func(w *world) { delete(w.env, "HOME"); w.in.Home = "" },
		"is not a directory":       func(w *world) { w.write(".config", "") },
		"is not a regular file":    func(w *world) { w.mkdir(filepath.Join(w.home, configFile)) },
		"is not absolute":          func(w *world) { w.env["XDG_CONFIG_HOME"] = "relative" },
		"is a symlink to nothing":  func(w *world) { w.must(os.Symlink("gone", filepath.Join(w.home, ".config"))) },
		"symbolic links":           func(w *world) { w.must(os.Symlink(".config", filepath.Join(w.home, ".config"))) },
		"more than the limit":      func(w *world) { w.write(configFile, strings.Repeat("#", 1<<20+1)) },
	}
	if os.Getuid() == 0 {
		all["it is a mount point"] = func(w *world) {
			w.bind(w.write(filepath.Join(w.dir, "src"), "[user]\n\tsigningkey = K\n"), w.write(configFile, ""))
		}
		all["is on a read-only file system"] = func(w *world) { w.readOnly(w.home) }
		all["is on a read-only file system "] = func(w *world) {
			w.readOnly(w.mkdir(filepath.Join(w.dir, "ro")))
			w.in.Home = filepath.Join(w.dir, "ro", "sub", "home")
			w.env["HOME"] = w.in.Home
		}
	}
	return all
}

func (w *world) bind(from, to string) {
	w.t.Helper()
	w.must(unix.Mount(from, to, "", unix.MS_BIND, ""))
	w.t.Cleanup(func() { unix.Unmount(to, unix.MNT_DETACH) })
}

func (w *world) readOnly(dir string) {
	w.bind(dir, dir)
	w.must(unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
}

func TestB3SettingsInTheEnvironment(t *testing.T) {
	needRoot(t)
	for why, prepare := range obstacles(t) {
		t.Run(strings.ReplaceAll(why, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			w.env["GIT_AUTHOR_NAME"] = "Ada\"\n#; "
			w.env["GIT_CONFIG_COUNT"], w.env["GIT_CONFIG_KEY_0"], w.env["GIT_CONFIG_VALUE_0"] = "1", "x.y", "z"
			w.in.SafeDirs = []string{"/some dir"}
			prepare(w)
			p := w.boot()
			contains(t, "warning", warnings(p), strings.TrimSpace(why))
			if len(p.Files) > 0 || p.ConfigFile != "" {
				t.Errorf("files %v", p.Files)
			}
			for key, value := range map[string]string{"user.name": w.env["GIT_AUTHOR_NAME"], "user.email": defaultEmail, "init.defaultBranch": "main", "safe.directory": "/some dir", "x.y": "z"} {
				got, err := w.try("", "config", "-z", key)
				if err != nil && (why == "is not a regular file" || why == "symbolic links") {
					continue // git itself fails on such a file
				}
				want(t, key, got, value+"\x00")
			}
		})
	}
}

func TestB3UnwritableForThisUser(t *testing.T) {
	needRoot(t)
	w := newWorld(t)
	w.env["GIT_AUTHOR_NAME"] = "Ada"
	var p Plan
	asUID(t, 1000, func() { p = New(w.in) })
	contains(t, "warning", warnings(p), "no files can be made in "+w.home)
	w.must(os.Chmod(w.write(configFile, "[user]\n"), 0))
	w.must(os.Chown(filepath.Join(w.home, ".config/git"), 1000, 1000))
	asUID(t, 1000, func() { p = New(w.in) })
	contains(t, "warning", warnings(p), "permission denied")
	if len(p.Files) > 0 || len(p.Env) == 0 {
		t.Errorf("plan %+v", p)
	}
}

func TestB3UserWinsInTheEnvironmentToo(t *testing.T) {
	w := newWorld(t)
	w.env["GIT_AUTHOR_EMAIL"] = "ada@example.com"
	w.env["GIT_AUTHOR_NAME"] = "Ada"
	w.write(".config/git/config", "[init]\n\tdefaultbranch = trunk\n")
	w.write(".gitconfig", "[USER]\n\tName = \"Ho\\\nme\" ; mine\n")
	w.env["GIT_CONFIG_COUNT"], w.env["GIT_CONFIG_KEY_0"], w.env["GIT_CONFIG_VALUE_0"] = "1", "User.eMail", "env@example.com"
	file := New(w.in)
	w.adopt(file.EnvironFallback())
	want(t, "user.name", w.git("config", "user.name"), "Home")
	want(t, "user.email", w.git("config", "user.email"), "env@example.com")
	want(t, "branch", w.git("config", "init.defaultBranch"), "trunk")
	want(t, "count", w.env["GIT_CONFIG_COUNT"], "1")

	w.env["GIT_CONFIG_GLOBAL"] = w.write("mine", "[user]\n\tname = Global\n")
	p := w.boot()
	want(t, "user.name", w.git("config", "user.name"), "Global")
	want(t, "branch", w.git("config", "init.defaultBranch"), "main")
	count := w.env["GIT_CONFIG_COUNT"]
	want(t, "count", count, "2")
	if p = w.boot(); w.env["GIT_CONFIG_COUNT"] != count {
		t.Errorf("the second boot counts %s: %q", w.env["GIT_CONFIG_COUNT"], p.Env)
	}
}

func TestB3FallbackWhenWritingFails(t *testing.T) {
	w := newWorld(t)
	w.env["GIT_AUTHOR_NAME"] = "Ada"
	w.in.SafeDirs = []string{"/a", "/b"}
	p := New(w.in)
	want(t, "file", p.ConfigFile, filepath.Join(w.home, configFile))
	w.adopt(p.EnvironFallback())
	want(t, "user.name", w.git("config", "user.name"), "Ada")
	want(t, "safe.directory", w.git("config", "--get-all", "safe.directory"), "/a\n/b")
	want(t, "committer", w.env["GIT_COMMITTER_NAME"], "Ada")
}

func TestB3UnusableCountIsAnError(t *testing.T) {
	for _, env := range []map[string]string{
		{"GIT_CONFIG_COUNT": "x"}, {"GIT_CONFIG_COUNT": "-1"}, {"GIT_CONFIG_COUNT": "2147483648"}, {"GIT_CONFIG_COUNT": "1"},
		{"GIT_CONFIG_COUNT": "2147483647", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": ""},
		{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b"},
	} {
		w := newWorld(t)
		for k, v := range env {
			w.env[k] = v
		}
		if out, err := w.try("", "config", "--list"); err == nil && env["GIT_CONFIG_COUNT"] != "-1" {
			t.Errorf("git takes %v: %s", env, out)
		}
		contains(t, "error", errorsOf(New(w.in)), "cannot use GIT_CONFIG_COUNT: ")
	}
	w := newWorld(t)
	w.env["GIT_CONFIG_COUNT"] = ""
	w.boot()
	w.git("config", "--list")
}

func TestB3XDGAndLinks(t *testing.T) {
	w := newWorld(t)
	w.env["XDG_CONFIG_HOME"] = filepath.Join(w.dir, "x d g")
	w.env["GIT_AUTHOR_NAME"] = "Ada"
	target := w.write("dotfiles/config", "[alias]\n\tst = status\n")
	w.mkdir(filepath.Join(w.env["XDG_CONFIG_HOME"], "git"))
	link := filepath.Join(w.env["XDG_CONFIG_HOME"], "git", "config")
	w.must(os.Symlink(target, link))
	w.boot()
	want(t, "user.name", w.git("config", "--global", "user.name"), "Ada")
	contains(t, "target", w.read(target), "st = status")
	if info, _ := os.Lstat(link); info.Mode().Type() != os.ModeSymlink {
		t.Error("the link was replaced")
	}
}

func TestB3BrokenFileOfTheUsersIsNamed(t *testing.T) {
	w := newWorld(t)
	path := w.write(".gitconfig", "[user]\n\tname = \"open\n")
	contains(t, "warning", warnings(New(w.in)), path+`:2: a value's quotes are not closed`)
}

func TestB3NulIsAnError(t *testing.T) {
	w := newWorld(t)
	w.env["GIT_AUTHOR_NAME"] = "a\x00b"
	contains(t, "error", errorsOf(New(w.in)), "cannot use GIT_AUTHOR_NAME: it holds a NUL byte")
}

func TestB4ReposOfAnotherOwner(t *testing.T) {
	needRoot(t)
	for _, uid := range []uint32{0, 1000} {
		w := newWorld(t)
		w.env["GIT_AUTHOR_NAME"] = "Ada"
		w.in.SafeDirs = []string{"/"}
		names := []string{"plain", "with space", "new\nline", "quo\"te'", "ünï", "hash#;", "back\\slash", "trail ", "*", "[x]"}
		repos := w.mkdir(filepath.Join(w.dir, "repos"))
		w.must(os.Symlink(repos, filepath.Join(w.dir, "linked")))
		for _, name := range names {
			repo := filepath.Join(repos, name)
			w.git("init", "-q", repo)
			w.git("-C", repo, "-c", "user.name=x", "-c", "user.email=y", "commit", "-q", "--allow-empty", "-m", "x")
			w.in.SafeDirs = append(w.in.SafeDirs, filepath.Join(w.dir, "linked", name)+"/", repo)
		}
		w.uid = 12345
		w.chown(repos)
		w.uid = uid
		w.chown(w.home)
		if out, err := w.try("", "-C", filepath.Join(repos, "plain"), "log"); err == nil || !strings.Contains(out, "dubious ownership") {
			t.Fatalf("git trusts it anyhow: %s", out)
		}
		p := w.boot()
		seen := map[string]bool{}
		for _, s := range p.Settings {
			if s.Key == "safe.directory" {
				if seen[s.Value] {
					t.Errorf("%q twice", s.Value)
				}
				seen[s.Value] = true
			}
		}
		for i, name := range names {
			for _, dir := range []string{"repos", "linked"} {
				repo := filepath.Join(w.dir, dir, name)
				w.git("-C", repo, "log", "--oneline")
				w.git("clone", "-q", repo, filepath.Join(w.home, "clone", dir, string(rune('a'+i))))
			}
		}
	}
}

func TestB4RelativeDirectoryIsAWarning(t *testing.T) {
	w := newWorld(t)
	w.in.SafeDirs = []string{"repos", "*", "/a", "/a/"}
	p := w.boot()
	contains(t, "warning", warnings(p), "safe.directory *: the path is not absolute")
	want(t, "safe.directory", w.git("config", "--global", "--get-all", "safe.directory"), "/a")
}

func TestB3FifoDoesNotBlock(t *testing.T) {
	w := newWorld(t)
	w.mkdir(filepath.Join(w.home, ".config/git"))
	w.must(syscall.Mkfifo(filepath.Join(w.home, configFile), 0o600))
	contains(t, "warning", warnings(New(w.in)), "it is not a regular file")
}

func TestB4PathsAreResolvedAsByEvalSymlinks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"real/a", "real/b", "other/c"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"linked": "real", "real/up": "../other/c", "real/loop": "loop", "real/gone": "nothing", "chain": "linked/up"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	r := resolver{}
	paths := []string{"/", "/proc", "/nowhere"}
	for _, name := range []string{"", "real", "real/a", "linked", "linked/a", "linked/b", "linked/up", "linked/loop", "real/gone", "chain",
		"gone", "gone/x", "file", "file/x", "linked/none"} {
		paths = append(paths, filepath.Join(dir, name))
	}
	for _, path := range paths {
		want, err := filepath.EvalSymlinks(path)
		if got, ok := r.path(path); got != want || ok != (err == nil) {
			t.Errorf("%s: %q, %v; EvalSymlinks says %q, %v", path, got, ok, want, err)
		}
	}
}

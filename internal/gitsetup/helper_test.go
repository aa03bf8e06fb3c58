package gitsetup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// helperScript answers as agent-init git-credential does, and writes down what it
// was asked.
const helperScript = `#!/bin/sh
dir=$(dirname "$0")
printf '%s|' "$@" >> "$dir/asked"
[ "$3" = get ] || exit 0
while read -r line && [ "$line" ]; do case $line in host=*) host=${line#host=} ;; esac; done
printf 'username=x\npassword=token-of-%s\n' "$host"
`

// helperWorld has a program with an awkward path for a helper.
func helperWorld(t *testing.T) (w *world, program string) {
	w = newWorld(t)
	program = w.write(filepath.Join(w.dir, "it's a $dir \\ \"x\"", "agent-init"), helperScript)
	w.must(os.Chmod(program, 0o755))
	w.in.Credentials = Helper
	w.in.Helper = HelperCommand(program, "git-credential", "--control=/a b/control")
	w.in.Hosts = []Host{gitHub("ghp_1"), {"git.example.com:8443", "u", "GL", "glpat"}, {"[::1]:3000", "u", "V6", ""}, {"git.example.com:8443", "v", "GL2", "other"}}
	return w, program
}

func TestB5HelperIsAskedForItsHostsAlone(t *testing.T) {
	w, program := helperWorld(t)
	// A helper of the machine's, which would write down every token.
	system := w.write(filepath.Join(w.dir, "system"), "[credential]\n\thelper = store\n")
	w.env["GIT_CONFIG_SYSTEM"] = system
	delete(w.env, "GIT_CONFIG_NOSYSTEM")
	p := w.boot()
	want(t, "warnings", warnings(p), "no git credential for [::1]:3000: V6 has no value yet\n")
	for host, password := range map[string]string{
		"github.com": "token-of-github.com", "git.example.com:8443": "token-of-git.example.com:8443", "[::1]:3000": "token-of-[::1]:3000",
		"git.example.com": "", "gitlab.com": "", "github.com.example": "", "sub.github.com": "",
	} {
		want(t, host, w.fill("protocol=https\nhost="+host), password)
	}
	want(t, "http", w.fill("protocol=http\nhost=github.com"), "")
	want(t, "asked", w.read(filepath.Join(filepath.Dir(program), "asked")), strings.Repeat("git-credential|--control=/a b/control|get|", 3))
	w.must(os.Remove(filepath.Join(filepath.Dir(program), "asked")))

	for _, what := range []string{"approve", "reject"} {
		if out, err := w.try("protocol=https\nhost=github.com\nusername=x\npassword=ghp_1\n\n", "credential", what); err != nil {
			t.Error(out, err)
		}
	}
	contains(t, "asked", w.read(filepath.Join(filepath.Dir(program), "asked")), "|store|git-credential|--control=/a b/control|erase|")
	if _, err := os.Stat(filepath.Join(w.home, ".git-credentials")); err == nil {
		t.Error("the token is on disk:", w.read(".git-credentials"))
	}
	if _, err := os.Stat(filepath.Join(w.home, ".config/gh")); err == nil {
		t.Error("gh has a file")
	}
	for _, f := range p.Files {
		if strings.Contains(string(f.Data), "ghp_1") || strings.Contains(string(f.Data), "glpat") {
			t.Errorf("%s has a token", f.Path)
		}
	}
	if n := w.apply(New(w.in)); n != 0 {
		t.Errorf("the second boot changed %d files", n)
	}
}

func TestB5HelperInTheEnvironment(t *testing.T) {
	w, _ := helperWorld(t)
	w.write(".gitconfig", "[credential]\n\thelper = store\n")
	global := w.write("global", "[credential]\n\thelper = store\n")
	w.env["GIT_CONFIG_GLOBAL"] = global
	w.boot()
	want(t, "github.com", w.fill("protocol=https\nhost=github.com"), "token-of-github.com")
	if out, err := w.try("protocol=https\nhost=github.com\nusername=x\npassword=ghp_1\n\n", "credential", "approve"); err != nil {
		t.Error(out, err)
	}
	if _, err := os.Stat(filepath.Join(w.home, ".git-credentials")); err == nil {
		t.Error("the token is on disk:", w.read(".git-credentials"))
	}
}

func TestB5AUsersHelperIsAWarning(t *testing.T) {
	w, _ := helperWorld(t)
	w.write(".gitconfig", "[credential]\n\thelper = \"!f() { echo password=hunter22; }; f\"\n")
	p := w.boot()
	contains(t, "warnings", warnings(p), "it names a credential helper of your own")
	if strings.Contains(warnings(p), "hunter22") {
		t.Error(warnings(p))
	}
	want(t, "github.com", w.fill("protocol=https\nhost=github.com"), "token-of-github.com")
}

func TestB5HelperWithoutATokenLeavesGitHubAlone(t *testing.T) {
	w, _ := helperWorld(t)
	w.in.Hosts = []Host{gitHub("")}
	p := w.boot()
	want(t, "warnings", warnings(p), "")
	want(t, "settings", w.git("config", "--global", "--get-regexp", "."), "init.defaultbranch main")
	w.in.Hosts = []Host{gitHub("a\nb")}
	contains(t, "errors", errorsOf(New(w.in)), "cannot use GITHUB_TOKEN: the token holds a newline")
}

func TestB5FromStoreToHelperAndBack(t *testing.T) {
	w, _ := helperWorld(t)
	w.in.Hosts = w.in.Hosts[:1]
	w.in.Credentials = Store
	w.boot()
	w.in.Credentials = Helper
	w.boot()
	want(t, "github.com", w.fill("protocol=https\nhost=github.com"), "token-of-github.com")
	// git puts a setting of the user's into the section that is ours.
	w.git("config", "--global", "credential.https://github.com.username", "me")
	w.in.Credentials = Store
	w.boot()
	want(t, "settings", w.git("config", "--global", "--get-regexp", "^credential"), "credential.helper store\ncredential.https://github.com.username me")
}

func TestB5WhatGitAsks(t *testing.T) {
	q, err := ParseQuery([]byte("capability[]=authtype\nprotocol=https\nhost=github.com\nusername=a=b\npath=x\n\nhost=evil\n"))
	if err != nil || q != (Query{"https", "github.com", "a=b"}) {
		t.Error(q, err)
	}
	for _, bad := range []string{"protocol\n", strings.Repeat("a=b\n", QueryLimit/4+1)} {
		if q, err := ParseQuery([]byte(bad)); err == nil || q != (Query{}) {
			t.Error(q, err)
		}
	}
	h := gitHub("")
	for _, tt := range []struct {
		q    Query
		want bool
	}{
		{Query{"https", "github.com", ""}, true},
		{Query{"https", "GitHub.com:443", "x-access-token"}, true},
		{Query{"http", "github.com", ""}, false},
		{Query{"", "github.com", ""}, false},
		{Query{"https", "github.com", "alice"}, false},
		{Query{"https", "github.com:8443", ""}, false},
		{Query{"https", "agithub.com", ""}, false},
		{Query{"https", "", ""}, false},
	} {
		if h.Answers(tt.q) != tt.want {
			t.Error(tt)
		}
	}
}

func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"", "protocol=https\nhost=github.com\n\n", "a", "host=\x00\nusername==\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := ParseQuery(data)
		if strings.ContainsAny(q.Protocol+q.Host+q.User, "\n") || err != nil && q != (Query{}) {
			t.Errorf("%q, %v", q, err)
		}
	})
}

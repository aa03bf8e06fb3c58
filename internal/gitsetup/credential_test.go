package gitsetup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func gitHub(token string) Host {
	return Host{Name: "github.com", User: "x-access-token", Variable: "GITHUB_TOKEN", Token: token}
}

const oddToken = "t/o:k@e%n ä+&?#'\"~"

func TestB5StoreAnswersGit(t *testing.T) {
	for _, uid := range []uint32{uint32(os.Getuid()), 1000} {
		w := newWorld(t)
		if uid != w.uid {
			needRoot(t)
		}
		others := "https://me:mine@gitlab.com\r\nhttps://alice:secret@github.com\n# not a url\nhttps://u:p@other.example\nhttp://x-access-token:plain@github.com\nhttps://x-access-token:path@github.com/org"
		w.write(".git-credentials", "https://old:old@first.example\nhttps://x-access-token:stale@github.com\nhttps://x%2daccess-token:stale2@github.com/\n"+others)
		w.uid = uid
		w.chown(w.dir)
		w.in.Hosts = []Host{gitHub("ghp_1"), {"git.example.com:8443", "oauth 2", "GL", oddToken}, {"[::1]:3000", "u", "V6", "six"}}
		p := w.boot()
		if len(p.Problems) > 0 {
			t.Errorf("problems: %v", p.Problems)
		}
		file := w.read(".git-credentials")
		if !strings.HasSuffix(file, "@[::1]:3000\nhttps://old:old@first.example\n"+others) || strings.Contains(file, "stale") {
			t.Errorf("file %q", file)
		}
		if !strings.HasPrefix(file, "https://x-access-token:ghp_1@github.com\n") {
			t.Errorf("file %q", file)
		}
		for request, password := range map[string]string{
			"protocol=https\nhost=github.com":                         "ghp_1",
			"url=https://github.com/org/repo.git":                     "ghp_1",
			"protocol=https\nhost=github.com\nusername=alice":         "secret",
			"protocol=http\nhost=github.com\nusername=x-access-token": "plain",
			"protocol=https\nhost=git.example.com:8443":               oddToken,
			"protocol=https\nhost=git.example.com":                    "",
			"protocol=https\nhost=[::1]:3000":                         "six",
			"protocol=https\nhost=other.example":                      "p",
			"protocol=https\nhost=first.example":                      "old",
		} {
			want(t, request, w.fill(request), password)
		}
		for _, name := range []string{".git-credentials", ".config/gh/hosts.yml"} {
			info, err := os.Stat(filepath.Join(w.home, name))
			w.must(err)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", name, info.Mode())
			}
		}
		want(t, "helper", w.git("config", "--global", "--get-all", "credential.helper"), "store")
		if n := w.apply(New(w.in)); n != 0 {
			t.Errorf("the second boot changed %d files", n)
		}
		for _, s := range p.Settings {
			if strings.Contains(s.Value, "ghp_1") {
				t.Errorf("a token in setting %s", s.Key)
			}
		}
	}
}

func TestB5GitOwnUpdatesAreFollowed(t *testing.T) {
	w := newWorld(t)
	w.in.Hosts = []Host{gitHub("one")}
	w.boot()
	if _, err := w.try("protocol=https\nhost=other\nusername=u\npassword=p\n\n", "credential", "approve"); err != nil {
		t.Fatal(err)
	}
	w.in.Hosts[0].Token = "two"
	w.boot()
	want(t, "github.com", w.fill("protocol=https\nhost=github.com"), "two")
	want(t, "other", w.fill("protocol=https\nhost=other"), "p")
	if strings.Contains(w.read(".git-credentials"), "one") {
		t.Error("the old token is still there")
	}
}

func TestB5HomeNotWritable(t *testing.T) {
	needRoot(t)
	w := newWorld(t)
	w.readOnly(w.home)
	w.in.Hosts = []Host{gitHub("ghp_1"), {"h:1", "u", "V", oddToken}}
	p := w.boot()
	runtime := filepath.Join(w.in.RuntimeDir, "git-credentials")
	contains(t, "warning", warnings(p), "git credentials are stored in "+runtime+" instead of the home")
	contains(t, "warning", warnings(p), "no token for gh in ")
	want(t, "github.com", w.fill("protocol=https\nhost=github.com"), "ghp_1")
	want(t, "port", w.fill("protocol=https\nhost=h:1"), oddToken)
	if info, _ := os.Stat(runtime); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if len(p.Files) != 1 {
		t.Errorf("files %v", p.Files)
	}
	w.in.RuntimeDir = ""
	contains(t, "error", errorsOf(New(w.in)), "cannot store git credentials in "+w.home+"/.git-credentials: "+w.home+" is on a read-only file system, and there is no runtime directory (")
}

func TestB5MountedCredentialsAreLeftAlone(t *testing.T) {
	needRoot(t)
	w := newWorld(t)
	src := w.write(filepath.Join(w.dir, "src"), "https://u:p@other\n")
	w.bind(src, w.write(".git-credentials", ""))
	w.write(".gitconfig", "[credential]\n\thelper = store\n")
	w.in.Hosts = []Host{gitHub("ghp_1")}
	p := w.boot()
	contains(t, "warning", warnings(p), "it is a mount point")
	want(t, "source", w.read(src), "https://u:p@other\n")
	want(t, "github.com", w.fill("protocol=https\nhost=github.com"), "ghp_1")
	want(t, "other", w.fill("protocol=https\nhost=other"), "p")
	want(t, "file of settings", p.ConfigFile, filepath.Join(w.home, configFile))
}

func TestB5NoneTouchesNothing(t *testing.T) {
	w := newWorld(t)
	w.in.Credentials = None
	w.in.Hosts = []Host{gitHub("ghp_1"), {"h", "u", "V", "a\nb"}}
	w.write(".git-credentials", "https://x-access-token:old@github.com\n")
	w.write(".config/gh/hosts.yml", "github.com:\n  oauth_token: old\n")
	p := w.boot()
	if len(p.Files) != 1 || len(p.Problems) > 0 {
		t.Errorf("plan %+v", p)
	}
	want(t, "file", w.read(".git-credentials"), "https://x-access-token:old@github.com\n")
	if out, err := w.try("", "config", "credential.helper"); err == nil {
		t.Errorf("credential.helper is %s", out)
	}
}

func TestB5NoTokenNoFiles(t *testing.T) {
	w := newWorld(t)
	w.in.Hosts = []Host{gitHub(""), {"gitlab.example.com", "oauth2", "GITLAB_TOKEN", ""}}
	p := w.boot()
	if len(p.Files) != 1 {
		t.Errorf("files %v", p.Files)
	}
	want(t, "warning", warnings(p), "no git credential for gitlab.example.com: GITLAB_TOKEN has no value\n")
}

func TestB5BadTokenIsAnErrorWithoutItsValue(t *testing.T) {
	for _, token := range []string{"abc\ndef", "abcdef\n", "abc\x00def", "abc\rdef", "abc\x7fdef", "abc\xffdef", "\tabcdef"} {
		w := newWorld(t)
		w.in.Hosts = []Host{{"h", "u", "MY_TOKEN", token}}
		p := New(w.in)
		got := errorsOf(p)
		contains(t, "error", got, "cannot use MY_TOKEN: ")
		if strings.Contains(got, "abc") || strings.Contains(got, "def") {
			t.Errorf("the value shows: %s", got)
		}
		for _, f := range p.Files {
			t.Errorf("%s would be written", f.Path)
		}
	}
}

func TestB5SameHostAndUserTwice(t *testing.T) {
	w := newWorld(t)
	second := gitHub("ghp_2")
	second.Variable = "OTHER"
	w.in.Hosts = []Host{gitHub("ghp_1"), second, {"github.com", "bob", "BOB", "b"}}
	p := w.boot()
	contains(t, "warning", warnings(p), "OTHER is not used, as GITHUB_TOKEN comes before it")
	want(t, "file", w.read(".git-credentials"), "https://x-access-token:ghp_1@github.com\nhttps://bob:b@github.com\n")
}

func TestB5ParseHosts(t *testing.T) {
	hosts, p := ParseHosts(" gitlab.example.com=oauth2:GITLAB_TOKEN,host:8443=user@x:VAR\n[2001:db8::1]:1=u:_V1 ,")
	if p != nil {
		t.Fatal(p)
	}
	wanted := []Host{{"gitlab.example.com", "oauth2", "GITLAB_TOKEN", ""}, {"host:8443", "user@x", "VAR", ""}, {"[2001:db8::1]:1", "u", "_V1", ""}}
	if len(hosts) != len(wanted) {
		t.Fatalf("got %v", hosts)
	}
	for i := range hosts {
		if hosts[i] != wanted[i] {
			t.Errorf("got %v, want %v", hosts[i], wanted[i])
		}
	}
	if hosts, p := ParseHosts(" \n"); p != nil || len(hosts) > 0 {
		t.Errorf("blank: %v %v", hosts, p)
	}
}

func TestB5ParseHostsRefuses(t *testing.T) {
	const secret = "SECRETsecret"
	for in, why := range map[string]string{
		"gitlab.com":                   "entry 1: it has no =",
		"a=u:V," + secret:              "entry 2: it has no =",
		"a=" + secret:                  "entry 1: it has no :",
		"a=:V":                         "entry 1: it has no user",
		"a=u:":                         "entry 1: it has no variable",
		"a=u:" + secret + "-x":         "not the name of a variable",
		"a=u:" + secret + ":V":         "not the name of a variable",
		"a=u:1" + secret:               "not the name of a variable",
		"a=u:ghp_" + secret:            "looks like a token",
		"a=u:github_pat_" + secret:     "looks like a token",
		"a=u:" + secret + "0123456789": "looks like a token",
		"a=\x01:V":                     "characters that are not allowed",
		"https://a=u:V":                "the host is not a name",
		"a/b=u:V":                      "the host is not a name",
		"u@a=u:V":                      "the host is not a name",
		"=u:V":                         "the host is not a name",
		":80=u:V":                      "the host is not a name",
		"[::1=u:V":                     "the host is not a name",
		"[1.2.3.4]=u:V":                "the host is not a name",
		"[::1]80=u:V":                  "the host is not a name",
		"a:0=u:V":                      "the port is not",
		"a:65536=u:V":                  "the port is not",
		"a:=u:V":                       "the port is not",
		"a=u:V,a=u:W":                  "entry 2: the same host and user",
	} {
		_, p := ParseHosts(in)
		if p == nil {
			t.Errorf("%q is accepted", in)
			continue
		}
		contains(t, in, p.Text(), "cannot use AGENTIC_GIT_HOSTS: entry ")
		contains(t, in, p.Text(), why)
		contains(t, in, p.Hint, "HOST=USER:VARIABLE")
		if strings.Contains(p.Error(), secret) {
			t.Errorf("the value shows: %s", p.Error())
		}
	}
}

func FuzzParseHosts(f *testing.F) {
	for _, s := range []string{"a=b:C", "a:1=b:C,d=e:F", "[::1]:2=u:V", "=:", ",,", "a=b:ghp_x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hosts, p := ParseHosts(s)
		if p != nil {
			return
		}
		for _, h := range hosts {
			h.Token = "to ken"
			line := strings.TrimSuffix(string(credentialLines(nil, []Host{h})), "\n")
			user, host, ok := credentialOwner(line)
			if !ok || user != h.User || host != h.Name || strings.Contains(line, "\n") || !isVariable(h.Variable) {
				t.Fatalf("%q: %+v became %q: %q %q %v", s, h, line, user, host, ok)
			}
		}
	})
}

func FuzzCredentialLines(f *testing.F) {
	f.Add("https://a:b@c\nhttps://x-access-token:o@github.com")
	f.Add("https://x-access-token@github.com\n\r\n#")
	f.Add("https://%zz:b@github.com/?")
	f.Fuzz(func(t *testing.T, old string) {
		hosts := []Host{gitHub("t")}
		once := credentialLines([]byte(old), hosts)
		if twice := credentialLines(once, hosts); string(twice) != string(once) {
			t.Fatalf("once %q, twice %q", once, twice)
		}
		if !strings.Contains(old, "github.com") && !strings.Contains(old, "%") && string(once) != "https://x-access-token:t@github.com\n"+old {
			t.Fatalf("%q became %q", old, once)
		}
	})
}

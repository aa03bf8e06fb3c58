package gitsetup

import (
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestB5GHHostsKeepsWhatIsThere(t *testing.T) {
	tests := []struct{ name, old, want string }{
		{"absent", "", "github.com:\n    oauth_token: ghp_1\n    user: x-access-token\n    git_protocol: https\n"},
		{"null", "---\n", "github.com:\n    oauth_token: ghp_1\n    user: x-access-token\n    git_protocol: https\n"},
		{"other host and unknown keys", "# mine\nghe.example.com:\n    oauth_token: other # keep\ngithub.com:\n    user: me\n    editor: vim\n",
			"# mine\nghe.example.com:\n    oauth_token: other # keep\ngithub.com:\n    user: x-access-token\n    editor: vim\n    oauth_token: ghp_1\n    git_protocol: https\n"},
		{"null host", "github.com:\n", "github.com:\n    oauth_token: ghp_1\n    user: x-access-token\n    git_protocol: https\n"},
		{"up to date keeps its bytes", "github.com:   {oauth_token: ghp_1,   user: x-access-token, git_protocol: https}", "github.com:   {oauth_token: ghp_1,   user: x-access-token, git_protocol: https}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, why := ghHosts([]byte(tt.old), gitHub("ghp_1"))
			if why != "" {
				t.Fatal(why)
			}
			want(t, "file", string(got), tt.want)
			again, _ := ghHosts(got, gitHub("ghp_1"))
			want(t, "again", string(again), tt.want)
		})
	}
}

func TestB5GHTokensThatLookLikeOtherTypes(t *testing.T) {
	for _, token := range []string{"12345", "true", "null", "1e5", "~", "a: b", "- x", "# c", "'q'", `"d"`, "ä", " lead", "0x1f", "2026-01-01", strings.Repeat("long ", 60)} {
		data, why := ghHosts(nil, gitHub(token))
		if why != "" {
			t.Fatal(why)
		}
		var read map[string]map[string]any
		if err := yaml.Unmarshal(data, &read); err != nil || read["github.com"]["oauth_token"] != token {
			t.Errorf("%q came back as %v from %q: %v", token, read, data, err)
		}
	}
}

func TestB5GHMalformedIsLeftAloneWithAWarning(t *testing.T) {
	for _, old := range []string{"- a\n", "github.com: [x\n", "github.com: SECRET\n", "a\n", "github.com: {}\n---\nb: {}\n",
		"github.com: &g\n  user: x\nghe: *g\n", "github.com: {oauth_token: &t SECRET}\nghe: {oauth_token: *t}\n", "ghe: &g {}\ngithub.com: *g\n"} {
		w := newWorld(t)
		w.write(".config/gh/hosts.yml", old)
		w.in.Hosts = []Host{gitHub("ghp_1")}
		p := w.boot()
		contains(t, old, warnings(p), "no token for gh in "+w.home+"/.config/gh/hosts.yml: it ")
		if strings.Contains(warnings(p), "SECRET") {
			t.Errorf("a secret shows: %s", warnings(p))
		}
		want(t, "file", w.read(".config/gh/hosts.yml"), old)
		want(t, "git", w.fill("protocol=https\nhost=github.com"), "ghp_1")
	}
}

func TestB5GHDirectories(t *testing.T) {
	w := newWorld(t)
	w.in.Hosts = []Host{gitHub("ghp_1")}
	w.env["XDG_CONFIG_HOME"] = filepath.Join(w.dir, "xdg")
	w.boot()
	contains(t, "XDG_CONFIG_HOME", w.read(filepath.Join(w.dir, "xdg/gh/hosts.yml")), "ghp_1")
	w.env["GH_CONFIG_DIR"] = filepath.Join(w.dir, "gh dir")
	w.boot()
	contains(t, "GH_CONFIG_DIR", w.read(filepath.Join(w.dir, "gh dir/hosts.yml")), "ghp_1")
	w.in.Hosts = []Host{{"gitlab.com", "u", "V", "t"}}
	for _, f := range New(w.in).Files {
		if filepath.Base(f.Path) == "hosts.yml" {
			t.Error("hosts.yml is written without a token for github.com")
		}
	}
}

func FuzzGHHosts(f *testing.F) {
	for _, s := range []string{"", "github.com:\n  user: x\n", "a: &b {c: *b}", "? x\n: y\n", "github.com: {a: 1}\n# c", "- 1", "{}", "a:\n  - b\ngithub.com:"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, old []byte) {
		once, why := ghHosts(old, gitHub("ghp_1"))
		if why != "" {
			return
		}
		twice, why := ghHosts(once, gitHub("ghp_1"))
		if why != "" || string(twice) != string(once) {
			t.Fatalf("%q: once %q, twice %q %s", old, once, twice, why)
		}
	})
}

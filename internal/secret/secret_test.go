package secret

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// env is an environment for Sources.
type env map[string]string

func (e env) lookup(name string) (string, bool) {
	v, ok := e[name]
	return v, ok
}

func file(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestB1WhereAValueComesFrom(t *testing.T) {
	dir := t.TempDir()
	named := file(t, filepath.Join(dir, "named"), "from the named file\n")
	empty := file(t, filepath.Join(dir, "empty"), "\n")
	secrets := filepath.Join(dir, "secrets")
	inDir := file(t, filepath.Join(secrets, "X_TOKEN"), "from the directory\r\n")
	// As Kubernetes mounts them: a link to a link's directory.
	file(t, filepath.Join(secrets, "..2026", "K8S"), "two\n\n")
	os.Symlink("..2026", filepath.Join(secrets, "..data"))
	os.Symlink("..data/K8S", filepath.Join(secrets, "K8S"))
	file(t, filepath.Join(dir, "OUT"), "outside")

	tests := []struct {
		why  string
		name string
		env  env
		dir  string
		want Value
	}{
		{"environment first", "X_TOKEN", env{"X_TOKEN": "e\n", "X_TOKEN_FILE": named}, secrets, Value{"X_TOKEN", "e\n", Environment, ""}},
		{"then the named file", "X_TOKEN", env{"X_TOKEN": "", "X_TOKEN_FILE": named}, secrets, Value{"X_TOKEN", "from the named file", File, named}},
		{"then the directory", "X_TOKEN", env{"X_TOKEN_FILE": ""}, secrets, Value{"X_TOKEN", "from the directory", File, inDir}},
		{"an empty file was found", "X_TOKEN", env{"X_TOKEN_FILE": empty}, secrets, Value{"X_TOKEN", "", File, empty}},
		{"one newline is cut, links are followed", "K8S", nil, secrets, Value{"K8S", "two\n", File, filepath.Join(secrets, "K8S")}},
		{"nowhere", "NONE", nil, secrets, Value{Name: "NONE"}},
		{"no directory", "X_TOKEN", nil, filepath.Join(dir, "absent"), Value{Name: "X_TOKEN"}},
		{"the directory is a file", "X_TOKEN", nil, named, Value{Name: "X_TOKEN"}},
		{"directory not wanted", "X_TOKEN", nil, "", Value{Name: "X_TOKEN"}},
		{"a name that leads out", "../OUT", nil, secrets, Value{Name: "../OUT"}},
		{"a name that is a path", "..2026/K8S", nil, secrets, Value{Name: "..2026/K8S"}},
		{"no name", "", nil, secrets, Value{}},
		{"dot", "..", nil, secrets, Value{Name: ".."}},
	}
	for _, tt := range tests {
		got, p := Sources{Env: tt.env.lookup, Dir: tt.dir}.Lookup(tt.name)
		if p != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v; want %+v", tt.why, got, p, tt.want)
		}
	}
}

func TestB1AFileThatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	secrets := filepath.Join(dir, "secrets")
	file(t, filepath.Join(secrets, "NUL"), "secret-with\x00nul")
	file(t, filepath.Join(secrets, "LARGE"), strings.Repeat("x", textfile.Limit+1))
	os.Mkdir(filepath.Join(secrets, "DIRECTORY"), 0o755)
	os.Symlink("nothing", filepath.Join(secrets, "DANGLING"))
	os.Symlink("LOOP", filepath.Join(secrets, "LOOP"))
	absent := filepath.Join(dir, "absent")
	for name, why := range map[string]string{
		"NUL":       "it contains a NUL byte",
		"LARGE":     "more than the limit",
		"DIRECTORY": "not a regular file",
		"DANGLING":  "does not exist",
		"LOOP":      "symbolic links",
		"NAMED":     "does not exist",
	} {
		path := filepath.Join(secrets, name)
		if name == "NAMED" {
			path = absent
		}
		got, p := Sources{Env: env{"NAMED_FILE": absent}.lookup, Dir: secrets}.Lookup(name)
		switch {
		case p == nil:
			t.Errorf("%s: no problem, %+v", name, got)
		case p.Severity != problem.Error || p.File != path || !strings.HasPrefix(p.What, "cannot read variable "+name) ||
			!strings.Contains(p.Why, why) || p.Hint == "" || strings.Contains(p.Error(), "secret-with"):
			t.Errorf("%s: %s", name, p.Error())
		case got != (Value{Name: name}):
			t.Errorf("%s: a value beside the problem: %+v", name, got)
		}
	}
}

func TestB1CredentialsByName(t *testing.T) {
	for name, want := range map[string]bool{
		"GITHUB_TOKEN": true, "GH_TOKEN": true, "CLAUDE_CODE_OAUTH_TOKEN": true, "PGPASSWORD": true,
		"MY_KEY": true, "my_secret": true, "DB_PASSWORD": true,
		"TOKEN": false, "KEYBOARD": false, "GITHUB_TOKEN_FILE": false, "PATH": false, "": false,
	} {
		if IsCredential(name) != want {
			t.Errorf("IsCredential(%q) = %v", name, !want)
		}
	}
	for _, name := range Credentials {
		if !IsCredential(name) {
			t.Errorf("%s is not masked", name)
		}
	}
}

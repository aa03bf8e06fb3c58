package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"agent-init/internal/config"
	"agent-init/internal/githook"
	"agent-init/internal/tap"
)

// TestMain makes this binary agent-init itself when a script calls it so, or by
// one of its other names.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_AS_AGENT_INIT") == "1" {
		os.Unsetenv("RUN_AS_AGENT_INIT")
		main()
	}
	switch name := filepath.Base(os.Args[0]); {
	case name == tap.Name, name == tap.ExecName, name == tap.ShimName, githook.Known(name):
		main()
	}
	testscript.Main(m, map[string]func(){"agent-init": main})
}

// TestScripts runs the sessions in testdata/script, each in a home, a
// workspace and a runtime directory of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			for name, dir := range map[string]string{"HOME": "home", "AGENTIC_WORKSPACE_DIR": "ws", "AGENTIC_RUNTIME_DIR": "run"} {
				e.Setenv(name, filepath.Join(e.WorkDir, dir))
			}
			e.Setenv("AGENTIC_SECRETS_DIR", filepath.Join(e.WorkDir, "secrets"))
			e.Setenv("AGENTIC_SESSION_ID", "s1")
			if err := os.MkdirAll(filepath.Join(e.WorkDir, "secrets"), 0o755); err != nil {
				return err
			}
			return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": checkCode, "mode": checkMode},
	})
}

// checkCode is "code N PROGRAM [ARG...]": the program must exit with N. Its
// output is left for stdout and stderr.
func checkCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM [ARG...]")
	}
	script := `"$@"; code=$?; [ $code = ` + args[0] + ` ] || { echo "exit code $code, not ` + args[0] + `" >&2; exit 1; }`
	err := ts.Exec("sh", append([]string{"-c", script, "sh"}, args[1:]...)...)
	ts.Check(err)
}

// checkMode is "mode 0600 FILE...".
func checkMode(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args[1:] {
		info, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		if got := "0" + strings.TrimPrefix(info.Mode().Perm().String(), "-"); neg || octal(info.Mode().Perm()) != args[0] {
			ts.Fatalf("%s has mode %s (%s)", name, octal(info.Mode().Perm()), got)
		}
	}
}

func octal(m os.FileMode) string {
	const digits = "01234567"
	return "0" + string(digits[m>>6&7]) + string(digits[m>>3&7]) + string(digits[m&7])
}

var update = os.Getenv("UPDATE_DOCS") == "1"

// TestC1ConfigurationDocument keeps docs/configuration.md what the config
// struct says; UPDATE_DOCS=1 writes it.
func TestC1ConfigurationDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Configuration\n\nEvery setting is a variable; a flag of `agent-init run` overrides it. An empty variable counts as unset.\n`agent-init help config` prints the same.\n\n| variable | flag | type | default | meaning |\n|---|---|---|---|---|\n")
	cell := func(s string, code bool) string {
		s = strings.ReplaceAll(s, "|", `\|`)
		if code && s != "" {
			s = "`" + s + "`"
		}
		return s
	}
	for _, r := range config.Rows() {
		b.WriteString("| " + strings.Join([]string{cell(r.Variable, true), cell(r.Flag, true), cell(r.Type, false), cell(r.Default, true), cell(r.Meaning, false)}, " | ") + " |\n")
	}
	path := filepath.Join("..", "..", "docs", "configuration.md")
	if update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Error("docs/configuration.md is out of date; run this test with UPDATE_DOCS=1")
	}
}

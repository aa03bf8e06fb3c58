package tap

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the CLI was seen to start the tap with, and how.
func TestE3FormsOfCommands(t *testing.T) {
	const path = "/run/agentic/taps/run/agent-tap"
	cli := []string{"/opt/agentic/libexec/claude", "-p", "hi"}
	for name, c := range map[string]struct {
		caller
		want form
	}{
		"hook, dash stays":      {caller{argv: []string{path, "echo"}, env: environ{"CLAUDE_CODE_CHILD_SESSION=1"}, pid: 9, session: 8, parent: []string{"/bin/sh", "-c", path + " 'echo'"}}, hook},
		"hook, shell is gone":   {caller{argv: []string{path, "echo"}, pid: 9, session: 9, parent: cli}, hook},
		"hook of an older CLI":  {caller{argv: []string{path, "echo"}, pid: 9, session: 7, parent: []string{"/bin/sh", "-c", path + " 'echo'"}}, hook},
		"Bash tool":             {caller{argv: []string{path, "source x"}, env: environ{"CLAUDE_CODE_EXECPATH=/x", "CLAUDE_CODE_CHILD_SESSION=1"}, pid: 9, session: 9, parent: cli}, tool},
		"MCP server":            {caller{argv: []string{path, "server -x"}, pid: 9, session: 1, parent: cli}, server},
		"MCP server of PID 1":   {caller{argv: []string{path, "server -x"}, pid: 9, session: 8, parent: cli}, server},
		"hook in exec form":     {caller{argv: []string{path + "-exec", "server", "x"}, pid: 9, session: 9, parent: cli}, program},
		"exec form of one word": {caller{argv: []string{path + "-exec", "server"}, pid: 9, session: 9, parent: cli}, program},
	} {
		if got := c.form(); got != c.want {
			t.Errorf("%s: %d instead of %d", name, got, c.want)
		}
	}
}

func TestE3CommandsThatTakeTheTapsPlace(t *testing.T) {
	const path = "/run/agentic/taps/run/agent-tap"
	for name, c := range map[string]struct {
		kept string
		form form
		argv []string
		want []string
	}{
		"hook":                      {"", hook, []string{path, "echo 'a'"}, []string{"/bin/sh", "-c", "echo 'a'"}},
		"hook and prefix":           {"/p q", hook, []string{path, "echo 'a'"}, []string{"/bin/sh", "-c", `'/p q' 'echo '"'"'a'"'"''`}},
		"hook and prefix with arg":  {"/p -x -y", hook, []string{path, "a"}, []string{"/bin/sh", "-c", `'/p -x' -y 'a'`}},
		"server":                    {"", server, []string{path, `/bin/s -n 'x y' '' '$a' 'it'"'"'s' a=b`}, []string{"/bin/s", "-n", "x y", "", "$a", "it's", "a=b"}},
		"server and prefix":         {"/p", server, []string{path, "s -n"}, []string{"/p", "s -n"}},
		"server that needs a shell": {"", server, []string{path, "s $HOME"}, []string{"/bin/sh", "-c", "exec s $HOME"}},
		"program":                   {"/p", program, []string{path + "-exec", "a b", "$c"}, []string{"a b", "$c"}},
	} {
		got := caller{argv: c.argv, env: environ{KeptVariable + "=" + c.kept}}.command(c.form)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// FuzzWords has a shell split what words splits.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{`a b`, `'a b' c`, `'it'"'"'s'`, `a''b ""`, "a\n'b\nc'", `a=b 'c`, `"a`, `$x`, `a\b`, `"a\b"`, ` `, `'' ''`, "\t x\xff'\xfe'", `~`, `a#b`, `#a`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, ok := words(line)
		if !ok || strings.ContainsRune(line, 0) || len(line) > 1<<16 {
			return
		}
		out, err := exec.Command("/bin/sh", "-c", `printf '%s\0' `+strings.ReplaceAll(line, "\n", " ")).Output()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], "\n", " ")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, a shell has %q", line, got, want)
		}
	})
}

// FuzzQuoted checks that a shell gives back what quoted was given.
func FuzzQuoted(f *testing.F) {
	f.Add("it's $x \\ \"y\" \n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) || len(text) > 1<<16 {
			return
		}
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+quoted(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q: %q, %v", text, out, err)
		}
	})
}

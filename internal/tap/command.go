package tap

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// form is how the CLI started the tap, and so what the command is.
type form int

const (
	// hook is a hook's command line.
	hook form = iota
	// tool is a command line of the Bash tool.
	tool
	// server is an MCP server, which the CLI starts without a shell.
	server
	// program is a hook in exec form.
	program
)

// caller is what the tap can see of how it was started.
type caller struct {
	argv []string
	env  environ
	// session and pid are of this process, parent is its parent's arguments.
	session, pid int
	parent       []string
}

// observe looks at the parent only where nothing else tells a hook from a server:
// every hook waits for it.
func observe(argv, env []string) caller {
	session, _ := unix.Getsid(0)
	c := caller{argv: argv, env: env, session: session, pid: os.Getpid()}
	if c.form() == server {
		data, _ := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/cmdline")
		c.parent = strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
	}
	return c
}

// form tells the commands of Claude Code 2.1.197 apart. Its Bash tool alone sets
// CLAUDE_CODE_EXECPATH. Hooks and tools are marked as children of a session and
// begin sessions of the kernel's; an MCP server is neither.
func (c caller) form() form {
	switch {
	case filepath.Base(c.argv[0]) == ExecName:
		return program
	case c.env.get("CLAUDE_CODE_EXECPATH") != "":
		return tool
	case c.env.get("CLAUDE_CODE_CHILD_SESSION") != "", c.session == c.pid, c.calledByShell():
		return hook
	}
	return server
}

// calledByShell tells whether a shell that runs nothing else has called the tap.
func (c caller) calledByShell() bool {
	return len(c.parent) == 3 && c.parent[1] == "-c" && strings.Contains(c.parent[2], c.argv[0])
}

// hookShell is what the CLI runs every hook of shell form with, whatever the
// hook's own "shell" and the environment say (seen).
const hookShell = "/bin/sh"

// environ is an environment, of which getenv(3) sees the first of equal names.
type environ []string

func (e environ) get(name string) string {
	for _, entry := range e {
		if n, value, ok := strings.Cut(entry, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// with returns the environment with one variable set.
func (e environ) with(name, value string) environ {
	out := slices.DeleteFunc(slices.Clone(e), func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
	return append(out, name+"="+value)
}

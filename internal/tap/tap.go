// Package tap brings out what a hook writes to its standard error, which the
// agent CLI keeps to itself. The CLI starts the tap in place of each command
// (CLAUDE_CODE_SHELL_PREFIX). The tap hands agent-init a pipe, puts its other end
// on descriptor 2 and becomes the command by exec(2): a process in between would
// lose signals, outlive MCP servers and mix the order of output.
package tap

import (
	"path/filepath"
	"strings"

	"agent-init/internal/agent"
	"agent-init/internal/rundir"
)

// Names in a tap's directory. The tap finds the socket beside the name by which
// it was called, and nothing else has to reach it.
const (
	// Name is the tap's, which takes a command line for a shell.
	Name = "agent-tap"
	// ExecName is that of the tap for hooks in exec form: it takes a program and
	// its arguments.
	ExecName = "agent-tap-exec"

	socketName = "socket"
)

// PrefixVariable is what the CLI reads the prefix from.
const PrefixVariable = agent.PrefixVariable

// KeptVariable holds the prefix that the user has set; the tap calls it.
const KeptVariable = "AGENTIC_SHELL_PREFIX"

// Dir is the directory of one tap: each agent-init that supervises has its own.
func Dir(runtimeDir, name string) string { return filepath.Join(runtimeDir, rundir.Taps, name) }

// Prefix is what CLAUDE_CODE_SHELL_PREFIX is to be for the tap in a directory.
func Prefix(dir string) string { return filepath.Join(dir, Name) }

// Usable says why the CLI could not call a tap in a directory; it is empty where
// it can. The CLI takes what follows the last " -" for an argument (seen).
func Usable(dir string) (why string) {
	if strings.Contains(Prefix(dir), " -") {
		return "its path has a blank before a hyphen, where the agent CLI would cut it"
	}
	return ""
}

// Ours tells whether a prefix is a tap of a workspace's runtime directory.
func Ours(prefix, runtimeDir string) bool {
	return runtimeDir != "" && filepath.Base(prefix) == Name && filepath.Dir(filepath.Dir(prefix)) == filepath.Join(runtimeDir, rundir.Taps)
}

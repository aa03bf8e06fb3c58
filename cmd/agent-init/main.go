// Agent-init is the PID 1 of containers that run coding agents: it prepares
// the workspace from the environment, starts the agent with its plugins and
// MCP servers, and supervises it.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"agent-init/internal/githook"
	"agent-init/internal/tap"
)

// Exit codes of agent-init's own, after sysexits.h; the agent's code and
// 128+N, 126 and 127 come from supervise.
const (
	exitOK      = 0
	exitUsage   = 64
	exitFault   = 70
	exitRefused = 78
)

// version is set at link time.
var version = "dev"

// command is a subcommand; it returns the exit code.
type command func(args []string) int

func commands() map[string]command {
	return map[string]command{
		"run":            runCommand,
		"exec":           execCommand,
		"plan":           planCommand,
		"repos":          reposCommand,
		"events":         eventsCommand,
		"emit":           emitCommand,
		"status":         statusCommand,
		"health":         healthCommand,
		"secrets":        secretsCommand,
		"git-credential": gitCredentialCommand,
		"version":        versionCommand,
		"help":           helpCommand,
	}
}

func main() {
	switch name := filepath.Base(os.Args[0]); {
	case name == tap.Name || name == tap.ExecName:
		os.Exit(tap.Exec(os.Args, os.Environ()))
	case name == tap.ShimName:
		os.Exit(shim(os.Args))
	case githook.Known(name):
		os.Exit(githook.Dispatch(os.Args, os.Environ()))
	}
	os.Exit(dispatch(os.Args[1:]))
}

// dispatch finds the subcommand; a first word that is none starts it as the
// agent's command.
func dispatch(args []string) int {
	if len(args) == 0 {
		return usageError("no command to run")
	}
	switch args[0] {
	case "-h", "--help":
		return helpCommand(args[1:])
	case "-V", "--version":
		return versionCommand(nil)
	}
	if do, ok := commands()[args[0]]; ok {
		return do(args[1:])
	}
	return runCommand(args)
}

func versionCommand([]string) int {
	return printed(fmt.Sprintf("agent-init %s\n", version))
}

// printed writes what a subcommand was asked for to stdout.
func printed(text string) int {
	if _, err := io.WriteString(os.Stdout, text); err != nil {
		fmt.Fprintf(os.Stderr, "agent-init: cannot write to stdout: %v\n", err)
		return exitFault
	}
	return exitOK
}

// usageError says what is wrong with a command line, on stderr.
func usageError(format string, args ...any) int {
	text := strings.TrimSuffix(fmt.Sprintf(format, args...), "\n")
	fmt.Fprintf(os.Stderr, "agent-init: %s\nTry 'agent-init help'.\n", text)
	return exitUsage
}

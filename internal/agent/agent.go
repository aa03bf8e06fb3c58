// Package agent knows how an agent CLI takes plugins and MCP servers.
package agent

import (
	"path/filepath"
	"slices"
	"strings"
)

// Kind is the way in which a CLI takes them.
type Kind int

const (
	// None is any command: nothing is inserted.
	None Kind = iota
	// Claude is Claude Code.
	Claude
)

// String is the name that settings and reports use.
func (k Kind) String() string {
	if k == Claude {
		return "claude"
	}
	return "none"
}

// Choose returns the kind that a setting ("auto", "claude" or "none") asks for,
// given the first word of the command.
func Choose(setting, program string) Kind {
	if setting == "claude" || setting == "auto" && filepath.Base(program) == "claude" {
		return Claude
	}
	return None
}

// Offer is what boot has for the agent.
type Offer struct {
	// PluginDirs are the directories of the plugins, in order.
	PluginDirs []string
	// MCPConfig is the path of the merged MCP config; empty when it holds no
	// server.
	MCPConfig string
	// MCPStrict keeps the CLI from using any other MCP server.
	MCPStrict bool
}

// Flags are the arguments that hand the offer to the CLI.
func (k Kind) Flags(o Offer) []string {
	if k != Claude {
		return nil
	}
	var flags []string
	for _, dir := range o.PluginDirs {
		flags = append(flags, "--plugin-dir="+dir)
	}
	// --mcp-config takes several values, so that without "=" it would swallow
	// the prompt.
	if o.MCPConfig != "" {
		flags = append(flags, "--mcp-config="+o.MCPConfig)
	}
	if o.MCPStrict {
		flags = append(flags, "--strict-mcp-config")
	}
	return flags
}

// Insert puts the flags right after the program's name, where they hold for
// the CLI's subcommands too and are never taken for a part of the prompt. A
// flag that already stands before "--" is not inserted again.
func Insert(argv, flags []string) []string {
	if len(argv) == 0 || len(flags) == 0 {
		return argv
	}
	own := argv[1:]
	if i := slices.Index(own, "--"); i >= 0 {
		own = own[:i]
	}
	out := make([]string, 0, len(argv)+len(flags))
	out = append(out, argv[0])
	for _, flag := range flags {
		if !given(own, flag) {
			out = append(out, flag)
		}
	}
	return append(out, argv[1:]...)
}

// given tells whether a flag stands in args, as --name=value or --name value.
func given(args []string, flag string) bool {
	if slices.Contains(args, flag) {
		return true
	}
	name, value, ok := strings.Cut(flag, "=")
	if !ok {
		return false
	}
	for i, a := range args[:max(len(args)-1, 0)] {
		if a == name && args[i+1] == value {
			return true
		}
	}
	return false
}

// Quote joins arguments into a text that a POSIX shell splits into the same
// ones.
func Quote(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = quote(a)
	}
	return strings.Join(quoted, " ")
}

func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=/.:,@%+", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

package mcp

import (
	"fmt"
	"slices"
	"strings"

	"agent-init/internal/jsondoc"
)

// ownVariables are set by Claude Code itself.
var ownVariables = []string{"CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_PROJECT_DIR"}

// checkVariables warns about each ${NAME} of the entry that has no default and
// whose variable is unset: Claude Code then passes the reference on as it
// stands. It expands command, args and env, or url and headers, and nothing
// else.
func (e entry) checkVariables(env func(string) (string, bool)) {
	if env == nil {
		return
	}
	var seen map[string]bool
	for _, m := range e.value.Members {
		expanded := m.Name == "url" || m.Name == "headers"
		if e.Type == "stdio" {
			expanded = m.Name == "command" || m.Name == "args" || m.Name == "env"
		}
		if !expanded {
			continue
		}
		eachText(m.Value, func(v jsondoc.Value) {
			for _, name := range references(v.Text) {
				if seen[name] || slices.Contains(ownVariables, name) {
					continue
				}
				if seen == nil {
					seen = map[string]bool{}
				}
				seen[name] = true
				if _, set := env(name); !set {
					e.warn(v.Start, fmt.Sprintf("server %q uses ${%s}, which is not set", e.Name, name),
						"set it, or write ${"+name+":-default}")
				}
			}
		})
	}
}

func eachText(v jsondoc.Value, visit func(jsondoc.Value)) {
	if v.Kind == '"' {
		visit(v)
	}
	for _, e := range v.Elements {
		eachText(e, visit)
	}
	for _, m := range v.Members {
		eachText(m.Value, visit)
	}
}

// references are the names in s of the form ${NAME}, those with a default not
// among them.
func references(s string) (names []string) {
	for {
		_, rest, ok := strings.Cut(s, "${")
		if !ok {
			return names
		}
		n := 0
		for n < len(rest) && (rest[n] == '_' || rest[n]|0x20 >= 'a' && rest[n]|0x20 <= 'z' || n > 0 && rest[n] >= '0' && rest[n] <= '9') {
			n++
		}
		if n > 0 && n < len(rest) && rest[n] == '}' {
			names = append(names, rest[:n])
		}
		s = rest[n:]
	}
}

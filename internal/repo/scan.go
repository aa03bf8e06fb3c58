package repo

import "agent-init/internal/problem"

// Scan reads the repos below dir, their MCP configs included, and reports every
// fault in them.
func Scan(dir string, opts Options) (Map, problem.List) { return Map{}, nil }

package gitsetup

import "agent-init/internal/problem"

// ParseHosts parses AGENTIC_GIT_HOSTS.
func ParseHosts(s string) ([]Host, *problem.Problem) { return nil, nil }

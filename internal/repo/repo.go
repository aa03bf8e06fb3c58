// Package repo finds the repos that the operator mounted and reads what they
// declare about themselves: the repo map.
package repo

import (
	"agent-init/internal/mcp"
)

// Where a repo's description comes from.
const (
	// Manifest repos have a CLAUDE-OPS.md or something in .claude-ops.
	Manifest = "manifest"
	// Inferred repos have neither.
	Inferred = "inferred"
)

// MaxFiles is how many top-level files a Repo lists; what comes after them in
// byte order is left out.
const MaxFiles = 100

// Options steer a scan.
type Options struct {
	// Skip leaves out what cannot be used instead of refusing boot.
	Skip bool
}

// Map is the repos of a directory, in byte order of their names.
type Map struct {
	Repos []Repo
}

// Repo is one mounted repo.
type Repo struct {
	// Name is that of the directory.
	Name, Path string
	// Source is Manifest or Inferred.
	Source string
	// Version is the manifest's, as written; empty when it states none.
	Version                  string
	Title, Description, Kind string
	Capabilities             []Capability
	Rules                    []string
	Checks                   []Document
	Playbooks                []Document
	Skills                   []Document
	// MCPServers are the names in the repo's MCP config, in its order, before
	// any of them is renamed, denied or overridden.
	MCPServers []string
	// Files are top-level names in byte order, a directory's with a slash, .git
	// left out, at most MaxFiles. They, and the title and the description of the
	// README, stand in for a CLAUDE-OPS.md that is not there.
	Files []string
	// Writable says that this process may write to the repo.
	Writable bool
	// MCP is the repo's MCP config; its document is nil when there is none or
	// it cannot be read.
	MCP mcp.File
}

// Capability is one entry of a manifest's list.
type Capability struct {
	Name, Description string
}

// Document is a check, playbook or skill.
type Document struct {
	// Name is the file's, without .md.
	Name, Path string
	// Title is the first heading, Description the frontmatter's or the first
	// paragraph.
	Title, Description string
	// Requires names checks, playbooks, skills or capabilities of any repo,
	// RequiresMCP MCP servers.
	Requires, RequiresMCP []string

	requiresAt, requiresMCPAt []place
}

// place is a position in a file, counted from 1.
type place struct{ line, column int }

// MCPFiles are the MCP configs of the repos, in their order, as mcp.Merge takes
// them.
func (m Map) MCPFiles() []mcp.File {
	var files []mcp.File
	for _, r := range m.Repos {
		if r.MCP.Doc != nil {
			files = append(files, r.MCP)
		}
	}
	return files
}

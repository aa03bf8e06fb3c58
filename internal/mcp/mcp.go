// Package mcp merges the MCP configs of the baseline and of the repos into the
// one that the agent gets, checks every entry, and says whose server replaces
// whose.
//
// Claude Code drops an entry that it cannot use without a word. What it drops
// was observed with version 2.1.197; each such entry is an Error here.
package mcp

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// Collision says what happens when two files define one server.
type Collision int

const (
	// Override lets the later file replace the whole entry.
	Override Collision = iota
	// Namespace renames every repo server to REPO_NAME; what still collides is
	// overridden.
	Namespace
	// Error refuses boot.
	Error
)

var collisions = [...]string{Override: "override", Namespace: "namespace", Error: "error"}

// String is the name that settings use.
func (c Collision) String() string { return collisions[c] }

// ParseCollision reads the name that settings use; ok is false for any other.
func ParseCollision(name string) (c Collision, ok bool) {
	for i, n := range collisions {
		if n == name {
			return Collision(i), true
		}
	}
	return Override, false
}

// Options steer a merge.
type Options struct {
	Collision Collision
	// Allow and Deny are globs over the names of repo servers, as their files
	// have them, both sides normalised. An empty Allow takes every server; Deny
	// wins. A glob for which ValidGlob is false matches nothing.
	Allow, Deny []string
	// Env looks up a variable of the agent's environment; nil leaves the
	// references unchecked.
	Env func(name string) (value string, ok bool)
	// Skip leaves a faulty repo out instead of refusing boot.
	Skip bool
}

// File is an MCP config and the name of the repo that it is from; an empty
// name is the baseline.
type File struct {
	Repo string
	Doc  *jsondoc.Document
}

// Result is a merged config.
type Result struct {
	// JSON is the merged file: two spaces of indent, a newline at the end,
	// strings and numbers as their files spell them.
	JSON []byte
	// Servers are those of JSON, in its order.
	Servers []Server
	// Left are the servers that were left out on purpose, in the order of the
	// files.
	Left []LeftOut
}

// Server is one server of a merged config.
type Server struct {
	// Name is the one that the agent sees.
	Name string
	// Type is stdio, http, sse or ws.
	Type string
	// File is where the entry is from, Repo the name of its repo; the
	// baseline's is empty.
	File, Repo string
	// Overrode are the entries that this one replaced, the first one first.
	Overrode []Overridden
}

// Overridden is an entry that another one replaced.
type Overridden struct {
	File, Repo, Name string
}

// LeftOut is a server that did not get into a merged config.
type LeftOut struct {
	Name, File, Reason string
}

// Normalise is a server name as Claude Code spells it in tool names; two
// servers with equal spellings hide each other's tools. Every UTF-16 code unit
// outside A-Za-z0-9_- becomes "_".
func Normalise(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case plain(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	if !strings.HasPrefix(name, "claude.ai ") {
		return b.String()
	}
	// The names of claude.ai connectors are squeezed too.
	return strings.Join(strings.FieldsFunc(b.String(), func(r rune) bool { return r == '_' }), "_")
}

func plain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// ValidGlob tells whether a glob over server names is well-formed, by the
// rules of path.Match.
func ValidGlob(glob string) bool {
	_, err := path.Match(glob, "")
	return err == nil
}

// matches tells whether a glob covers a server name. Both are normalised, so
// that a glob for "a.b" also covers "a_b", which is the same server to the
// agent.
func matches(globs []string, name string) bool {
	name = Normalise(name)
	for _, g := range globs {
		if ok, err := path.Match(normaliseGlob(g), name); ok && err == nil {
			return true
		}
	}
	return false
}

// normaliseGlob normalises what stands for itself in a glob.
func normaliseGlob(glob string) string {
	var b strings.Builder
	escaped := false
	for _, r := range glob {
		switch {
		case !escaped && r == '\\':
			escaped = true
			continue
		case plain(r), !escaped && strings.ContainsRune("*?[]^", r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
		escaped = false
	}
	return b.String()
}

// Read reads an MCP config; what names it in messages: "MCP baseline". A file
// that does not exist is neither a document nor a problem, a dangling symlink
// is an Error.
func Read(file, what string) (*jsondoc.Document, *problem.Problem) {
	data, err := textfile.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, absent := os.Lstat(file); absent != nil {
			return nil, nil
		}
	}
	return parse(file, what, data, err)
}

// ReadIn is Read for a path below root; a symlink that leads out of root is an
// Error.
func ReadIn(root *textfile.Root, name, what string) (*jsondoc.Document, *problem.Problem) {
	data, err := root.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		if !root.Exists(name) {
			return nil, nil
		}
	}
	return parse(filepath.Join(root.Name(), name), what, data, err)
}

func parse(file, what string, data []byte, err error) (*jsondoc.Document, *problem.Problem) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &problem.Problem{What: "cannot read " + what, File: file, Why: "it is a symlink to nothing", Hint: "mend the symlink or remove it"}
	}
	if err != nil {
		return nil, &problem.Problem{What: "cannot read " + what, File: file, Why: textfile.Reason(err)}
	}
	return jsondoc.Parse(what, file, data)
}

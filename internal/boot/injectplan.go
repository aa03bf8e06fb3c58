package boot

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"agent-init/internal/atomicfile"
	"agent-init/internal/event"
	"agent-init/internal/injection"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// CopyState is what becomes of the place to which a file is copied.
type CopyState int

const (
	// Created says that nothing was there.
	Created CopyState = iota
	// Unchanged says that the same content was there.
	Unchanged
	// Replaced says that another content was there.
	Replaced
)

var copyStates = [...]string{Created: "created", Unchanged: "unchanged", Replaced: "replaced"}

func (s CopyState) String() string { return copyStates[s] }

// Copy is a file that the operator has injected into the workspace or the home.
type Copy struct {
	From, To string
	State    CopyState
}

// readInjection reads what the operator has mounted.
func (p *Plan) readInjection() {
	var found problem.List
	p.Injection, found = injection.Read(injection.Dir, injection.Options{
		Context: p.Config.WorkspaceContext, Plugins: p.Config.WorkspacePlugins, Agents: p.Config.WorkspaceAgents,
	})
	p.Problems.Add(found...)
}

// planCopies puts what was injected where Claude Code looks for it.
func (p *Plan) planCopies() {
	if f := p.Injection.Context; f != nil {
		p.copyFile(*f, absolute(p.Config.WorkspaceDir))
	}
	if len(p.Injection.Agents) == 0 {
		return
	}
	home := p.claudeHome()
	if home == "" {
		p.Problems.Add(problem.Problem{What: "cannot inject agents", Why: "HOME is not set", Hint: "set HOME or CLAUDE_CONFIG_DIR"})
		return
	}
	for _, f := range p.Injection.Agents {
		p.copyFile(f, filepath.Join(home, "agents"))
	}
}

// copyFile plans a file in a directory. Somebody else's file there is not lost
// without a word.
func (p *Plan) copyFile(f injection.File, dir string) {
	c := Copy{From: f.Path, To: filepath.Join(dir, f.Name)}
	refuse := func(why, hint string) {
		p.Problems.Add(problem.Problem{What: "cannot copy " + problem.Path(f.Path), File: c.To, Why: why, Hint: hint})
	}
	const hint = "move it away, or set AGENTIC_WORKSPACE_CONTEXT_REPLACE=1"
	info, absent := os.Lstat(c.To)
	there, err := textfile.Read(c.To)
	was, ours := p.copied[c.To]
	switch {
	case absent != nil && (errors.Is(absent, fs.ErrNotExist)):
	case absent != nil:
		refuse(textfile.Reason(absent), "")
		return
	case err == nil && bytes.Equal(there, f.Data):
		c.State = Unchanged
		p.Copies, p.copied[c.To] = append(p.Copies, c), f.Data
		return
	case err == nil && ours && bytes.Equal(there, was):
		c.State = Replaced
	case info.IsDir():
		refuse("a directory is there", "move it away")
		return
	case !p.Config.WorkspaceContextReplace.On && err != nil:
		refuse("another file is there: "+textfile.Reason(err), hint)
		return
	case !p.Config.WorkspaceContextReplace.On:
		refuse("a different file is there", hint)
		return
	default:
		c.State = Replaced
	}
	if obstacle := atomicfile.Obstacle(c.To); obstacle != "" {
		refuse(obstacle, "mount it writable")
		return
	}
	p.Copies, p.copied[c.To] = append(p.Copies, c), f.Data
	p.Files = append(p.Files, atomicfile.File{Path: c.To, Data: f.Data, Mode: 0o600, DirMode: 0o700, Durable: true})
}

// claudeHome is the directory of Claude Code's own configuration; empty without
// a home.
func (p *Plan) claudeHome() string {
	if dir := p.environ.get("CLAUDE_CONFIG_DIR"); dir != "" {
		return absolute(dir)
	}
	home := p.environ.get("HOME")
	if home == "" {
		return ""
	}
	return filepath.Join(absolute(home), ".claude")
}

func reportCopy(c Copy) []event.Member {
	return []event.Member{event.String("from", c.From), event.String("to", c.To), event.String("state", c.State.String())}
}

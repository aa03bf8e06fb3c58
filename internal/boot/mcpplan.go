package boot

import (
	"bytes"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"

	"agent-init/internal/atomicfile"
	"agent-init/internal/jsondoc"
	"agent-init/internal/mcp"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/textfile"
)

// Names beside an explicit MCP_CONFIG.
const (
	// backupSuffix is the user's own file, from which every merge starts.
	backupSuffix = ".baseline"
	// markSuffix holds digests of what agent-init wrote, so that it knows its
	// own file from one that the user has put there since.
	markSuffix = ".agent-init"
)

// mergeMCP merges the baseline and the repos' MCP configs.
func (p *Plan) mergeMCP() {
	p.MCPPath = absolute(p.Config.MCPConfig)
	if p.MCPPath == "" && p.Runtime.Path != "" {
		p.MCPPath = p.Runtime.Join(rundir.MCP)
	}
	baseline := p.baseline()
	collision, _ := mcp.ParseCollision(p.Config.MCPCollision) // checked by oneof
	p.checkGlobs()
	var found problem.List
	p.MCP, found = mcp.Merge(baseline, p.Repos.MCPFiles(), mcp.Options{
		Collision: collision, Allow: p.Config.MCPAllow, Deny: p.Config.MCPDeny, Env: p.environ.lookup, Skip: p.skips(),
	})
	p.Problems.Add(found...)
	p.Problems.Add(p.Repos.CheckRequirements(p.serverNames())...)
	switch {
	case p.MCPPath == "" && len(p.MCP.Servers) > 0:
		p.Problems.Add(problem.Problem{What: "cannot hand over the MCP servers", Why: "no directory is writable for the merged config",
			Hint: "mount a tmpfs on /tmp or /run, or set AGENTIC_RUNTIME_DIR"})
	case p.MCPPath == "":
		p.Problems.Add(problem.Problem{Severity: problem.Warning, What: "no runtime directory", Why: "neither " + rundir.Preferred + " nor a directory in /tmp is writable; there is no boot report and no event journal, and the events of the agent's hooks are not collected",
			Hint: "mount a tmpfs on /tmp or /run, or set AGENTIC_RUNTIME_DIR"})
	case p.Config.MCPConfig != "":
		p.planMark()
		p.Files = append(p.Files, p.configFile(p.MCPPath, p.MCP.JSON))
	case len(p.MCP.Servers) > 0 || baseline != nil:
		p.Files = append(p.Files, p.configFile(p.MCPPath, p.MCP.JSON))
	}
}

func (p *Plan) serverNames() (names []string) {
	for _, s := range p.MCP.Servers {
		names = append(names, s.Name)
	}
	return names
}

// configFile may hold secrets in the env of a server. One in the runtime
// directory dies with the container and needs no sync.
func (p *Plan) configFile(path string, data []byte) atomicfile.File {
	return atomicfile.File{Path: path, Data: data, Mode: 0o600, DirMode: 0o755, Durable: p.Config.MCPConfig != ""}
}

func (p *Plan) checkGlobs() {
	for _, l := range []struct {
		name  string
		globs []string
	}{{"AGENTIC_MCP_ALLOW", p.Config.MCPAllow}, {"AGENTIC_MCP_DENY", p.Config.MCPDeny}} {
		for _, g := range l.globs {
			if !mcp.ValidGlob(g) {
				p.Problems.Add(problem.Problem{What: "cannot use " + l.name, Why: "\"" + g + "\" is no glob", Hint: "use *, ? and [a-z]"})
			}
		}
	}
}

// baseline finds the config from which the merge starts: the user's own file
// at an explicit MCP_CONFIG, or its backup, or MCP_BASELINE.
func (p *Plan) baseline() *jsondoc.Document {
	own := ""
	if p.Config.MCPConfig != "" {
		own = p.ownBaseline()
	}
	if own == "" {
		path := absolute(p.Config.MCPBaseline)
		p.warnAbsent("MCP_BASELINE", path, "there is no baseline")
		return p.readBaseline(path)
	}
	if p.Config.Explicit("MCP_BASELINE") {
		p.Problems.Add(problem.Problem{What: "cannot choose a baseline", File: own, Why: "AGENTIC_MCP_BASELINE names another one, " + problem.Path(p.Config.MCPBaseline),
			Hint: "unset AGENTIC_MCP_BASELINE, or let AGENTIC_MCP_CONFIG name a file that does not exist yet"})
	}
	return p.readBaseline(own)
}

// ownBaseline is the path of the user's own file, and plans its backup; it is
// empty where the file at MCP_CONFIG is ours or there is none.
func (p *Plan) ownBaseline() string {
	backup := p.MCPPath + backupSuffix
	current, err := textfile.Read(p.MCPPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Problems.Add(problem.Problem{What: "cannot read MCP config", File: p.MCPPath, Why: textfile.Reason(err), Hint: "let AGENTIC_MCP_CONFIG name a file in a writable directory"})
		return ""
	}
	_, backed := os.Lstat(backup)
	switch {
	case backed == nil:
		if err == nil && !p.marked(current) && !sameFile(backup, current) {
			p.Problems.Add(problem.Problem{Severity: problem.Warning, What: "MCP config", File: p.MCPPath, Why: "it was changed since agent-init wrote it, and is written again from " + problem.Path(backup),
				Hint: "to keep the change, make it in the backup"})
		}
		return backup
	case err != nil || p.marked(current):
		return ""
	}
	p.Files = append(p.Files, p.configFile(backup, current))
	return p.MCPPath
}

func sameFile(path string, data []byte) bool {
	other, err := textfile.Read(path)
	return err == nil && bytes.Equal(other, data)
}

// marked tells whether agent-init wrote this content.
func (p *Plan) marked(data []byte) bool {
	marks, err := textfile.Read(p.MCPPath + markSuffix)
	return err == nil && bytes.Contains(marks, []byte(digest(data)))
}

// planMark notes the digest of what is about to be written, beside that of
// what is there if it is ours: whichever of them a crash leaves, it is known.
func (p *Plan) planMark() {
	path := p.MCPPath + markSuffix
	current, err := textfile.Read(p.MCPPath)
	mark := digest(p.MCP.JSON) + "\n"
	if err == nil && bytes.Equal(current, p.MCP.JSON) && p.marked(current) {
		return
	}
	if err == nil && p.marked(current) {
		mark = digest(current) + "\n" + mark
	}
	p.Files = append(p.Files, atomicfile.File{Path: path, Data: []byte(mark), Mode: 0o600, DirMode: 0o755, Durable: true})
}

// digest tells files apart that nobody has forged: cryptography would make
// every start slower.
func digest(data []byte) string {
	h := fnv.New128a()
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

func (p *Plan) readBaseline(path string) *jsondoc.Document {
	doc, bad := mcp.Read(path, "MCP baseline")
	if bad != nil {
		p.Problems.Add(*bad)
	}
	return doc
}

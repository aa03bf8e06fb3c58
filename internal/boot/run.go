package boot

import (
	"fmt"
	"strings"
	"time"

	"agent-init/internal/problem"
	"agent-init/internal/repo"
	"agent-init/internal/runlog"
	"agent-init/internal/textfile"
)

// readPrompt reads what the agent is to get on stdin.
func (p *Plan) readPrompt() {
	path := absolute(p.Config.PromptFile)
	if path == "" {
		return
	}
	data, err := textfile.Read(path)
	if err != nil {
		p.Problems.Add(problem.Problem{What: "cannot read the prompt", File: path, Why: textfile.Reason(err),
			Hint: "let AGENTIC_PROMPT_FILE name a readable file of at most 1 MiB"})
		return
	}
	p.Prompt = append([]byte{}, data...)
}

// checkResults finds out whether logs of runs can be written. It makes nothing.
func (p *Plan) checkResults() {
	dir := absolute(p.Config.ResultsDir)
	if dir == "" || p.again {
		return
	}
	if err := runlog.Check(dir); err != nil {
		p.Problems.Add(problem.Problem{What: "cannot use AGENTIC_RESULTS_DIR", File: dir, Why: textfile.Reason(err),
			Hint: "name a directory that agent-init may write to"})
	}
}

// LogHeader begins the log of a run.
func (p *Plan) LogHeader(cycle int, now time.Time) []byte {
	var b strings.Builder
	row := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	row("# cycle: %d", cycle)
	row("# time: %s", now.UTC().Format(time.RFC3339))
	var plugins []string
	for _, pl := range p.Plugins {
		plugins = append(plugins, strings.TrimSpace(pl.Name+" "+pl.Version))
	}
	row("# plugins: %s", names(plugins))
	for _, r := range p.Repos.Repos {
		row("# repo %s: checks: %s; playbooks: %s; skills: %s; MCP servers: %s", problem.Path(r.Name),
			names(documents(r.Checks)), names(documents(r.Playbooks)), names(documents(r.Skills)), names(r.MCPServers))
	}
	b.WriteByte('\n')
	return []byte(b.String())
}

func documents(docs []repo.Document) (names []string) {
	for _, d := range docs {
		names = append(names, d.Name)
	}
	return names
}

// names are names of others on one line.
func names(list []string) string { return orDash(strings.Join(list, ", ")) }

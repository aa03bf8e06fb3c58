package boot

import (
	"os"
	"path/filepath"
	"slices"

	"agent-init/internal/atomicfile"
	"agent-init/internal/event"
	"agent-init/internal/problem"
)

// approvedLength is how much of the end of a key Claude Code notes once its use
// is approved (seen).
const approvedLength = 20

// planHome has an interactive first run of Claude Code ask nothing, where that was
// asked for. What is there already is the user's and stays as it is.
func (p *Plan) planHome() {
	if !p.Config.ClaudeSetup.On {
		return
	}
	home := p.claudeHome()
	if home == "" {
		p.Problems.Add(problem.Problem{What: "cannot set up Claude Code", Why: "HOME is not set", Hint: "set HOME or CLAUDE_CONFIG_DIR, or unset AGENTIC_CLAUDE_SETUP"})
		return
	}
	state := filepath.Join(filepath.Dir(home), ".claude.json")
	if p.environ.get("CLAUDE_CONFIG_DIR") != "" {
		state = filepath.Join(home, ".claude.json")
	}
	// An older name, which Claude Code reads instead where it is there (seen).
	if _, err := os.Lstat(filepath.Join(home, ".config.json")); err != nil {
		p.createAbsent(state, p.firstRunDone())
	}
	p.createAbsent(filepath.Join(home, "settings.json"), []event.Member{
		event.Object("attribution", event.String("commit", ""), event.String("pr", "")),
	})
}

// firstRunDone is the state of Claude Code after a first run: it has asked for a
// theme, whether to trust the workspace and whether to use the key in the
// environment.
func (p *Plan) firstRunDone() []event.Member {
	ws := absolute(p.Config.WorkspaceDir)
	trusted := []event.Member{event.Object(ws, event.Bool("hasTrustDialogAccepted", true))}
	// It knows its directory by the path without symlinks.
	if real, err := filepath.EvalSymlinks(ws); err == nil && real != ws {
		trusted = append(trusted, event.Object(real, event.Bool("hasTrustDialogAccepted", true)))
	}
	members := []event.Member{event.Bool("hasCompletedOnboarding", true), event.Object("projects", trusted...)}
	const variable = "ANTHROPIC_API_KEY"
	if key := p.environ.get(variable); key != "" && !slices.Contains(p.Config.WithholdEnv, variable) {
		members = append(members, event.Object("customApiKeyResponses", event.Strings("approved", []string{key[max(0, len(key)-approvedLength):]})))
	}
	return members
}

func (p *Plan) createAbsent(path string, members []event.Member) {
	if _, err := os.Lstat(path); err == nil {
		return
	}
	if obstacle := atomicfile.Obstacle(path); obstacle != "" {
		p.Problems.Add(problem.Problem{What: "cannot set up Claude Code", File: path, Why: obstacle, Hint: "make it writable, or unset AGENTIC_CLAUDE_SETUP"})
		return
	}
	p.Files = append(p.Files, atomicfile.File{Path: path, Data: document(members), Mode: 0o600, DirMode: 0o700, Durable: true})
}

package boot

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agent-init/internal/event"
	"agent-init/internal/plugin"
)

// Handler is a workspace hook of a plugin.
type Handler struct {
	plugin.Handler
	// Plugin is the plugin's name, Path its directory.
	Plugin, Path string
}

// HookRun is how a workspace hook went.
type HookRun struct {
	Handler  Handler
	Failed   bool
	Outcome  string
	Duration time.Duration
}

// Handlers are the hooks for an event in the order in which they run: highest
// priority first, then in the order of the plugins.
func (p *Plan) Handlers(of plugin.WorkspaceEvent) (handlers []Handler) {
	for _, pl := range p.Plugins {
		for _, h := range pl.Handlers {
			if h.Event == of {
				handlers = append(handlers, Handler{h, pl.Name, pl.Path})
			}
		}
	}
	slices.SortStableFunc(handlers, func(a, b Handler) int { return cmp.Compare(b.Priority, a.Priority) })
	return handlers
}

// EnvOf is the environment of a plugin's finalizers: the agent's, with those
// withheld variables that the plugin itself declares.
func (p *Plan) EnvOf(name string) []string {
	withheld := slices.Clone(p.Config.WithholdEnv)
	for _, r := range p.Requirements {
		if r.Plugin == name {
			withheld = slices.DeleteFunc(withheld, func(w string) bool { return w == r.Name })
		}
	}
	return p.environ.without(withheld)
}

// HookDirectory is where workspace hooks run: in the workspace, or where
// agent-init was started if there is none.
func (p *Plan) HookDirectory() string {
	if ws := absolute(p.Config.WorkspaceDir); isDir(ws) {
		return ws
	}
	return ""
}

// HookPayload is what a workspace hook reads.
func (p *Plan) HookPayload() []byte {
	ws := absolute(p.Config.WorkspaceDir)
	agent := ""
	if len(p.Command) > 0 {
		agent = filepath.Base(p.Command[0])
	}
	session := cmp.Or(p.Config.SessionKey, p.Session)
	return append(event.Object("",
		event.String("workspaceDir", ws),
		event.String("agentWorkspaceDir", cmp.Or(p.Config.AgentWorkspaceDir, ws)),
		event.String("agentId", cmp.Or(p.Config.AgentID, agent)),
		event.String("sessionKey", session),
		event.String("scopeKey", cmp.Or(p.Config.ScopeKey, session)),
		event.Bool("isNewWorkspace", p.NewWorkspace),
	).Value, '\n')
}

// isNew tells whether a workspace is absent or empty.
func isNew(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return os.IsNotExist(err)
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) == 0
}

package boot

import (
	"math"
	"path/filepath"
	"strings"

	"agent-init/internal/event"
	"agent-init/internal/plugin"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/supervise"
	"agent-init/internal/tap"
)

// tapExec is the program through which views start hooks in exec form; empty
// where nothing listens to it.
func (p *Plan) tapExec() string {
	if p.Tap == "" {
		return ""
	}
	return filepath.Join(p.Tap, tap.ExecName)
}

// planViews finds the plugins that Claude Code cannot load as they are. Without
// a runtime directory there is no place for what it could load instead. To be
// called again where there is no tap after all.
func (p *Plan) planViews(tapExec string) (found problem.List) {
	p.Views = nil
	grace := supervise.AgentShare(p.Config.StopGrace.Duration)
	options := plugin.ViewOptions{TapExec: tapExec, SessionEndTimeout: max(1, int(math.Ceil(grace.Seconds())))}
	if p.Runtime.Path == "" {
		// Nothing is made of it: it tells what a tap would have been needed for.
		options.TapExec = "agent-tap-exec"
	} else {
		options.Dir = p.Runtime.Join(rundir.Views)
	}
	for _, pl := range p.Plugins {
		v, needed, ps := pl.View(options)
		found.Add(ps...)
		switch {
		case !needed:
		case p.Runtime.Path == "":
			found.Add(withoutView(pl, v.Reasons))
		default:
			p.Views = append(p.Views, v)
		}
	}
	return found
}

// effects are what is missing where a plugin that needs a view has none.
var effects = [...]string{
	plugin.ExecHooks:         "events of its hooks in exec form are not collected",
	plugin.SessionEndTimeout: "its SessionEnd hooks end after 1.5 s",
	plugin.KairoManifest:     "Claude Code does not read .kairo-plugin",
	plugin.KairoNames:        "Claude Code does not know Kairo's names of events and variables in it",
}

func withoutView(pl plugin.Plugin, reasons []plugin.Reason) problem.Problem {
	var missing []string
	for _, r := range reasons {
		missing = append(missing, effects[r])
	}
	return problem.Problem{Severity: problem.Warning, What: "plugin", File: pl.Path,
		Why: "without a runtime directory " + strings.Join(missing, ", and "), Hint: "let AGENTIC_RUNTIME_DIR name a directory that can be written"}
}

// view is a plugin's view; nil where it has none.
func (p *Plan) view(pl plugin.Plugin) *plugin.View {
	for i := range p.Views {
		if p.Views[i].Plugin == pl.Name {
			return &p.Views[i]
		}
	}
	return nil
}

// loadedFrom is the directory that Claude Code gets for a plugin.
func (p *Plan) loadedFrom(pl plugin.Plugin) string {
	if v := p.view(pl); v != nil {
		return v.Path
	}
	return pl.Path
}

func viewReasons(v *plugin.View) (names []string) {
	for _, r := range v.Reasons {
		names = append(names, r.String())
	}
	return names
}

func reportView(v *plugin.View) event.Member {
	return event.Object("view", event.String("path", v.Path), event.Strings("reasons", viewReasons(v)))
}

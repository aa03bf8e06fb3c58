package boot

import (
	"github.com/go-json-experiment/json/jsontext"

	"agent-init/internal/agent"
	"agent-init/internal/event"
	"agent-init/internal/plugin"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
)

// Report is what boot found and decided, for boot.json and the event
// workspace_ready. It never holds the value of a variable.
func (p *Plan) Report() []event.Member {
	return append(p.facts(), event.List("hooks", each(p.HookRuns, reportHookRun)...), event.List("steps", each(p.Steps, func(s Step) []event.Member {
		return []event.Member{event.String("name", s.Name), event.Float("ms", float64(s.Duration.Microseconds())/1000)}
	})...))
}

func reportHookRun(r HookRun) []event.Member {
	return []event.Member{event.String("hook", string(r.Handler.Event)), event.String("plugin", r.Handler.Plugin),
		event.String("file", r.Handler.File), event.Int("line", int64(r.Handler.Line)), event.Bool("failed", r.Failed),
		event.String("outcome", r.Outcome), event.Float("ms", float64(r.Duration.Microseconds())/1000)}
}

// facts are the parts of the report that the same inputs make the same.
func (p *Plan) facts() []event.Member {
	return []event.Member{
		event.String("agent", p.Agent.String()),
		event.String("runtime_dir", p.Runtime.Path),
		event.String("mcp_config", p.MCPPath),
		event.String("hook_events", p.hookEvents()),
		event.List("plugins", each(p.Plugins, p.reportPlugin)...),
		event.List("copies", each(p.Copies, reportCopy)...),
		event.List("mcp_servers", p.reportServers()...),
		event.List("mcp_left_out", p.reportLeftOut()...),
		event.List("repos", p.reportRepos()...),
		event.List("git", p.reportGit()...),
		event.List("git_hooks", each(p.GitHooks, reportGitHook)...),
		event.List("warnings", each(p.Problems.Only(problem.Warning), reportProblem)...),
	}
}

// hookEvents says whether the events of the agent's hooks are collected.
func (p *Plan) hookEvents() string {
	if p.NoTap != "" {
		return "not collected: " + p.NoTap
	}
	return "collected"
}

func each[T any](in []T, f func(T) []event.Member) [][]event.Member {
	out := make([][]event.Member, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}

func (p *Plan) reportPlugin(pl plugin.Plugin) []event.Member {
	var env [][]event.Member
	for _, r := range p.Requirements {
		if r.Plugin == pl.Name {
			env = append(env, []event.Member{event.String("name", r.Name), event.String("description", r.Description),
				event.Bool("required", r.Required), event.Bool("secret", r.Secret), event.Bool("set", r.Set), event.String("origin", r.Origin)})
		}
	}
	var components []event.Member
	for _, k := range pl.Components.Kinds() {
		if len(k.Names) > 0 {
			components = append(components, event.Strings(k.Name, k.Names))
		}
	}
	members := []event.Member{event.String("name", pl.Name), event.String("version", pl.Version), event.String("path", pl.Path)}
	if pl.Injected {
		members = append(members, event.Bool("injected", true), event.String("replaced", pl.Replaced))
	}
	if v := p.view(pl); v != nil {
		members = append(members, reportView(v))
	}
	return append(members, event.List("requires_env", env...), event.Object("components", components...))
}

func (p *Plan) reportServers() [][]event.Member {
	var out [][]event.Member
	for _, s := range p.MCP.Servers {
		var over [][]event.Member
		for _, o := range s.Overrode {
			over = append(over, []event.Member{event.String("name", o.Name), event.String("repo", o.Repo), event.String("file", o.File)})
		}
		out = append(out, []event.Member{event.String("name", s.Name), event.String("type", s.Type), event.String("repo", s.Repo),
			event.String("file", s.File), event.List("overrode", over...)})
	}
	return out
}

func (p *Plan) reportLeftOut() [][]event.Member {
	var out [][]event.Member
	for _, l := range p.MCP.Left {
		out = append(out, []event.Member{event.String("name", l.Name), event.String("file", l.File), event.String("reason", l.Reason)})
	}
	return out
}

func (p *Plan) reportRepos() [][]event.Member {
	var out [][]event.Member
	for _, r := range p.Repos.Repos {
		out = append(out, []event.Member{event.String("name", r.Name), event.String("path", r.Path), event.String("source", r.Source), event.Bool("writable", r.Writable)})
	}
	return out
}

func (p *Plan) reportGit() [][]event.Member {
	var out [][]event.Member
	for _, s := range p.Git.Settings {
		out = append(out, []event.Member{event.String("key", s.Key), event.String("value", s.Value)})
	}
	return out
}

func reportProblem(f problem.Problem) []event.Member {
	m := []event.Member{event.String("message", f.Text())}
	if f.Hint != "" {
		m = append(m, event.String("hint", f.Hint))
	}
	if f.File != "" {
		m = append(m, event.String("file", f.File))
	}
	if f.Line > 0 {
		m = append(m, event.Int("line", int64(f.Line)), event.Int("column", int64(f.Column)))
	}
	return m
}

// JSON is the plan as an indented document: the report, and what `run` would
// write and start. Masked, it may be shown to anybody.
func (p *Plan) JSON() []byte {
	members := []event.Member{
		event.Strings("command", p.Command),
		event.Strings("argv", p.Argv),
		event.String("plugin_flags", agent.Quote(p.Flags)),
		event.Strings("environment_added", p.addedNames()),
		event.Strings("environment_withheld", p.Config.WithholdEnv),
		event.Strings("directories", p.Directories),
		event.Strings("files", p.fileNames()),
	}
	members = append(members, p.facts()...)
	members = append(members, event.List("errors", each(p.Problems.Only(problem.Error), reportProblem)...))
	return p.Masker.Mask(nil, document(members))
}

func document(members []event.Member) []byte {
	v := event.Object("", members...).Value
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		// Members hold valid JSON by construction.
		panic(err)
	}
	return append(v, '\n')
}

// addedNames are the variables that boot sets for the agent, without values.
func (p *Plan) addedNames() []string { return p.environ.added }

func (p *Plan) fileNames() (names []string) {
	if dir := p.hooksPath(); dir != "" {
		names = append(names, dir)
	}
	for _, f := range p.Git.Files {
		names = append(names, f.Path)
	}
	for _, v := range p.Views {
		names = append(names, v.Path)
	}
	for _, f := range p.Files {
		names = append(names, f.Path)
	}
	if p.Runtime.Path != "" {
		names = append(names, p.Runtime.Join(rundir.Launch), p.Runtime.Join(rundir.Report))
	}
	return names
}

package boot

import (
	"fmt"
	"strings"

	"agent-init/internal/agent"
	"agent-init/internal/problem"
)

// Text is the plan for people. Every secret in it is masked.
func (p *Plan) Text() string {
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, "\n%s\n", title) }
	row := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }

	fmt.Fprintf(&b, "Agent: %s\n", p.Agent)
	row("%s", agent.Quote(p.Argv))

	section(fmt.Sprintf("Plugins (%d)", len(p.Plugins)))
	for _, pl := range p.Plugins {
		row("%s %s  %s", shown(pl.Name), orDash(pl.Version), problem.Path(pl.Path))
		if pl.Injected {
			row("  injected")
		}
		if pl.Replaced != "" {
			row("  replaces %s", problem.Path(pl.Replaced))
		}
		if v := p.view(pl); v != nil {
			row("  loaded as %s (%s)", problem.Path(v.Path), strings.Join(viewReasons(v), ", "))
		}
		for _, k := range pl.Components.Kinds() {
			if len(k.Names) > 0 {
				row("  %s: %s", strings.ReplaceAll(k.Name, "_", " "), shown(strings.Join(k.Names, ", ")))
			}
		}
		for _, r := range p.Requirements {
			if r.Plugin == pl.Name {
				row("  %s", requirementText(r))
			}
		}
	}

	section(fmt.Sprintf("MCP servers (%d)", len(p.MCP.Servers)))
	for _, s := range p.MCP.Servers {
		row("%s (%s)  from %s", shown(s.Name), s.Type, problem.Path(s.File))
		for _, o := range s.Overrode {
			row("  overrides %s from %s", shown(o.Name), problem.Path(o.File))
		}
	}
	for _, l := range p.MCP.Left {
		row("left out: %s from %s: %s", shown(l.Name), problem.Path(l.File), l.Reason)
	}

	section(fmt.Sprintf("Repos (%d)", len(p.Repos.Repos)))
	for _, r := range p.Repos.Repos {
		access := "read-only"
		if r.Writable {
			access = "writable"
		}
		row("%s  %s, %s", problem.Path(r.Path), r.Source, access)
	}

	section("Git")
	for _, s := range p.Git.Settings {
		row("%s = %s", s.Key, shown(s.Value))
	}
	for _, h := range p.GitHooks {
		row("hook %s  %s", h.Name, problem.Path(h.Path))
	}

	section("Writes")
	for _, dir := range p.Directories {
		row("%s/", problem.Path(dir))
	}
	for _, name := range p.fileNames() {
		row("%s", problem.Path(name))
	}
	for _, c := range p.Copies {
		if c.State == Unchanged {
			row("%s is there already, from %s", problem.Path(c.To), problem.Path(c.From))
		}
	}
	if added := p.addedNames(); len(added) > 0 {
		row("environment: %s", strings.Join(added, " "))
	}
	if len(p.Config.WithholdEnv) > 0 {
		row("withheld: %s", strings.Join(p.Config.WithholdEnv, " "))
	}

	for _, severity := range []problem.Severity{problem.Warning, problem.Error} {
		if found := p.Problems.Only(severity); len(found) > 0 {
			section(fmt.Sprintf("%ss (%d)", strings.ToUpper(severity.String()[:1])+severity.String()[1:], len(found)))
			for _, f := range found {
				row("%s", f.Text())
				if f.Hint != "" {
					row("  %s", f.Hint)
				}
			}
		}
	}
	return p.Masker.MaskString(b.String())
}

func requirementText(r Requirement) string {
	state := "not set"
	if r.Set {
		state = "set by " + r.Origin
	}
	var traits []string
	if r.Required {
		traits = append(traits, "required")
	}
	if r.Secret {
		traits = append(traits, "secret")
	}
	text := fmt.Sprintf("%s: %s", r.Name, state)
	if len(traits) > 0 {
		text += " (" + strings.Join(traits, ", ") + ")"
	}
	if r.Description != "" {
		text += "  " + shown(r.Description)
	}
	return text
}

// shown is text of others on one line, without control characters.
func shown(s string) string { return problem.Problem{What: s}.Text() }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return shown(s)
}

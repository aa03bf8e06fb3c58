package plugin

import (
	"fmt"
	"strings"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
)

// Requirement is one entry of a manifest's requires_env.
type Requirement struct {
	Name, Description string
	// Required refuses boot when the variable is unset or empty.
	Required bool
	// Secret values are masked wherever agent-init relays them.
	Secret bool
	// Default applies when the variable is unset and not secret.
	Default    string
	HasDefault bool
	// Line and Column are the entry's place in the manifest.
	Line, Column int
}

// types are the JSON types that the agent CLI takes for the manifest fields it
// knows; a manifest with another type is skipped by it without a word.
var types = map[string]string{
	"name": `"`, "displayName": `"`, "version": `"`, "description": `"`, "homepage": `"`, "license": `"`,
	"author": "{", "repository": `"`, "keywords": "[", "channels": "[", "userConfig": "{", "settings": "{",
	"skills": `"[`, "commands": `"[{`, "agents": `"[`, "outputStyles": `"[`, "workflows": `"[`,
	"hooks": `"[{`, "mcpServers": `"[{`, "lspServers": `"[{`,
	"dependencies": "[", "requires_env": "{",
}

var kindNames = map[byte]string{'"': "a string", '{': "an object", '[': "a list"}

func wanted(kinds string) string {
	var names []string
	for i := range len(kinds) {
		names = append(names, kindNames[kinds[i]])
	}
	return strings.Join(names, " or ")
}

// parse reads the fields of a manifest that agent-init needs.
func parse(doc *jsondoc.Document) (p Plugin, found problem.List) {
	p.Manifest = doc.Path
	if doc.Root.Kind != '{' {
		return p, problem.List{doc.Error(doc.Root.Start, "it holds "+doc.Root.KindName()+", not an object", "")}
	}
	for _, m := range doc.Root.Members {
		kinds, known := types[m.Name]
		if known && strings.IndexByte(kinds, byte(m.Value.Kind)) < 0 {
			found.Add(doc.Error(m.Value.Start, fmt.Sprintf("%q is %s, not %s", m.Name, m.Value.KindName(), wanted(kinds)), ""))
			continue
		}
		switch m.Name {
		case "name":
			p.Name = m.Value.Text
			if strings.TrimSpace(p.Name) == "" {
				found.Add(doc.Error(m.Value.Start, `"name" is empty`, ""))
			} else if strings.Contains(p.Name, " ") {
				found.Add(doc.Warning(m.Value.Start, fmt.Sprintf("Claude Code does not load a plugin whose name has blanks: %q", p.Name), "write "+fmt.Sprintf("%q", strings.ReplaceAll(p.Name, " ", "-"))))
			}
		case "homepage":
			if !hasScheme(m.Value.Text) {
				found.Add(doc.Error(m.Value.Start, `"homepage" is no URL`, "write https://..."))
			}
		case "version":
			p.Version = m.Value.Text
		case "description":
			p.Description = m.Value.Text
		case "dependencies":
			found.Add(p.parseDependencies(doc, m.Value)...)
		case "requires_env":
			found.Add(p.parseRequiresEnv(doc, m.Value)...)
		}
	}
	if _, ok := doc.Root.Get("name"); !ok {
		found.Add(doc.Error(doc.Root.Start, `it has no "name"`, `add "name": "..."`))
	}
	return p, found
}

func (p *Plugin) parseDependencies(doc *jsondoc.Document, list jsondoc.Value) (found problem.List) {
	for _, e := range list.Elements {
		name := e
		if e.Kind == '{' {
			name, _ = e.Get("name")
		}
		if name.Kind != '"' || name.Text == "" {
			found.Add(doc.Error(e.Start, "a dependency is neither a name nor an object with one", ""))
			continue
		}
		d := Dependency{Name: name.Text}
		// "name@marketplace" asks for a plugin by its origin.
		if at := strings.IndexByte(d.Name, '@'); at > 0 {
			d.Name = d.Name[:at]
		}
		d.Line, d.Column = doc.Position(e.Start)
		p.Dependencies = append(p.Dependencies, d)
	}
	return found
}

func (p *Plugin) parseRequiresEnv(doc *jsondoc.Document, entries jsondoc.Value) (found problem.List) {
	for _, m := range entries.Members {
		r := Requirement{Name: m.Name}
		r.Line, r.Column = doc.Position(m.NameStart)
		if !validVariable(m.Name) {
			found.Add(doc.Error(m.NameStart, fmt.Sprintf("%q is no name of a variable", m.Name), "use letters, digits and underscores"))
			continue
		}
		if m.Value.Kind != '{' {
			found.Add(doc.Error(m.Value.Start, fmt.Sprintf("requires_env %s is %s, not an object", m.Name, m.Value.KindName()), ""))
			continue
		}
		found.Add(r.parse(doc, m.Value)...)
		p.RequiresEnv = append(p.RequiresEnv, r)
	}
	return found
}

func (r *Requirement) parse(doc *jsondoc.Document, entry jsondoc.Value) (found problem.List) {
	wrong := func(f jsondoc.Member, want string) {
		found.Add(doc.Error(f.Value.Start, fmt.Sprintf("requires_env %s: %q is %s, not %s", r.Name, f.Name, f.Value.KindName(), want), ""))
	}
	for _, f := range entry.Members {
		switch f.Name {
		case "description", "default":
			switch {
			case f.Value.Kind != '"':
				wrong(f, "a string")
			case f.Name == "description":
				r.Description = f.Value.Text
			default:
				r.Default, r.HasDefault = f.Value.Text, true
			}
		case "required", "secret":
			switch {
			case !f.Value.IsBool():
				wrong(f, "a boolean")
			case f.Name == "required":
				r.Required = f.Value.Kind == 't'
			default:
				r.Secret = f.Value.Kind == 't'
			}
		default:
			found.Add(doc.Warning(f.NameStart, fmt.Sprintf("requires_env %s: unknown field %q has no effect", r.Name, f.Name),
				"known are description, required, secret and default"))
		}
	}
	if r.Secret && r.HasDefault {
		r.HasDefault, r.Default = false, ""
		found.Add(doc.Warning(entry.Start, fmt.Sprintf("requires_env %s: the default of a secret is not used", r.Name), "remove it"))
	}
	return found
}

// hasScheme tells whether a text begins as RFC 3986 has every URI begin.
func hasScheme(s string) bool {
	i := strings.IndexByte(s, ':')
	if i < 1 {
		return false
	}
	for j, c := range []byte(s[:i]) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (j == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return false
		}
	}
	return true
}

// validVariable tells whether a shell and getenv(3) agree on the name.
func validVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

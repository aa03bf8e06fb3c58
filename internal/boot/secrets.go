package boot

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"agent-init/internal/gitsetup"
	"agent-init/internal/plugin"
	"agent-init/internal/privilege"
	"agent-init/internal/problem"
	"agent-init/internal/secret"

	"golang.org/x/sys/unix"
)

// secrets is where the values of variables came from, by name.
type secrets struct {
	values map[string]secret.Value
	// masked are the names whose values must not be shown.
	masked []string
	hosts  []gitsetup.Host
}

// findSecrets looks up every declared variable, every known credential and
// every one that a git host names, and sets what was not in the environment.
func (p *Plan) findSecrets() {
	s := &secrets{values: map[string]secret.Value{}}
	p.secrets = s
	s.hosts = p.gitHosts()
	sources := p.Sources()
	if _, err := os.Stat(sources.Dir); errors.Is(err, fs.ErrNotExist) {
		p.warnAbsent("SECRETS_DIR", sources.Dir, "no secret is read from it")
		sources.Dir = "" // one look instead of one for every name
	}
	for _, name := range p.variables() {
		var value secret.Value
		var bad *problem.Problem
		privilege.AsRoot(func() { value, bad = sources.Lookup(name) })
		// A directory that cannot be searched is the same finding for every name.
		if bad != nil && !slices.Contains(p.Problems, *bad) {
			p.Problems.Add(*bad)
		}
		s.values[name] = value
		if value.Origin == secret.File || value.Origin == secret.Put {
			p.environ.set(name, value.Text)
		}
	}
	p.meetRequirements()
	p.warnShortPuts()
	p.warnWithheld()
	if values := p.maskedValues(); p.Masker == nil {
		p.Masker = secret.NewMasker(values)
	} else {
		// What a secret was before may still be in somebody's output.
		p.Masker.Add(values...)
	}
}

// Sources are where the values of variables come from: the environment is
// agent-init's own.
func (p *Plan) Sources() secret.Sources {
	return secret.Sources{Put: p.put, Env: os.LookupEnv, Dir: absolute(p.Config.SecretsDir)}
}

// awaiting tells whether secrets are still to be handed over.
func (p *Plan) awaiting() bool { return p.put == nil && p.Config.SecretsWait.Duration > 0 }

// Missing are the required variables without a value, each once.
func (p *Plan) Missing() (names []string) {
	for _, r := range p.Requirements {
		if r.Required && !r.Set && !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

func (p *Plan) warnShortPuts() {
	declared := func(name string) bool {
		return slices.ContainsFunc(p.Requirements, func(r Requirement) bool { return r.Name == name && r.Secret })
	}
	for _, name := range slices.Sorted(maps.Keys(p.put)) {
		if value := p.put[name]; value != "" && secret.TooShort(value) && !declared(name) {
			p.Problems.Add(tooShort(name))
		}
	}
}

func tooShort(name string) problem.Problem {
	return problem.Problem{Severity: problem.Warning, What: "secret " + name, Why: "it is too short to be masked in output", Hint: "use one of 8 characters or more"}
}

// variables are the names to look up, each once.
func (p *Plan) variables() (names []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, pl := range p.Plugins {
		for _, r := range pl.RequiresEnv {
			add(r.Name)
		}
	}
	for _, name := range secret.Credentials {
		add(name)
	}
	for _, h := range p.secrets.hosts {
		add(h.Variable)
	}
	for _, name := range slices.Sorted(maps.Keys(p.put)) {
		add(name)
	}
	return names
}

// gitHosts are github.com and those that the configuration names; their tokens
// are filled in by planGit.
func (p *Plan) gitHosts() []gitsetup.Host {
	hosts, bad := gitsetup.ParseHosts(p.Config.GitHosts)
	if bad != nil {
		p.Problems.Add(*bad)
	}
	return hosts
}

// meetRequirements applies defaults and names every variable that is missing.
func (p *Plan) meetRequirements() {
	type given struct{ plugin, value string }
	defaults := map[string]given{}
	var left []string
	for _, pl := range p.Plugins {
		for _, r := range pl.RequiresEnv {
			req := Requirement{Requirement: r, Plugin: pl.Name}
			first, applied := defaults[r.Name]
			switch value := p.secrets.values[r.Name]; {
			case value.Origin == secret.Environment, value.Origin == secret.Put:
				req.Set, req.Origin = true, value.Origin.String()
			case value.Origin == secret.File:
				req.Set, req.Origin = value.Text != "", "file"
			case applied:
				req.Set, req.Origin = true, "default"
				if r.HasDefault && r.Default != first.value {
					p.Problems.Add(problem.Problem{Severity: problem.Warning, What: "plugin manifest", File: pl.Manifest, Line: r.Line, Column: r.Column,
						Why: fmt.Sprintf("the default of %s is not used: plugin %q, which comes first, has another", r.Name, first.plugin), Hint: "set " + r.Name})
				}
			case r.HasDefault && !p.secretAnywhere(r.Name):
				defaults[r.Name] = given{pl.Name, r.Default}
				p.environ.set(r.Name, r.Default)
				req.Set, req.Origin = r.Default != "", "default"
			}
			p.Requirements = append(p.Requirements, req)
			if r.Required && !req.Set {
				bad := p.missing(pl.Manifest, req)
				if p.again {
					bad.Severity, bad.What = problem.Warning, fmt.Sprintf("plugin %q is left out: %s", pl.Name, bad.What)
					left = append(left, pl.Name)
				}
				p.Problems.Add(bad)
			}
			if value := p.secrets.values[r.Name]; r.Secret && secret.TooShort(value.Text) && value.Text != "" {
				p.Problems.Add(tooShort(r.Name))
			}
		}
	}
	p.Plugins = slices.DeleteFunc(p.Plugins, func(pl plugin.Plugin) bool { return slices.Contains(left, pl.Name) })
}

func (p *Plan) missing(manifest string, r Requirement) problem.Problem {
	why := fmt.Sprintf("plugin %q requires %s, which is not set", r.Plugin, r.Name)
	if r.Description != "" {
		why += ": " + r.Description
	}
	if p.awaiting() {
		return problem.Problem{Severity: problem.Warning, What: "plugin manifest", File: manifest, Line: r.Line, Column: r.Column, Why: why,
			Hint: "hand it over with agent-init secrets put"}
	}
	return problem.Problem{What: "cannot meet plugin manifest", File: manifest, Line: r.Line, Column: r.Column, Why: why,
		Hint: fmt.Sprintf("set %s, or %s_FILE to the path of a file that holds it", r.Name, r.Name)}
}

// secretAnywhere tells whether any plugin declares the variable secret.
func (p *Plan) secretAnywhere(name string) bool {
	for _, pl := range p.Plugins {
		for _, r := range pl.RequiresEnv {
			if r.Name == name && r.Secret {
				return true
			}
		}
	}
	return false
}

// maskedValues are the values of declared secrets, of known credentials and of
// all variables whose names say that they are secret.
func (p *Plan) maskedValues() (values []string) {
	s := p.secrets
	add := func(name, value string) {
		if value != "" && !slices.Contains(s.masked, name) {
			s.masked = append(s.masked, name)
			values = append(values, value)
		}
	}
	for _, r := range p.Requirements {
		if r.Secret {
			add(r.Name, s.values[r.Name].Text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.put)) {
		add(name, p.put[name])
	}
	for _, h := range s.hosts {
		add(h.Variable, s.values[h.Variable].Text)
	}
	for _, entry := range p.environ.entries {
		if name, value, _ := strings.Cut(entry, "="); secret.IsCredential(name) {
			add(name, value)
		}
	}
	return values
}

// warnWithheld says where withholding a variable protects nothing.
func (p *Plan) warnWithheld() {
	for _, name := range p.Config.WithholdEnv {
		if value, _ := p.environ.lookup(name); value == "" {
			continue
		}
		warn := func(file, why, hint string) {
			p.Problems.Add(problem.Problem{Severity: problem.Warning, What: "withheld variable " + name, File: file, Why: why, Hint: hint})
		}
		v, looked := p.secrets.values[name]
		switch {
		case !looked || v.Origin == secret.Environment:
			warn("", "it came from the environment of the container, which other processes of the same user can read in /proc",
				"hand it over with agent-init secrets put, or set AGENTIC_USER and give it as a file that only root can read, "+name+"_FILE")
		case v.Origin == secret.File && unix.Faccessat(unix.AT_FDCWD, v.Path, unix.R_OK, unix.AT_EACCESS) == nil:
			warn(v.Path, "the agent's user can read its file", "hand it over with agent-init secrets put, or set AGENTIC_USER and let only root read the file")
		case os.Getpid() != 1:
			warn("", "agent-init is not PID 1, whose memory and environment it cannot protect", "")
		}
		if p.Config.GitCredentials == "store" && slices.ContainsFunc(p.GitHosts(), func(h gitsetup.Host) bool { return h.Variable == name }) {
			warn("", "git's credential store holds it on disk, where the agent can read it", "set AGENTIC_GIT_CREDENTIALS=helper")
		}
	}
}

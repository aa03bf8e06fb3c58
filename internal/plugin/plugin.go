// Package plugin finds the plugins of an image, reads their manifests and
// lists what they bring.
package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// Format is the family that a plugin's manifest directory names.
type Format int

const (
	// Claude plugins have .claude-plugin/plugin.json.
	Claude Format = iota
	// Kairo plugins have the same schema in .kairo-plugin/plugin.json.
	Kairo
)

// manifests are the manifest's places, the first found counts.
var manifests = []struct {
	format Format
	dir    string
}{{Claude, ".claude-plugin"}, {Kairo, ".kairo-plugin"}}

// Plugin is a directory with a manifest.
type Plugin struct {
	Name, Version, Description string
	// Path is the plugin's directory, Manifest the manifest's file.
	Path, Manifest string
	Format         Format
	RequiresEnv    []Requirement
	// Dependencies are names of plugins that this one wants loaded too.
	Dependencies []Dependency
	Components   Components
	// Injected plugins are the operator's, not the image's; Replaced is the path
	// of the image's plugin of the same name.
	Injected bool
	Replaced string
	// Handlers are the commands for the workspace, in the order of the file.
	Handlers []Handler

	// sources are the manifest and the JSON files that were read with it.
	sources []*jsondoc.Document
}

// Dependency is another plugin that a manifest asks for.
type Dependency struct {
	Name string
	// Line and Column are its place in the manifest.
	Line, Column int
}

// Options choose among the plugins of a directory.
type Options struct {
	// Only loads the plugins of these names; all when empty.
	Only []string
	// Skip leaves out a plugin that cannot be read, with a warning, instead of
	// refusing.
	Skip bool
	// Injected are directories of further plugins, which come last and take the
	// place of others of their names. Only does not choose among them.
	Injected []string
}

// Scan reads the plugins in the subdirectories of dir, in byte order of their
// directory names, and the injected ones. A directory that does not exist holds
// none.
func Scan(dir string, o Options) ([]Plugin, problem.List) {
	plugins, found := scanBaked(dir, o)
	injected, more := scanInjected(o)
	found.Add(more...)
	plugins = replaced(plugins, injected)
	found.Add(missing(o.Only, plugins)...)
	found.Add(unmet(plugins)...)
	return plugins, found
}

// scanBaked reads the plugins of the image.
func scanBaked(dir string, o Options) (plugins []Plugin, found problem.List) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, problem.List{unreadable("plugins directory", dir, err)}
	}
	for _, entry := range entries {
		p, ps := read(filepath.Join(dir, entry.Name()), entry)
		wanted := p == nil || len(o.Only) == 0 || slices.Contains(o.Only, p.Name)
		if p == nil && len(o.Only) > 0 && !slices.Contains(o.Only, entry.Name()) {
			// It may be any plugin, but none that is known to be wanted.
			ps = ps.Downgraded()
		}
		switch {
		case !wanted:
		case ps.Refuses() && o.Skip:
			found.Add(leftOut(entry.Name(), ps)...)
		default:
			found.Add(ps...)
			if p != nil && !ps.Refuses() {
				plugins = append(plugins, *p)
			}
		}
	}
	plugins, twins := unique(plugins, o.Skip)
	found.Add(twins...)
	return plugins, found
}

// leftOut says that a plugin is skipped, and why.
func leftOut(name string, ps problem.List) problem.List {
	out := ps.Downgraded()
	for i, p := range ps {
		if p.Severity == problem.Error {
			out[i].What = fmt.Sprintf("plugin %q is left out: %s", name, p.What)
		}
	}
	return out
}

func read(dir string, entry fs.DirEntry) (*Plugin, problem.List) {
	if !entry.IsDir() && strings.HasPrefix(entry.Name(), ".") {
		return nil, nil
	}
	if entry.Type()&fs.ModeSymlink != 0 {
		info, err := os.Stat(dir)
		if err != nil {
			p := unreadable("plugin", dir, err)
			if to, e := os.Readlink(dir); e == nil && errors.Is(err, fs.ErrNotExist) {
				p.Why = "it is a symlink to " + problem.Path(to) + ", which does not exist"
			}
			return nil, problem.List{p}
		}
		if !info.IsDir() {
			return nil, notADirectory(dir)
		}
	} else if !entry.IsDir() {
		return nil, notADirectory(dir)
	}
	inside, err := os.ReadDir(dir)
	if err != nil {
		return nil, problem.List{unreadable("plugin", dir, err)}
	}
	for _, m := range manifests {
		path := filepath.Join(dir, m.dir, "plugin.json")
		data, err := textfile.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			if info, e := os.Lstat(path); e != nil || info.Mode()&fs.ModeSymlink == 0 {
				continue
			}
		}
		if err != nil {
			return nil, problem.List{unreadable("plugin manifest", path, err)}
		}
		doc, bad := jsondoc.Parse("plugin manifest", path, data)
		if bad != nil {
			return nil, problem.List{*bad}
		}
		p, found := parse(doc)
		p.Path, p.Format, p.sources = dir, m.format, []*jsondoc.Document{doc}
		more := p.takeInventory(inside, doc)
		if has(inside, "hooks") {
			more.Add(p.readWorkspace()...)
		}
		return &p, append(found, more...)
	}
	if c := componentNames(inside); len(c) > 0 {
		return nil, problem.List{{Severity: problem.Warning, What: "directory is no plugin", File: dir,
			Why: "it has " + strings.Join(c, ", ") + " but no .claude-plugin/plugin.json", Hint: "add a manifest with at least a name"}}
	}
	return nil, nil
}

func notADirectory(path string) problem.List {
	return problem.List{{What: "cannot use plugin", File: path, Why: "it is a file, not a directory",
		Hint: "a plugin is a directory with .claude-plugin/plugin.json; unpack it, or move the file away"}}
}

func unreadable(what, path string, err error) problem.Problem {
	return problem.Problem{What: "cannot read " + what, File: path, Why: textfile.Reason(err)}
}

// unique refuses two plugins of one name: the CLI would load both, and the
// components of one would shadow those of the other.
func unique(plugins []Plugin, skip bool) ([]Plugin, problem.List) {
	var found problem.List
	var out []Plugin
	first := map[string]string{}
	for _, p := range plugins {
		other, twin := first[p.Name]
		if !twin {
			first[p.Name] = p.Path
			out = append(out, p)
			continue
		}
		f := problem.Problem{What: "cannot load plugin", File: p.Manifest, Why: fmt.Sprintf("its name %q is also that of %s", p.Name, problem.Path(other)),
			Hint: "remove one, or rename it"}
		f.Line, f.Column = p.namePlace()
		if skip {
			found.Add(leftOut(filepath.Base(p.Path), problem.List{f})...)
		} else {
			found.Add(f)
		}
	}
	return out, found
}

// namePlace reads the manifest again: only this rare message needs the place.
func (p Plugin) namePlace() (line, column int) {
	data, err := textfile.Read(p.Manifest)
	if err != nil {
		return 0, 0
	}
	doc, bad := jsondoc.Parse("plugin manifest", p.Manifest, data)
	if bad != nil {
		return 0, 0
	}
	name, _ := doc.Root.Get("name")
	return doc.Position(name.Start)
}

func missing(only []string, plugins []Plugin) (found problem.List) {
	for _, name := range only {
		if !slices.ContainsFunc(plugins, func(p Plugin) bool { return p.Name == name }) {
			found.Add(problem.Problem{What: "cannot load plugin " + fmt.Sprintf("%q", name), Why: "AGENTIC_PLUGINS names it, but there is no such plugin"})
		}
	}
	return found
}

func unmet(plugins []Plugin) (found problem.List) {
	loaded := map[string]bool{}
	for _, p := range plugins {
		loaded[p.Name] = true
	}
	for _, p := range plugins {
		for _, d := range p.Dependencies {
			if !loaded[d.Name] {
				found.Add(problem.Problem{Severity: problem.Warning, What: "plugin manifest", File: p.Manifest, Line: d.Line, Column: d.Column,
					Why: fmt.Sprintf("plugin %q depends on %q, which is not loaded", p.Name, d.Name)})
			}
		}
	}
	return found
}

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

// Components are the names of what a plugin brings, by kind.
type Components struct {
	Skills, Commands, Agents []string
	// Hooks are the events that the plugin handles.
	Hooks                               []string
	MCPServers, LSPServers              []string
	Bin, OutputStyles, Themes, Monitors []string
}

// Kind is one kind of component and the names found.
type Kind struct {
	// Name is the key in reports: "skills".
	Name  string
	Names []string
}

// Kinds are all kinds in the order of reports, empty ones too.
func (c Components) Kinds() []Kind {
	return []Kind{
		{"skills", c.Skills}, {"commands", c.Commands}, {"agents", c.Agents}, {"hooks", c.Hooks},
		{"mcp_servers", c.MCPServers}, {"lsp_servers", c.LSPServers}, {"bin", c.Bin},
		{"output_styles", c.OutputStyles}, {"themes", c.Themes}, {"monitors", c.Monitors},
	}
}

// places are the names in a plugin's directory that hold components.
var places = []string{"skills", "commands", "agents", "hooks", ".mcp.json", ".lsp.json", "bin", "output-styles", "themes", "monitors"}

func componentNames(entries []fs.DirEntry) (names []string) {
	for _, place := range places {
		if has(entries, place) {
			names = append(names, place)
		}
	}
	return names
}

func has(entries []fs.DirEntry, name string) bool {
	for _, e := range entries {
		if e.Name() == name {
			return true
		}
	}
	return false
}

// takeInventory fills p.Components from the plugin's directory, whose entries
// are given, and from its manifest. A file that the CLI would drop because it
// cannot be parsed is an Error.
func (p *Plugin) takeInventory(entries []fs.DirEntry, manifest *jsondoc.Document) (found problem.List) {
	c := &p.Components
	in := func(name string) string { return filepath.Join(p.Path, name) }
	for _, e := range entries {
		switch name := e.Name(); name {
		case "skills":
			c.Skills = list(in(name), func(d string, e fs.DirEntry) string {
				if _, err := os.Stat(filepath.Join(d, e.Name(), "SKILL.md")); err != nil {
					return ""
				}
				return e.Name()
			})
		case "commands":
			c.Commands = markdown(in(name), "")
		case "agents":
			c.Agents = markdown(in(name), "")
		case "output-styles":
			c.OutputStyles = markdown(in(name), "")
		case "bin":
			c.Bin = list(in(name), executable)
		case "themes":
			c.Themes = list(in(name), anyFile)
		case "monitors":
			c.Monitors = list(in(name), anyFile)
		case "hooks":
			found.Add(p.addFile(&c.Hooks, "hooks file", in("hooks/hooks.json"), "hooks")...)
		case ".mcp.json":
			found.Add(p.addFile(&c.MCPServers, "MCP config", in(name), "mcpServers")...)
		case ".lsp.json":
			found.Add(p.addFile(&c.LSPServers, "LSP config", in(name), "lspServers")...)
		}
	}
	if manifest.Root.Kind == '{' {
		found.Add(p.addDeclared(manifest)...)
	}
	return found
}

// addDeclared adds what the manifest itself declares, inline or by path.
func (p *Plugin) addDeclared(manifest *jsondoc.Document) (found problem.List) {
	c := &p.Components
	for _, d := range []struct {
		field string
		to    *[]string
	}{{"skills", &c.Skills}, {"commands", &c.Commands}, {"agents", &c.Agents}, {"hooks", &c.Hooks},
		{"mcpServers", &c.MCPServers}, {"lspServers", &c.LSPServers}, {"outputStyles", &c.OutputStyles}} {
		v, _ := manifest.Root.Get(d.field)
		if inner, ok := v.Get(d.field); ok && d.field == "hooks" {
			v = inner
		}
		if d.field == "hooks" && v.Kind != '{' {
			found.Add(p.addHooks(manifest, v)...)
			continue
		}
		addNames(d.to, v)
	}
	if experimental, ok := manifest.Root.Get("experimental"); ok {
		themes, _ := experimental.Get("themes")
		monitors, _ := experimental.Get("monitors")
		addNames(&c.Themes, themes)
		addNames(&c.Monitors, monitors)
	}
	return found
}

// addHooks adds the events of the hooks files that a manifest names, and of
// objects in a list of them.
func (p *Plugin) addHooks(manifest *jsondoc.Document, v jsondoc.Value) (found problem.List) {
	for _, e := range v.Elements {
		if e.Kind == '{' {
			addNames(&p.Components.Hooks, e)
		} else {
			found.Add(p.addHooks(manifest, e)...)
		}
	}
	if v.Kind != '"' {
		return found
	}
	names := declaredPaths(v)
	if len(names) == 0 {
		return problem.List{manifest.Error(v.Start, fmt.Sprintf("Claude Code takes no hooks from %q", v.Text),
			`write a path that begins with "./" and stays in the plugin`)}
	}
	path := filepath.Join(p.Path, names[0])
	if slices.ContainsFunc(p.sources, func(d *jsondoc.Document) bool { return d.Path == path }) {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return problem.List{manifest.Warning(v.Start, fmt.Sprintf("there is no hooks file %q", v.Text), "")}
	}
	return p.addFile(&p.Components.Hooks, "hooks file", path, "hooks")
}

func addNames(to *[]string, v jsondoc.Value) {
	switch v.Kind {
	case '"':
		*to = append(*to, v.Text)
	case '[':
		for _, e := range v.Elements {
			addNames(to, e)
		}
	case '{':
		for _, m := range v.Members {
			*to = append(*to, m.Name)
		}
	}
}

// addFile adds the member names of the object under key in a JSON file, or of
// the file's own object where it has no such key (.mcp.json may be bare).
func (p *Plugin) addFile(to *[]string, what, path, key string) problem.List {
	data, err := textfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return problem.List{unreadable(what, path, err)}
	}
	doc, bad := jsondoc.Parse(what, path, data)
	if bad != nil {
		return problem.List{*bad}
	}
	p.sources = append(p.sources, doc)
	if doc.Root.Kind != '{' {
		return problem.List{doc.Error(doc.Root.Start, "it holds "+doc.Root.KindName()+", not an object", "")}
	}
	v, ok := doc.Root.Get(key)
	switch {
	case !ok && key == "hooks":
		return problem.List{doc.Warning(doc.Root.Start, `it has no "hooks"`, "")}
	case !ok:
		v = doc.Root
	case v.Kind != '{':
		return problem.List{doc.Error(v.Start, "\""+key+"\" is "+v.KindName()+", not an object", "")}
	}
	addNames(to, v)
	return nil
}

// list names the entries of a directory for which name returns one. What
// cannot be read has no components; the CLI sees no more of it.
func list(dir string, name func(dir string, e fs.DirEntry) string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if n := name(dir, e); n != "" {
			names = append(names, n)
		}
	}
	return names
}

func anyFile(_ string, e fs.DirEntry) string {
	if strings.HasPrefix(e.Name(), ".") {
		return ""
	}
	return e.Name()
}

func executable(dir string, e fs.DirEntry) string {
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return ""
	}
	return e.Name()
}

// markdown names the *.md files below dir; a subdirectory is a name space, as
// the CLI has it: "sub:name".
func markdown(dir, space string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if base, ok := strings.CutSuffix(e.Name(), ".md"); ok && !e.IsDir() {
			names = append(names, space+base)
		} else if e.IsDir() && strings.Count(space, ":") < 8 {
			names = append(names, markdown(filepath.Join(dir, e.Name()), space+e.Name()+":")...)
		}
	}
	return names
}

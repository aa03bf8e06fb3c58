// Package injection reads what the operator mounts into a container to make a
// workspace of it: a CLAUDE.md, plugins and agents.
package injection

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// Dir is where the operator mounts it.
const Dir = "/etc/agentic/workspace"

// Names in the directory.
const (
	Context = "CLAUDE.md"
	plugins = "plugins"
	agents  = "agents"
)

// agentSuffix ends the name of an agent's file.
const agentSuffix = ".md"

// maxEntries is how many files a mounted directory may hold: those of agents are
// all held in memory, and those of plugins looked at one by one.
const maxEntries = 10000

// Options choose among what is mounted.
type Options struct {
	// Context is the name of the file that becomes CLAUDE.md; empty stands for
	// CLAUDE.md, which may be absent.
	Context string
	// Plugins and Agents are names; all that are there when empty.
	Plugins, Agents []string
}

// File is a file to be copied.
type File struct {
	// Name is what the copy is called.
	Name string
	// Path is the file's own.
	Path string
	Data []byte
}

// Injection is what was found.
type Injection struct {
	// Context is nil where there is none.
	Context *File
	// Plugins are directories in byte order of their names, or as they were chosen.
	Plugins []string
	Agents  []File
}

// Read reads the directory at path; one that does not exist holds nothing. It goes
// on after every problem.
func Read(path string, o Options) (Injection, problem.List) {
	r := reader{options: o}
	root, err := textfile.OpenRoot(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.notMounted(path)
		return r.found, r.problems
	case err != nil:
		r.fail("directory", path, textfile.Reason(err), "mount a directory that this user can read")
		return r.found, r.problems
	}
	defer root.Close()
	r.root = root
	r.readContext()
	r.readAgents()
	r.findPlugins()
	r.findUnknown()
	return r.found, r.problems
}

type reader struct {
	root     *textfile.Root
	options  Options
	found    Injection
	problems problem.List
}

func (r *reader) fail(what, path, why, hint string) {
	r.problems.Add(problem.Problem{What: "cannot inject " + what, File: path, Why: why, Hint: hint})
}

func (r *reader) warn(what, path, why string) {
	r.problems.Add(problem.Problem{Severity: problem.Warning, What: what, File: path, Why: why})
}

func (r *reader) path(name string) string { return filepath.Join(r.root.Name(), name) }

// notMounted refuses settings that choose among nothing.
func (r *reader) notMounted(path string) {
	for _, s := range []struct {
		name string
		set  bool
	}{{"CONTEXT", r.options.Context != ""}, {"PLUGINS", len(r.options.Plugins) > 0}, {"AGENTS", len(r.options.Agents) > 0}} {
		if s.set {
			r.problems.Add(problem.Problem{What: "cannot use AGENTIC_WORKSPACE_" + s.name, File: path, Why: "it does not exist", Hint: "mount a directory there"})
		}
	}
}

// plain tells whether a name that was chosen is one of an entry, and says so if
// not.
func (r *reader) plain(setting, name string) bool {
	if name != "" && !strings.Contains(name, "/") && !strings.HasPrefix(name, ".") {
		return true
	}
	r.problems.Add(problem.Problem{What: "cannot use AGENTIC_WORKSPACE_" + setting, Why: fmt.Sprintf("%q is no plain name", name),
		Hint: "give names of entries, without a slash or a leading dot"})
	return false
}

func (r *reader) readContext() {
	name := r.options.Context
	if name == "" {
		if !r.root.Exists(Context) {
			return
		}
		name = Context
	} else if !r.plain("CONTEXT", name) {
		return
	}
	data, err := r.root.Read(name)
	if err != nil {
		r.fail("CLAUDE.md", r.path(name), reason(err), "")
		return
	}
	r.found.Context = &File{Context, r.path(name), data}
}

func (r *reader) readAgents() {
	names := r.options.Agents
	if len(names) == 0 {
		for _, e := range r.list(agents) {
			name, ok := strings.CutSuffix(e.Name, agentSuffix)
			switch {
			case strings.HasPrefix(e.Name, "."):
			case !ok:
				r.warn("agent", r.path(agents+"/"+e.Name), "it is left out: its name does not end in "+agentSuffix)
			default:
				names = append(names, name)
			}
		}
	} else {
		names = r.chosen("AGENTS", names)
	}
	for _, name := range names {
		file := name + agentSuffix
		data, err := r.root.Read(agents + "/" + file)
		if err != nil {
			r.fail("agent "+fmt.Sprintf("%q", name), r.path(agents+"/"+file), reason(err), "")
			continue
		}
		r.found.Agents = append(r.found.Agents, File{file, r.path(agents + "/" + file), data})
	}
}

func (r *reader) findPlugins() {
	names := r.options.Plugins
	if len(names) == 0 {
		for _, e := range r.list(plugins) {
			if !strings.HasPrefix(e.Name, ".") {
				names = append(names, e.Name)
			}
		}
	} else {
		names = r.withManifest(r.chosen("PLUGINS", names))
	}
	c := confined{reader: r, seen: map[string]bool{}}
	for _, name := range names {
		path := r.path(plugins + "/" + name)
		if c.check(path) {
			r.found.Plugins = append(r.found.Plugins, path)
		}
	}
}

// withManifest leaves those that are plugins: one that was chosen by its name has
// to be.
func (r *reader) withManifest(names []string) (with []string) {
	for _, name := range names {
		dir := plugins + "/" + name
		switch {
		case !r.root.Exists(dir):
			r.fail("plugin "+fmt.Sprintf("%q", name), r.path(dir), "it does not exist", "AGENTIC_WORKSPACE_PLUGINS names it")
		case !r.root.Exists(dir+"/.claude-plugin/plugin.json") && !r.root.Exists(dir+"/.kairo-plugin/plugin.json"):
			r.fail("plugin "+fmt.Sprintf("%q", name), r.path(dir), "it has no .claude-plugin/plugin.json", "AGENTIC_WORKSPACE_PLUGINS names it")
		default:
			with = append(with, name)
		}
	}
	return with
}

// chosen are the plain names, each once.
func (r *reader) chosen(setting string, names []string) (out []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] && r.plain(setting, name) {
			out = append(out, name)
		}
		seen[name] = true
	}
	return out
}

// list lists a directory of the mounted one, which may be absent.
func (r *reader) list(name string) []textfile.Entry {
	entries, err := r.root.List(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !r.root.Exists(name):
	case err != nil:
		r.fail(name, r.path(name), reason(err), "")
	case len(entries) > maxEntries:
		r.fail(name, r.path(name), tooMany, "")
		return nil
	}
	return entries
}

var tooMany = fmt.Sprintf("it holds more than %d files", maxEntries)

// findUnknown names what would go unnoticed. Kubernetes keeps what it mounts
// behind hidden names.
func (r *reader) findUnknown() {
	for _, e := range r.list(".") {
		switch name := e.Name; {
		case name == plugins || name == agents || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".md"):
		case name != r.options.Context:
			r.warn("injection", r.path(name), "it is not known: CLAUDE.md, plugins and agents are")
		}
	}
}

// reason explains that a symlink was not followed, for which os.Root has words of
// its own.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) && strings.Contains(pe.Err.Error(), "escapes") {
		return "it is a symlink that leads out of the mounted directory"
	}
	return textfile.Reason(err)
}

package plugin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent-init/internal/atomicfile"
	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// Reason is why a plugin needs a view.
type Reason int

const (
	// ExecHooks: hooks in exec form do not go through CLAUDE_CODE_SHELL_PREFIX,
	// so the view starts them through ViewOptions.TapExec.
	ExecHooks Reason = iota
	// SessionEndTimeout: the CLI gives a SessionEnd hook without a timeout of its
	// own 1.5 s.
	SessionEndTimeout
	// KairoManifest: the CLI does not read .kairo-plugin.
	KairoManifest
	// KairoNames: the CLI knows neither Kairo's constants for hook events nor its
	// variables.
	KairoNames
)

var reasonNames = [...]string{ExecHooks: "exec_form_hooks", SessionEndTimeout: "session_end_timeout", KairoManifest: "kairo_manifest", KairoNames: "kairo_names"}

// String is the name that reports use.
func (r Reason) String() string { return reasonNames[r] }

// reasons are in ascending order.
type reasons []Reason

func (rs *reasons) add(r Reason) {
	if i, found := slices.BinarySearch(*rs, r); !found {
		*rs = slices.Insert(*rs, i, r)
	}
}

// ViewOptions say where a view goes and what its hooks become.
type ViewOptions struct {
	// Dir is the directory of all views.
	Dir string
	// TapExec is the program that starts the commands of hooks in exec form: it
	// gets the command and its arguments as its own. Without it hooks are started
	// and ended as the plugin has it.
	TapExec string
	// SessionEndTimeout is what SessionEnd hooks without a timeout get, in seconds.
	SessionEndTimeout int
}

// View is a directory that the agent CLI loads in place of a plugin's own. It
// holds symlinks to what is as the plugin has it and files that are not.
type View struct {
	// Plugin is the plugin's name, Path the view's directory.
	Plugin, Path string
	Reasons      []Reason
	Links        []Link
	Files        []atomicfile.File
}

// Link is a symlink to be made.
type Link struct{ Path, Target string }

// View is what the CLI is to load in place of the plugin; ok is false where
// nothing speaks against the plugin itself.
func (p Plugin) View(o ViewOptions) (v View, ok bool, found problem.List) {
	w := &weaver{plugin: p, options: o, replaced: map[string][]byte{}}
	if p.Format == Kairo {
		w.reasons.add(KairoManifest)
	}
	for _, doc := range p.sources {
		w.weave(doc)
	}
	if slices.Contains(w.reasons, KairoManifest) || slices.Contains(w.reasons, KairoNames) {
		found.Add(w.weaveDeclared()...)
		w.markdown(claudeNames)
	} else if len(w.replaced) > 0 {
		w.markdown(nil)
	}
	if len(w.replaced) == 0 {
		return View{}, false, found
	}
	v = View{Plugin: p.Name, Path: filepath.Join(o.Dir, filepath.Base(p.Path)), Reasons: w.reasons}
	err := w.spread(&v)
	if err != nil {
		found.Add(unreadable("plugin", p.Path, err))
	}
	return v, true, found
}

// weaver collects the files of a view.
type weaver struct {
	plugin  Plugin
	options ViewOptions
	reasons reasons
	// replaced are the files that differ from the plugin's, by their paths in it.
	replaced map[string][]byte
}

// Places of the files that the CLI finds without a manifest that names them.
const (
	manifestFile = ".claude-plugin/plugin.json"
	hooksFile    = "hooks/hooks.json"
	mcpFile      = ".mcp.json"
	lspFile      = ".lsp.json"
	monitorsFile = "monitors/monitors.json"
)

// weave rewrites one of the files that were read with the plugin.
func (w *weaver) weave(doc *jsondoc.Document) {
	name := strings.TrimPrefix(doc.Path, w.plugin.Path+"/")
	r := &rewrite{doc: doc, options: w.options, reasons: &w.reasons}
	switch {
	case doc.Path == w.plugin.Manifest:
		name = manifestFile
		r.manifest()
		if w.plugin.Format == Kairo {
			w.replaced[name] = r.result()
		}
	case name == mcpFile || name == lspFile:
		r.names(doc.Root)
	default:
		events, _ := doc.Root.Get("hooks")
		r.events(events)
	}
	if len(r.edits) > 0 {
		w.replaced[name] = r.result()
	}
}

// manifest rewrites what a manifest itself declares.
func (r *rewrite) manifest() {
	for _, m := range r.doc.Root.Members {
		switch m.Name {
		case "hooks":
			r.events(m.Value)
			for _, e := range m.Value.Elements {
				r.events(e)
			}
		case "mcpServers", "lspServers", "commands", "monitors", "experimental", "channels":
			r.names(m.Value)
		}
	}
}

// weaveDeclared rewrites the JSON files that are read for Kairo's names alone.
func (w *weaver) weaveDeclared() (found problem.List) {
	names := []string{monitorsFile}
	root := w.manifestRoot()
	for _, field := range []string{"mcpServers", "lspServers", "monitors"} {
		v, _ := root.Get(field)
		names = append(names, declaredPaths(v)...)
	}
	experimental, _ := root.Get("experimental")
	monitors, _ := experimental.Get("monitors")
	names = append(names, declaredPaths(monitors)...)
	for _, name := range names {
		// An MCP server may come as a bundle, too.
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		path := filepath.Join(w.plugin.Path, name)
		data, err := textfile.Read(path)
		if _, done := w.replaced[name]; done || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			found.Add(unreadable("plugin file", path, err))
			continue
		}
		doc, bad := jsondoc.Parse("plugin file", path, data)
		if bad != nil {
			found.Add(*bad)
			continue
		}
		r := &rewrite{doc: doc, options: w.options, reasons: &w.reasons}
		if r.names(doc.Root); len(r.edits) > 0 {
			w.replaced[name] = r.result()
		}
	}
	return found.Downgraded()
}

func (w *weaver) manifestRoot() jsondoc.Value {
	for _, doc := range w.plugin.sources {
		if doc.Path == w.plugin.Manifest {
			return doc.Root
		}
	}
	return jsondoc.Value{}
}

// declaredPaths are the files and directories that a manifest's field names,
// relative to the plugin and clean. The CLI takes no others than those that
// begin with "./" and stay in the plugin.
func declaredPaths(v jsondoc.Value) (paths []string) {
	switch v.Kind {
	case '"':
		if name := filepath.Clean(v.Text); strings.HasPrefix(v.Text, "./") && filepath.IsLocal(name) {
			paths = append(paths, name)
		}
	case '[':
		for _, e := range v.Elements {
			if e.Kind == '"' {
				paths = append(paths, declaredPaths(e)...)
			}
		}
	}
	return paths
}

// Write makes the view. What an earlier start left is to be removed before.
func (v View) Write() error {
	if err := os.MkdirAll(v.Path, 0o700); err != nil {
		return err
	}
	last := v.Path
	for _, l := range v.Links {
		if dir := filepath.Dir(l.Path); dir != last {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			last = dir
		}
		if err := os.Symlink(l.Target, l.Path); err != nil {
			return err
		}
	}
	for _, f := range v.Files {
		if _, err := f.Write(); err != nil {
			return err
		}
	}
	return nil
}

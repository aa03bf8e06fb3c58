package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// PrefixVariable names the program that Claude Code puts before shell-form hooks,
// Bash tool commands and stdio MCP servers.
const PrefixVariable = "CLAUDE_CODE_SHELL_PREFIX"

// Session is where and how Claude Code is started.
type Session struct {
	// Env is its environment.
	Env func(string) string
	// Root is the root of the file system, "/" but for tests: managed settings
	// are below it.
	Root string
	// Dir is its working directory, absolute.
	Dir string
	// Args are its arguments, without the program's name.
	Args []string
}

// Settings is what settings files do to the tap.
//
// Seen with Claude Code 2.1.197, in every mode: a variable of "env" in settings
// overrides the environment, and of several settings the last in this order
// counts: user, project, local, --settings, managed-settings.json, its drop-ins
// in byte order. An empty value counts too, and switches the prefix off. Project
// and local files are those of the working directory alone, not of a parent or
// of the repo's root. --setting-sources leaves out user, project or local files,
// never the others. "disableAllHooks" follows the same order. --bare and
// CLAUDE_CODE_SIMPLE run no hooks, but "env" counts under them.
type Settings struct {
	// Prefix is the prefix that counts without the tap's; may be empty.
	Prefix string
	// Managed says that managed settings set the prefix. They win over
	// --settings, so that the tap's prefix has no effect.
	Managed bool
	// HooksOff says that hooks of plugins do not run.
	HooksOff bool

	flag     option
	flagFile string
	flagDoc  *jsondoc.Document
}

// source is one settings file, or the JSON of --settings.
type source struct {
	managed bool
	doc     *jsondoc.Document
}

// ReadSettings reads the settings that Claude Code would read. All findings are
// warnings: a settings file that is wrong does not keep the CLI from running.
func ReadSettings(s Session) (Settings, problem.List) {
	out := Settings{Prefix: s.Env(PrefixVariable)}
	var found problem.List
	var sources []source
	for _, file := range s.files() {
		doc, bad := readSettings(file)
		found.Add(bad...)
		sources = append(sources, source{doc: doc})
	}
	if flag, ok := lastOption(s.Args, "--settings"); ok {
		out.flag = flag
		found.Add(out.readFlag(s.Dir)...)
		sources = append(sources, source{doc: out.flagDoc})
	}
	for _, file := range managedFiles(s.Root) {
		// What is wrong with these, package mcp reports.
		doc, _ := readSettings(file)
		sources = append(sources, source{managed: true, doc: doc})
	}
	found.Add(out.apply(sources)...)
	return out, found
}

// files are the user's, the project's and the local settings, as far as
// --setting-sources asks for them.
func (s Session) files() (files []string) {
	user := s.Env("CLAUDE_CONFIG_DIR")
	if user == "" && s.Env("HOME") != "" {
		user = filepath.Join(s.Env("HOME"), ".claude")
	}
	chosen, limited := lastOption(s.Args, "--setting-sources")
	wanted := func(name string) bool {
		if !limited {
			return true
		}
		for w := range strings.SplitSeq(chosen.value, ",") {
			if strings.TrimSpace(w) == name {
				return true
			}
		}
		return false
	}
	if user != "" && wanted("user") {
		files = append(files, inDir(s.Dir, filepath.Join(user, "settings.json")))
	}
	if wanted("project") {
		// In the home directory this is the user's file once more.
		if file := filepath.Join(s.Dir, ".claude", "settings.json"); len(files) == 0 || files[0] != file {
			files = append(files, file)
		}
	}
	if wanted("local") {
		files = append(files, filepath.Join(s.Dir, ".claude", "settings.local.json"))
	}
	return files
}

func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// managedFiles are managed-settings.json and its drop-ins in byte order.
func managedFiles(root string) []string {
	dir := filepath.Join(root, "etc/claude-code")
	files := []string{filepath.Join(dir, "managed-settings.json")}
	dir = filepath.Join(dir, "managed-settings.d")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files
}

// readSettings reads one file; doc is nil when Claude Code takes nothing from it.
func readSettings(file string) (doc *jsondoc.Document, found problem.List) {
	data, err := textfile.Read(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, problem.List{{Severity: problem.Warning, What: "cannot read settings", File: file, Why: textfile.Reason(err),
			Hint: "see whether it sets " + PrefixVariable + " or disableAllHooks, with which events may be lost"}}
	}
	return parseSettings(file, data)
}

// parseSettings parses what the CLI would take: it skips a byte order mark, and
// passes over a file whole, without a word, that is empty, no JSON or has a value
// of a wrong type.
func parseSettings(file string, data []byte) (doc *jsondoc.Document, found problem.List) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	doc, bad := jsondoc.Parse("settings", file, data)
	if bad != nil {
		bad.Severity, bad.Hint = problem.Warning, "Claude Code passes over the whole file; mend it"
		if strings.HasPrefix(bad.Why, "duplicate key") {
			bad.Hint = "Claude Code takes the last one, agent-init does not look into the file; remove one"
		}
		return nil, problem.List{*bad}
	}
	wrong := func(v jsondoc.Value, why string) (*jsondoc.Document, problem.List) {
		return nil, problem.List{doc.Warning(v.Start, why+"; Claude Code passes over the whole file", "")}
	}
	if doc.Root.Kind != '{' {
		return wrong(doc.Root, "it holds "+doc.Root.KindName()+", not an object")
	}
	if env, ok := doc.Root.Get("env"); ok && env.Kind != '{' {
		return wrong(env, `"env" is `+env.KindName()+", not an object")
	}
	if off, ok := doc.Root.Get("disableAllHooks"); ok && !off.IsBool() {
		return wrong(off, `"disableAllHooks" is `+off.KindName()+", not true or false")
	}
	return doc, nil
}

// apply goes through the sources, from the weakest to the strongest.
func (s *Settings) apply(sources []source) (found problem.List) {
	var prefix, off, only *problem.Problem
	for _, src := range sources {
		if src.doc == nil {
			continue
		}
		env, _ := src.doc.Root.Get("env")
		if v, ok := env.Get(PrefixVariable); ok {
			s.Prefix = v.Text
			if v.Kind != '"' {
				s.Prefix = string(src.doc.Raw(v))
			}
			if src.managed {
				p := src.doc.Warning(v.Start, "managed settings set "+PrefixVariable+", and nothing can override them: events of hooks do not reach agent-init",
					"remove it from there")
				prefix = &p
			}
		}
		if v, ok := src.doc.Root.Get("disableAllHooks"); ok {
			off = hooksOff(src.doc, v, "disableAllHooks", "no hook runs, those of plugins neither")
		}
		if v, ok := src.doc.Root.Get("allowManagedHooksOnly"); ok && src.managed {
			only = hooksOff(src.doc, v, "allowManagedHooksOnly", "hooks of plugins do not run")
		}
	}
	s.Managed, s.HooksOff = prefix != nil, off != nil || only != nil
	for _, p := range []*problem.Problem{prefix, off, only} {
		if p != nil {
			found.Add(*p)
		}
	}
	if s.HooksOff {
		return found
	}
	for _, src := range sources {
		if src.doc != nil {
			found.Add(untapped(src.doc)...)
		}
	}
	return found
}

func hooksOff(doc *jsondoc.Document, v jsondoc.Value, name, effect string) *problem.Problem {
	if v.Kind != 't' {
		return nil
	}
	p := doc.Warning(v.Start, fmt.Sprintf("%q is true: %s, and their events are missing", name, effect), "set it to false if the events are wanted")
	return &p
}

// untapped reports the command hooks that the CLI starts without the prefix: those
// in exec form, which is any with "args", and those for PowerShell.
func untapped(doc *jsondoc.Document) problem.List {
	var first jsondoc.Value
	var events []string
	count := 0
	hooks, _ := doc.Root.Get("hooks")
	for _, event := range hooks.Members {
		before := count
		for _, matcher := range event.Value.Elements {
			list, _ := matcher.Get("hooks")
			for _, hook := range list.Elements {
				at, ok := hook.Get("args")
				if shell, other := hook.Get("shell"); !ok && other && shell.Text == "powershell" {
					at, ok = shell, true
				}
				if !ok {
					continue
				}
				if count++; count == 1 {
					first = at
				}
			}
		}
		if count > before {
			events = append(events, event.Name)
		}
	}
	switch count {
	case 0:
		return nil
	case 1:
		return problem.List{doc.Warning(first.Start, "a hook for "+events[0]+` has "args" or runs in PowerShell: what it writes to stderr is not collected`, `write it without "args", or as a plugin's hook`)}
	}
	return problem.List{doc.Warning(first.Start, fmt.Sprintf(`%d hooks (%s) have "args" or run in PowerShell: what they write to stderr is not collected`, count, strings.Join(events, ", ")), `write them without "args", or as a plugin's hooks`)}
}

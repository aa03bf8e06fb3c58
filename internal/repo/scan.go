package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"agent-init/internal/mcp"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// opsDir is where a repo keeps its extensions.
const opsDir = ".claude-ops"

// Scan reads the repos below dir, their MCP configs included, and reports every
// fault in them. A directory that does not exist has no repos.
//
// What cannot be used as a repo, and an MCP config or .claude-ops directory that
// cannot be read, are Errors, or Warnings with Skip. A markdown file that cannot
// be read, is over textfile.Limit or is a symlink out of its repo is a Warning:
// no server hides in it.
func Scan(dir string, opts Options) (Map, problem.List) {
	names, err := textfile.Names(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !danglingLink(dir):
		return Map{}, nil
	case errors.Is(err, syscall.ENOTDIR):
		return Map{}, problem.List{{What: "cannot use repos directory", File: dir, Why: "it is a file, not a directory", Hint: "let AGENTIC_REPOS_DIR name a directory"}}
	case err != nil:
		return Map{}, problem.List{{What: "cannot read repos directory", File: dir, Why: textfile.Reason(err), Hint: "let AGENTIC_REPOS_DIR name a readable directory"}}
	}
	s := scanner{opts: opts}
	repos := make([]Repo, 0, len(names))
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		if r, ok := s.scan(dir, name); ok {
			repos = append(repos, r)
		}
	}
	return Map{repos}, s.found
}

func danglingLink(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// scanner collects the findings of a scan.
type scanner struct {
	opts  Options
	found problem.List
	// root is the repo at hand.
	root *textfile.Root
	// text and lines are memory for the file at hand.
	text  []byte
	lines []line
	// warner reports on it.
	warner warner
}

func (s *scanner) refuse(p problem.Problem) {
	if s.opts.Skip {
		p.Severity = problem.Warning
	}
	s.found.Add(p)
}

func (s *scanner) warn(what, file string, at place, why, hint string) {
	s.found.Add(problem.Problem{Severity: problem.Warning, What: what, File: file, Line: at.line, Column: at.column, Why: why, Hint: hint})
}

// maxWarnings bounds those about one file: nobody reads more, and a hostile
// file could otherwise hold thousands.
const maxWarnings = 100

// warner counts the warnings about one file.
type warner struct {
	s          *scanner
	what, file string
	count      int
}

// about begins the warnings about another file.
func (s *scanner) about(what, file string) *warner {
	s.warner = warner{s: s, what: what, file: file}
	return &s.warner
}

func (w *warner) warn(at place, why string) {
	if w.count++; w.count <= maxWarnings {
		w.s.warn(w.what, w.file, at, why, "")
	}
}

// close says how many warnings went unsaid.
func (w *warner) close() {
	if n := w.count - maxWarnings; n > 0 {
		w.s.warn(w.what, w.file, place{}, strconv.Itoa(n)+" more warnings about this file are not shown", "")
	}
}

// scan reads one repo; ok is false when the entry is none.
func (s *scanner) scan(dir, name string) (r Repo, ok bool) {
	r = Repo{Name: name, Path: filepath.Join(dir, name), Source: Manifest}
	// With the slash only a directory is opened: a FIFO would block.
	root, err := textfile.OpenRoot(r.Path + "/")
	if err != nil {
		s.refuse(notARepo(r.Path, err))
		return r, false
	}
	defer root.Close()
	s.root = root
	if !utf8.ValidString(name) {
		s.warn("repo", r.Path, place{}, "its name is not valid UTF-8, and the repo map shows U+FFFD in it", "rename the directory")
	}
	r.Writable = writable(r.Path)
	declared := s.readManifest(&r)
	extended := s.readExtensions(&r)
	if !declared {
		if !extended {
			r.Source = Inferred
		}
		s.infer(&r)
	}
	return r, true
}

func notARepo(path string, err error) problem.Problem {
	p := problem.Problem{What: "cannot use repo", File: path, Why: textfile.Reason(err), Hint: "mount the directory, remove it, or hide it with a leading dot"}
	info, statErr := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Why, p.Hint = "it is a symlink to nothing", "mount what it points to, remove it, or hide it with a leading dot"
	case errors.Is(err, fs.ErrPermission):
		p.Hint = "make it readable, or hide it with a leading dot"
	case statErr == nil && info.Mode().IsRegular():
		p.Why = "it is a file, not a directory"
	case statErr == nil && !info.IsDir():
		p.Why = "it is not a directory"
	}
	return p
}

// readManifest reads CLAUDE-OPS.md, if there is one.
func (s *scanner) readManifest(r *Repo) bool {
	const what = "repo manifest"
	file := r.Path + "/" + manifestName
	text, err := s.read(manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		if !s.root.Exists(manifestName) {
			return false
		}
		s.warn(what, file, place{}, "it is a symlink to nothing", "")
		return false
	}
	if err != nil {
		s.warn(what, file, place{}, reason(err), "")
		return false
	}
	w := s.about(what, file)
	s.lines = r.parseManifest(s.lines, text, w.warn)
	w.close()
	return true
}

// errText says what is wrong with the content of a markdown file.
type errText string

func (e errText) Error() string { return string(e) }

// read reads a markdown file of the repo at hand.
func (s *scanner) read(name string) (string, error) {
	data, err := s.root.ReadInto(s.text, name)
	if err != nil {
		return "", err
	}
	s.text = data
	text := string(data)
	if !utf8.ValidString(text) {
		return "", errText("it is not valid UTF-8")
	}
	if strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")) == "" {
		return "", errText("it is empty")
	}
	return text, nil
}

// reason is textfile.Reason, with os.Root's refusal in plain words.
func reason(err error) string {
	why := textfile.Reason(err)
	if why == "path escapes from parent" {
		return "it is a symlink that leads out of the repo, and is not followed"
	}
	return why
}

// readExtensions reads .claude-ops; it returns whether there is anything in it.
func (s *scanner) readExtensions(r *Repo) (extended bool) {
	file := r.Path + "/" + opsDir
	names, err := s.root.Names(opsDir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.refuse(problem.Problem{What: "cannot read", File: file, Why: reason(err), Hint: "make it a readable directory of the repo, or remove it"})
		} else if s.root.Exists(opsDir) {
			s.refuse(problem.Problem{What: "cannot read", File: file, Why: "it is a symlink to nothing", Hint: "mend the symlink or remove it"})
		}
		return false
	}
	for _, name := range names {
		switch name {
		case "checks":
			r.Checks = s.readDocuments(r, "check", name)
		case "playbooks":
			r.Playbooks = s.readDocuments(r, "playbook", name)
		case "skills":
			r.Skills = s.readDocuments(r, "skill", name)
		case "mcp.json":
			s.readMCP(r)
		default:
			if !strings.HasPrefix(name, ".") {
				s.warn("repo", filepath.Join(file, name), place{}, "unknown name in "+opsDir, "known: checks, playbooks, skills, mcp.json")
			}
			continue
		}
		extended = true
	}
	return extended
}

func (s *scanner) readMCP(r *Repo) {
	doc, bad := mcp.ReadIn(s.root, opsDir+"/mcp.json", "MCP config")
	if bad != nil {
		if bad.Why == "path escapes from parent" {
			bad.Why = "it is a symlink that leads out of the repo, and is not followed"
			bad.Hint = "put the file itself into the repo"
		}
		if s.opts.Skip {
			bad.Hint = "none of the repo's MCP servers is used"
		}
		s.refuse(*bad)
	}
	if doc == nil {
		return
	}
	r.MCP = mcp.File{Repo: r.Name, Doc: doc}
	servers, _ := doc.Root.Get("mcpServers")
	for _, m := range servers.Members {
		r.MCPServers = append(r.MCPServers, m.Name)
	}
}

// readDocuments reads the markdown files of one directory in .claude-ops.
func (s *scanner) readDocuments(r *Repo, what, dir string) (docs []Document) {
	rel := opsDir + "/" + dir
	names, err := s.root.Names(rel)
	if err != nil {
		why := reason(err)
		if errors.Is(err, syscall.ENOTDIR) {
			why = "it is no directory"
		}
		s.warn("repo", filepath.Join(r.Path, rel), place{}, why, "its "+dir+" are not read")
		return nil
	}
	for i, base := range names {
		name, isMarkdown := strings.CutSuffix(base, ".md")
		file := r.Path + "/" + rel + "/" + base
		switch {
		case strings.HasPrefix(base, "."):
		case !isMarkdown:
			s.warn(what, file, place{}, "unknown name in "+rel, "only files named *.md are read")
		default:
			docs = slices.Grow(docs, len(names)-i)
			d := Document{Name: name, Path: file}
			if s.readDocument(what, file[len(r.Path)+1:], &d) {
				docs = append(docs, d)
			}
		}
	}
	return docs
}

// readDocument reads one check, playbook or skill. One without readable text is
// listed by its name; one that is no file of the repo is not listed.
func (s *scanner) readDocument(what, rel string, d *Document) (ok bool) {
	text, err := s.read(rel)
	if err != nil {
		why := reason(err)
		if errors.Is(err, fs.ErrNotExist) {
			why = "it is a symlink to nothing"
		}
		s.warn(what, d.Path, place{}, why, "")
		var content errText
		return errors.As(err, &content)
	}
	w := s.about(what, d.Path)
	defer w.close()
	warn := w.warn
	head := splitFrontmatter(text, warn)
	s.lines = lex(s.lines, head.body, head.first)
	d.Title = title(s.lines, 6)
	if d.Description, _ = head.scalar("description", warn); d.Description == "" {
		d.Description = firstParagraph(s.lines)
	}
	d.Requires, d.requiresAt = head.list("requires", warn)
	d.RequiresMCP, d.requiresMCPAt = head.list("requires_mcp", warn)
	return true
}

// infer describes a repo by its README and its top-level files.
func (s *scanner) infer(r *Repo) {
	entries, err := s.root.List(".")
	if err != nil {
		s.refuse(problem.Problem{What: "cannot read repo", File: r.Path, Why: reason(err), Hint: "make it readable, or hide it with a leading dot"})
		return
	}
	var names []string
	for _, e := range entries {
		name := e.Name
		if strings.EqualFold(name, manifestName) && name != manifestName {
			s.warn("repo", filepath.Join(r.Path, name), place{}, "it is not read", "rename it to "+manifestName)
		}
		names = append(names, name)
		if e.IsDir() {
			name += "/"
		}
		if name != ".git/" && len(r.Files) < MaxFiles {
			r.Files = append(r.Files, name)
		}
	}
	readme := pickReadme(names)
	if readme == "" {
		return
	}
	text, err := s.read(readme)
	if err != nil {
		s.warn("repo", filepath.Join(r.Path, readme), place{}, reason(err), "")
		return
	}
	r.describe(readme, text)
}

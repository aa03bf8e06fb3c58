package repo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"agent-init/internal/mcp"
	"agent-init/internal/problem"
)

// AppendJSON appends the map as an indented document with a newline at its end.
// A list without entries is [], never null. Bytes of a name that are no UTF-8
// appear as U+FFFD: such a path cannot be opened as the map spells it, and Scan
// has warned about it.
func (m Map) AppendJSON(b []byte) []byte {
	size := 64
	for i := range m.Repos {
		size += m.Repos[i].jsonSize()
	}
	w := writer{out: slices.Grow(b, size)}
	w.begin('{')
	list(&w, "repos", m.Repos, (*writer).repo)
	w.end('}')
	return append(w.out, '\n')
}

// jsonSize is about what the repo takes in the document, escapes aside: enough
// that the document seldom has to move as it grows.
func (r *Repo) jsonSize() int {
	const repo, document, element = 420, 220, 20
	n := repo + len(r.Name) + len(r.Path) + len(r.Description) + len(r.Kind)
	for _, c := range r.Capabilities {
		n += 5*element + len(c.Name) + len(c.Description)
	}
	for _, names := range [][]string{r.Rules, r.MCPServers, r.Files} {
		n += element * len(names)
		for _, name := range names {
			n += len(name)
		}
	}
	for _, docs := range [][]Document{r.Checks, r.Playbooks, r.Skills} {
		for i := range docs {
			d := &docs[i]
			n += document + len(d.Name) + len(d.Path) + len(d.Title) + len(d.Description) + 2*element*(len(d.Requires)+len(d.RequiresMCP))
		}
	}
	return n
}

// writer writes JSON with two spaces of indent for each level.
type writer struct {
	out   []byte
	depth int
	// filled says that the innermost object or list has an entry.
	filled bool
}

func (w *writer) begin(bracket byte) {
	w.out = append(w.out, bracket)
	w.depth++
	w.filled = false
}

func (w *writer) end(bracket byte) {
	w.depth--
	if w.filled {
		w.line()
	}
	w.out = append(w.out, bracket)
	w.filled = true
}

func (w *writer) line() {
	const blanks = "\n                "
	w.out = append(w.out, blanks[:1+2*w.depth]...)
}

// next begins another entry.
func (w *writer) next() {
	if w.filled {
		w.out = append(w.out, ',')
	}
	w.filled = true
	w.line()
}

// quote puts U+FFFD where s is no UTF-8; the error says no more than that.
func (w *writer) quote(s string) { w.out, _ = jsontext.AppendQuote(w.out, s) }

// name begins a member; no name needs an escape.
func (w *writer) name(name string) {
	w.next()
	w.out = append(w.out, '"')
	w.out = append(w.out, name...)
	w.out = append(w.out, `": `...)
}

func (w *writer) text(name, value string) {
	w.name(name)
	w.quote(value)
}

func list[T any](w *writer, name string, values []T, write func(*writer, *T)) {
	w.name(name)
	w.begin('[')
	for i := range values {
		w.next()
		write(w, &values[i])
	}
	w.end(']')
}

func (w *writer) element(s *string) { w.quote(*s) }

func (w *writer) repo(r *Repo) {
	w.begin('{')
	w.text("name", r.Name)
	w.text("path", r.Path)
	w.text("source", r.Source)
	w.text("version", r.Version)
	w.text("description", r.Description)
	w.text("kind", r.Kind)
	list(w, "capabilities", r.Capabilities, (*writer).capability)
	list(w, "rules", r.Rules, (*writer).element)
	list(w, "checks", r.Checks, (*writer).document)
	list(w, "playbooks", r.Playbooks, (*writer).document)
	list(w, "skills", r.Skills, (*writer).document)
	list(w, "mcp_servers", r.MCPServers, (*writer).element)
	list(w, "files", r.Files, (*writer).element)
	w.name("writable")
	w.out = strconv.AppendBool(w.out, r.Writable)
	w.end('}')
}

func (w *writer) capability(c *Capability) {
	w.begin('{')
	w.text("name", c.Name)
	w.text("description", c.Description)
	w.end('}')
}

func (w *writer) document(d *Document) {
	w.begin('{')
	w.text("name", d.Name)
	w.text("path", d.Path)
	w.text("title", d.Title)
	w.text("description", d.Description)
	list(w, "requires", d.Requires, (*writer).element)
	list(w, "requires_mcp", d.RequiresMCP, (*writer).element)
	w.end('}')
}

// maxCell bounds a description in Text, in characters.
const maxCell = 60

// Text is the map as a table for people.
func (m Map) Text() string {
	if len(m.Repos) == 0 {
		return "no repos\n"
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tSOURCE\tACCESS\tKIND\tCHECKS\tPLAYBOOKS\tSKILLS\tMCP SERVERS\tDESCRIPTION")
	for _, r := range m.Repos {
		access := "read-only"
		if r.Writable {
			access = "writable"
		}
		servers := make([]string, len(r.MCPServers))
		for i, s := range r.MCPServers {
			servers[i] = problem.Path(s)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", problem.Path(r.Name), r.Source, access, cell(r.Kind),
			len(r.Checks), len(r.Playbooks), len(r.Skills), cell(strings.Join(servers, ", ")), cell(r.Description))
	}
	t.Flush()
	return b.String()
}

// cell is text that fits into a table: printable, cut, never empty.
func cell(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > maxCell {
		s = string(runes[:maxCell-3]) + "..."
	}
	if s == "" {
		return "-"
	}
	return s
}

// CheckRequirements warns about requirements that neither the repos nor the
// merged MCP servers meet. Server names are compared normalised; a repo's own
// server counts under the name that it gets in a namespace too.
func (m Map) CheckRequirements(servers []string) (found problem.List) {
	known := map[string]bool{}
	for _, r := range m.Repos {
		for _, c := range r.Capabilities {
			known[c.Name] = true
		}
		r.eachDocument(func(_ string, d Document) { known[d.Name] = true })
	}
	running := map[string]bool{}
	for _, s := range servers {
		running[mcp.Normalise(s)] = true
	}
	for _, r := range m.Repos {
		r.eachDocument(func(what string, d Document) {
			unmet := func(at place, why string) {
				found.Add(problem.Problem{Severity: problem.Warning, What: what, File: d.Path, Line: at.line, Column: at.column, Why: why})
			}
			for i, name := range d.Requires {
				if !known[name] {
					unmet(d.requiresAt[i], "it requires "+strconv.Quote(name)+", which no repo has")
				}
			}
			for i, name := range d.RequiresMCP {
				if !running[mcp.Normalise(name)] && !running[mcp.Normalise(r.Name+"_"+name)] {
					unmet(d.requiresMCPAt[i], "it requires the MCP server "+strconv.Quote(name)+", which the agent does not get")
				}
			}
		})
	}
	return found
}

func (r Repo) eachDocument(visit func(what string, d Document)) {
	for _, kind := range []struct {
		what string
		docs []Document
	}{{"check", r.Checks}, {"playbook", r.Playbooks}, {"skill", r.Skills}} {
		for _, d := range kind.docs {
			visit(kind.what, d)
		}
	}
}

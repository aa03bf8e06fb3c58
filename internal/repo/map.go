package repo

import (
	"bytes"
	"fmt"
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
	buf := bytes.NewBuffer(b)
	w := writer{jsontext.NewEncoder(buf, jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))}
	w.token(jsontext.BeginObject)
	list(w, "repos", m.Repos, writer.repo)
	w.token(jsontext.EndObject)
	return buf.Bytes()
}

type writer struct{ *jsontext.Encoder }

// token cannot fail: the names are distinct and a buffer takes everything.
func (w writer) token(t jsontext.Token) { _ = w.WriteToken(t) }

func (w writer) text(name, value string) {
	w.token(jsontext.String(name))
	w.token(jsontext.String(value))
}

func list[T any](w writer, name string, values []T, write func(writer, T)) {
	w.token(jsontext.String(name))
	w.token(jsontext.BeginArray)
	for _, v := range values {
		write(w, v)
	}
	w.token(jsontext.EndArray)
}

func (w writer) element(s string) { w.token(jsontext.String(s)) }

func (w writer) repo(r Repo) {
	w.token(jsontext.BeginObject)
	w.text("name", r.Name)
	w.text("path", r.Path)
	w.text("source", r.Source)
	w.text("version", r.Version)
	w.text("description", r.Description)
	w.text("kind", r.Kind)
	list(w, "capabilities", r.Capabilities, writer.capability)
	list(w, "rules", r.Rules, writer.element)
	list(w, "checks", r.Checks, writer.document)
	list(w, "playbooks", r.Playbooks, writer.document)
	list(w, "skills", r.Skills, writer.document)
	list(w, "mcp_servers", r.MCPServers, writer.element)
	list(w, "files", r.Files, writer.element)
	w.token(jsontext.String("writable"))
	w.token(jsontext.Bool(r.Writable))
	w.token(jsontext.EndObject)
}

func (w writer) capability(c Capability) {
	w.token(jsontext.BeginObject)
	w.text("name", c.Name)
	w.text("description", c.Description)
	w.token(jsontext.EndObject)
}

func (w writer) document(d Document) {
	w.token(jsontext.BeginObject)
	w.text("name", d.Name)
	w.text("path", d.Path)
	w.text("title", d.Title)
	w.text("description", d.Description)
	list(w, "requires", d.Requires, writer.element)
	list(w, "requires_mcp", d.RequiresMCP, writer.element)
	w.token(jsontext.EndObject)
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

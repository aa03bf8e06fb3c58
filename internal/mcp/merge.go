package mcp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
)

const member = "mcpServers"

// Merge merges the repos' MCP configs, in their order, into the baseline, which
// may be nil. An entry replaces the whole entry of the same name where that one
// stands; new ones follow in the order of their first appearance. Other
// top-level members of the baseline are kept.
//
// Every entry is checked. One with a fault is in neither JSON nor Servers, so
// that a Result is sound even beside Errors. A fault in an entry that Allow or
// Deny leaves out is a Warning. Of each file at most 100 errors and 100 warnings
// are reported one by one, and the rest as a number.
func Merge(baseline *jsondoc.Document, repos []File, opts Options) (Result, problem.List) {
	servers := count(baseline)
	for _, f := range repos {
		servers += count(f.Doc)
	}
	m := merger{opts: opts, index: make(map[string]int, servers), entries: make([]entry, 0, servers)}
	reporters := make([]*reporter, 0, 1+len(repos))
	if baseline != nil {
		reporters = append(reporters, m.add(File{Doc: baseline}))
	}
	for _, f := range repos {
		if f.Doc != nil {
			reporters = append(reporters, m.add(f))
		}
	}
	for _, e := range m.entries {
		e.checkVariables(opts.Env)
	}
	var found problem.List
	for _, r := range reporters {
		r.close()
		found.Add(r.found...)
	}
	return m.result(baseline), found
}

// count is how many servers a file has, at most.
func count(doc *jsondoc.Document) int {
	if doc == nil {
		return 0
	}
	servers, _ := doc.Root.Get(member)
	return len(servers.Members)
}

// merger is a merge in progress.
type merger struct {
	opts    Options
	entries []entry
	// index finds an entry by its normalised name.
	index map[string]int
	left  []LeftOut
}

// entry is one server of one file.
type entry struct {
	Server
	*reporter
	// original is the name that its file has, at its offset there.
	original string
	at       int
	value    jsondoc.Value
	// renamed says that the name is no longer the file's.
	renamed bool
	// reason is why it is left out; empty when it is not.
	reason string
	faulty bool
}

// add checks a file and takes over its servers.
func (m *merger) add(f File) *reporter {
	r := &reporter{doc: f.Doc}
	entries := m.read(f, r)
	skipped := m.opts.Skip && f.Repo != "" && r.errors > 0
	if skipped {
		r.found = r.found.Downgraded()
		p := f.Doc.Warning(0, "it has faults, so that none of its servers is used", "mend it, or start with AGENTIC_PLUGIN_ERRORS=fail to refuse it")
		p.Line, p.Column = 0, 0
		r.found.Add(p)
	}
	for _, e := range entries {
		switch {
		case e.reason != "":
			m.left = append(m.left, LeftOut{e.original, e.File, e.reason})
		case skipped:
			m.left = append(m.left, LeftOut{e.original, e.File, "its MCP config has faults"})
		case !e.faulty:
			m.place(e)
		}
	}
	return r
}

// read checks the shape of a file and each of its entries.
func (m *merger) read(f File, r *reporter) (entries []entry) {
	root := f.Doc.Root
	if root.Kind != '{' {
		r.fault(root.Start, "it holds "+root.KindName()+", not an object", `write {"mcpServers": {...}}`)
		return nil
	}
	if f.Repo != "" {
		r.warnOthers(root)
	}
	servers, ok := root.Get(member)
	if !ok {
		hint := ""
		if _, other := root.Get("servers"); other {
			hint = `rename "servers" to "mcpServers"`
		}
		r.warn(root.Start, `it has no "mcpServers" and adds nothing`, hint)
		return nil
	}
	if servers.Kind != '{' {
		r.fault(servers.Start, `"mcpServers" is `+servers.KindName()+", not an object", "")
		return nil
	}
	entries = make([]entry, 0, len(servers.Members))
	for _, s := range servers.Members {
		entries = append(entries, m.entry(f, r, s))
	}
	return entries
}

// warnOthers names the members of a repo's file that the merge does not take.
func (r *reporter) warnOthers(root jsondoc.Value) {
	var names []string
	at := 0
	for _, o := range root.Members {
		if o.Name != member {
			if names == nil {
				at = o.NameStart
			}
			names = append(names, fmt.Sprintf("%q", o.Name))
		}
	}
	if names != nil {
		r.warn(at, "a repo adds only \"mcpServers\"; not taken: "+strings.Join(names, ", "), "")
	}
}

func (m *merger) entry(f File, r *reporter, s jsondoc.Member) entry {
	e := entry{Server: Server{Name: s.Name, File: f.Doc.Path, Repo: f.Repo}, reporter: r, original: s.Name, at: s.NameStart, value: s.Value}
	if f.Repo != "" {
		e.reason = m.excluded(s.Name)
		if m.opts.Collision == Namespace {
			e.renamed = true
			e.Name = strings.ToValidUTF8(f.Repo, "\ufffd") + "_" + s.Name
		}
	}
	before := r.errors
	r.lenient = e.reason != ""
	r.checkName(e.at, e.Name)
	e.Type = r.checkEntry(s.Name, e.at, s.Value)
	r.lenient = false
	e.faulty = r.errors > before
	return e
}

// excluded says why Allow or Deny leave a server out.
func (m *merger) excluded(name string) string {
	switch {
	case matches(m.opts.Deny, name):
		return "AGENTIC_MCP_DENY covers it"
	case len(m.opts.Allow) > 0 && !matches(m.opts.Allow, name):
		return "AGENTIC_MCP_ALLOW does not cover it"
	}
	return ""
}

// place puts a server in, in the place of one of the same name.
func (m *merger) place(e entry) {
	key := Normalise(e.Name)
	i, taken := m.index[key]
	if !taken {
		m.index[key] = len(m.entries)
		m.entries = append(m.entries, e)
		return
	}
	old := m.entries[i]
	m.reportCollision(e, old)
	e.Overrode = append(old.Overrode, Overridden{File: old.File, Repo: old.Repo, Name: old.Name})
	m.entries[i] = e
}

func (m *merger) reportCollision(e, old entry) {
	p := problem.Problem{File: old.File}
	if e.errors < maxFindings && e.warnings < maxFindings {
		p.Line, p.Column = old.doc.Position(old.at)
	}
	other := fmt.Sprintf("%q of %s", old.Name, p.Place())
	same := ""
	if e.Name != old.Name {
		same = fmt.Sprintf(": the agent spells both %q", Normalise(e.Name))
	}
	if m.opts.Collision == Error {
		e.fault(e.at, fmt.Sprintf("server %q collides with %s%s", e.Name, other, same),
			"rename one of them, or set AGENTIC_MCP_COLLISION to override or namespace")
		return
	}
	e.warn(e.at, fmt.Sprintf("server %q overrides %s%s", e.Name, other, same), "")
}

// result renders the merged file.
func (m *merger) result(baseline *jsondoc.Document) Result {
	res := Result{Left: m.left}
	b := append(make([]byte, 0, m.size(baseline)), '{')
	done := false
	if baseline != nil {
		for _, o := range baseline.Root.Members {
			b = append(b, rawName(baseline, o.NameStart)...)
			b = append(b, ':')
			if o.Name == member {
				b, done = m.appendServers(b), true
			} else {
				b = append(b, baseline.Raw(o.Value)...)
			}
			b = append(b, ',')
		}
	}
	if !done {
		b = append(b, `"mcpServers":`...)
		b = append(m.appendServers(b), ',')
	}
	b[len(b)-1] = '}'
	res.Servers = slices.Grow(res.Servers, len(m.entries))
	for i := range m.entries {
		res.Servers = append(res.Servers, m.entries[i].Server)
	}
	v := jsontext.Value(b)
	// Every part was parsed before: Indent has nothing to refuse.
	_ = v.Indent(jsontext.WithIndent("  "))
	res.JSON = append(v, '\n')
	return res
}

// size is about what the merged file takes before it is indented.
func (m *merger) size(baseline *jsondoc.Document) int {
	n := 64
	if baseline != nil {
		n += len(baseline.Data)
	}
	for i := range m.entries {
		e := &m.entries[i]
		n += len(e.Name) + e.value.End - e.value.Start + 8
	}
	return n
}

func (m *merger) appendServers(b []byte) []byte {
	if len(m.entries) == 0 {
		return append(b, "{}"...)
	}
	b = append(b, '{')
	for _, e := range m.entries {
		if e.renamed {
			b, _ = jsontext.AppendQuote(b, e.Name)
		} else {
			b = append(b, rawName(e.doc, e.at)...)
		}
		b = append(append(b, ':'), e.doc.Raw(e.value)...)
		b = append(b, ',')
	}
	b[len(b)-1] = '}'
	return b
}

// rawName is the JSON string that begins at offset.
func rawName(doc *jsondoc.Document, offset int) []byte {
	for i := offset + 1; i < len(doc.Data); i++ {
		switch doc.Data[i] {
		case '\\':
			i++
		case '"':
			return doc.Data[offset : i+1]
		}
	}
	return doc.Data[offset:]
}

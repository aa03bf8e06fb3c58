package plugin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"agent-init/internal/jsondoc"
)

// rewrite changes single values of a JSON document and leaves every other byte
// as it stands.
type rewrite struct {
	doc     *jsondoc.Document
	options ViewOptions
	reasons *reasons
	edits   []edit
}

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

func (r *rewrite) replace(start, end int, text string) {
	r.edits = append(r.edits, edit{start, end, text})
}

// result is the whole document with its changes.
func (r *rewrite) result() []byte {
	return []byte(render(r.doc.Data, 0, len(r.doc.Data), r.edits))
}

// render is the text from start to end with the edits in it.
func render(data []byte, start, end int, edits []edit) string {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	for _, e := range edits {
		b.Write(data[start:e.start])
		b.WriteString(e.text)
		start = e.end
	}
	b.Write(data[start:end])
	return b.String()
}

// events rewrites an object whose members are hook events. What has not the
// shape that the CLI takes stays as it is, for the CLI to refuse.
func (r *rewrite) events(v jsondoc.Value) {
	// first finds the members by the names that they get.
	first := map[string]*handlers{}
	for i, m := range v.Members {
		name := nameOf(v, m)
		before := len(r.edits)
		r.groups(name, m.Value)
		if h := first[name]; h != nil {
			// Of two members of one name the CLI would heed the last alone.
			r.reasons.add(KairoNames)
			own := slices.Clone(r.edits[before:])
			r.edits = r.edits[:before]
			r.move(h, m.Value, own)
			r.replace(v.Members[i-1].Value.End, m.Value.End, "")
			continue
		}
		first[name] = &handlers{m.Value, len(m.Value.Elements)}
		if name != m.Name {
			r.reasons.add(KairoNames)
			r.replace(m.NameStart, stringEnd(r.doc.Data, m.NameStart), quote(name))
		}
	}
}

// nameOf is the name that a member of the events gets: its own where it is no
// constant of Kairo's, or where it cannot be one with the member of that name.
func nameOf(events jsondoc.Value, m jsondoc.Member) string {
	name, constant := eventOf(m.Name)
	if !constant {
		return m.Name
	}
	if twin, ok := events.Get(name); ok && (twin.Kind != '[' || m.Value.Kind != '[') {
		return m.Name
	}
	return name
}

// handlers is the list of an event and how many elements it has so far.
type handlers struct {
	value jsondoc.Value
	count int
}

// move appends the elements of a list, with their edits, to the one before.
func (r *rewrite) move(to *handlers, from jsondoc.Value, edits []edit) {
	if len(from.Elements) == 0 {
		return
	}
	text := render(r.doc.Data, from.Start+1, from.End-1, edits)
	if to.count > 0 {
		text = ", " + text
	}
	to.count += len(from.Elements)
	r.replace(to.value.End-1, to.value.End-1, text)
}

// groups rewrites the list of one event: objects with a matcher and hooks.
func (r *rewrite) groups(event string, list jsondoc.Value) {
	for _, group := range list.Elements {
		hooks, _ := group.Get("hooks")
		for _, hook := range hooks.Elements {
			r.hook(event, hook)
		}
	}
}

func (r *rewrite) hook(event string, hook jsondoc.Value) {
	kind, _ := hook.Get("type")
	command, _ := hook.Get("command")
	if kind.Text != "command" || kind.Kind != '"' || command.Kind != '"' || r.options.TapExec == "" {
		r.names(hook)
		return
	}
	if args, ok := hook.Get("args"); ok && execForm(args) {
		r.reasons.add(ExecHooks)
		first, changed := r.renamed(command)
		if changed {
			r.reasons.add(KairoNames)
		}
		if len(args.Elements) > 0 {
			first += ", "
		}
		r.replace(command.Start, command.End, quote(r.options.TapExec))
		r.replace(args.Start+1, args.Start+1, first)
		r.names(args)
	} else {
		r.names(hook)
	}
	if _, ok := hook.Get("timeout"); !ok && event == "SessionEnd" {
		r.reasons.add(SessionEndTimeout)
		end := hook.Members[len(hook.Members)-1].Value.End
		r.replace(end, end, `, "timeout": `+strconv.Itoa(r.options.SessionEndTimeout))
	}
}

// execForm tells whether args make the CLI start a command without a shell; an
// empty list does.
func execForm(args jsondoc.Value) bool {
	return args.Kind == '[' && !slices.ContainsFunc(args.Elements, func(e jsondoc.Value) bool { return e.Kind != '"' })
}

// names replaces Kairo's variables in every string of a value, names of
// members aside.
func (r *rewrite) names(v jsondoc.Value) {
	for _, m := range v.Members {
		r.names(m.Value)
	}
	for _, e := range v.Elements {
		r.names(e)
	}
	if v.Kind != '"' || !mentionsKairo(v.Text) {
		return
	}
	if text, changed := r.renamed(v); changed {
		r.reasons.add(KairoNames)
		r.replace(v.Start, v.End, text)
	}
}

// renamed is a string's JSON text with the CLI's names for Kairo's variables.
func (r *rewrite) renamed(v jsondoc.Value) (text string, changed bool) {
	raw := string(r.doc.Data[v.Start:v.End])
	want := claudeNames.Replace(v.Text)
	if want == v.Text {
		return raw, false
	}
	// The escapes of the rest stay as they are, unless a reference itself is
	// spelled with some.
	text = claudeNames.Replace(raw)
	if got, err := jsontext.AppendUnquote(nil, text); err != nil || string(got) != want {
		text = quote(want)
	}
	return text, true
}

// quote is the JSON string of a text. A path is bytes: what is no UTF-8 in it
// cannot be told to the CLI.
func quote(text string) string {
	b, _ := jsontext.AppendQuote(nil, text) // It quotes all the same.
	return string(b)
}

// stringEnd is the offset after the JSON string that begins at start.
func stringEnd(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

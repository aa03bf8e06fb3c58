package repo

import (
	"fmt"
	"slices"
	"strings"
)

// manifestName is the file in which a repo declares itself.
const manifestName = "CLAUDE-OPS.md"

// knownVersions are the manifest formats that this package reads.
var knownVersions = []string{"1"}

// sections are those that a manifest should have.
var sections = []string{"Kind", "Capabilities", "Rules"}

// parseManifest reads CLAUDE-OPS.md: a title, a first paragraph, and the
// sections Kind, Capabilities and Rules. A section ends at the next heading of
// level 1 or 2. In Rules, a paragraph outside the list counts as a rule too: a
// rule must not be lost to its form.
//
// It lexes into the memory of lines, as lex does, and returns them.
func (r *Repo) parseManifest(lines []line, text string, warn func(place, string)) []line {
	head := splitFrontmatter(text, warn)
	lines = lex(lines, head.body, head.first)
	var at place
	r.Version, at = head.scalar("version", warn)
	if r.Version != "" && !slices.Contains(knownVersions, r.Version) {
		warn(at, fmt.Sprintf("unknown version %q; known: %s", r.Version, strings.Join(knownVersions, ", ")))
	}
	r.Title = title(lines, 1)
	opening := lines
	if i := slices.IndexFunc(lines, func(l line) bool { return l.level > 1 }); i >= 0 {
		opening = lines[:i]
	}
	r.Description = firstParagraph(opening)
	seen := r.parseSections(lines, warn)
	var missing []string
	if r.Title == "" {
		missing = append(missing, "title")
	}
	if r.Description == "" {
		missing = append(missing, "first paragraph")
	}
	for _, s := range sections {
		if !seen[s] {
			missing = append(missing, `section "## `+s+`"`)
		}
	}
	if missing != nil {
		warn(place{line: 1}, "it has no "+strings.Join(missing, ", no "))
	}
	return lines
}

func (r *Repo) parseSections(lines []line, warn func(place, string)) (seen map[string]bool) {
	seen = map[string]bool{}
	for i, l := range lines {
		if l.level != 2 {
			continue
		}
		at := slices.IndexFunc(sections, func(s string) bool { return strings.EqualFold(s, strings.TrimRight(l.text, ": ")) })
		if at < 0 {
			continue
		}
		name := sections[at]
		body := lines[i+1:]
		if end := slices.IndexFunc(body, func(l line) bool { return l.level == 1 || l.level == 2 }); end >= 0 {
			body = body[:end]
		}
		if seen[name] {
			warn(place{line: l.number}, fmt.Sprintf("a second section %q; its entries are added to the first", l.text))
		}
		seen[name] = true
		found := items(body)
		if len(found) == 0 {
			warn(place{line: l.number}, fmt.Sprintf("section %q is empty", "## "+name))
		}
		r.addSection(name, found, warn)
	}
	return seen
}

func (r *Repo) addSection(name string, found []item, warn func(place, string)) {
	for i, it := range found {
		switch {
		case it.text == "":
			warn(place{line: it.number}, fmt.Sprintf("an empty bullet in %q", "## "+name))
		case name == "Rules":
			r.Rules = append(r.Rules, it.text)
		case name == "Kind" && i == 0 && r.Kind == "":
			r.Kind = strings.Trim(it.text, "`")
		case name == "Kind":
			warn(place{line: it.number}, "only the first paragraph of \"## Kind\" counts")
		case !it.bullet:
			warn(place{line: it.number}, `text in "## Capabilities" that is no bullet is not read`)
		default:
			c := parseCapability(it.text)
			if c.Name == "" {
				warn(place{line: it.number}, "a capability without a name")
				continue
			}
			r.Capabilities = append(r.Capabilities, c)
		}
	}
}

// parseCapability splits "**name**: text", "`name`: text", "name: text" and
// "name - text".
func parseCapability(s string) Capability {
	for _, mark := range []string{"**", "__", "`"} {
		if rest, ok := strings.CutPrefix(s, mark); ok {
			if name, text, ok := strings.Cut(rest, mark); ok {
				return Capability{strings.TrimRight(strings.TrimSpace(strings.Trim(name, "`")), ": "), strings.TrimLeft(text, ":-–— \t")}
			}
		}
	}
	for _, sep := range []string{":", " - ", " – ", " — "} {
		if name, text, ok := strings.Cut(s, sep); ok {
			return Capability{strings.TrimSpace(name), strings.TrimSpace(text)}
		}
	}
	return Capability{Name: s}
}

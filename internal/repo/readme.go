package repo

import "strings"

// readmes are the names, in lower case, of the file that describes a repo
// without a manifest; the first one found counts.
var readmes = []string{"readme.md", "readme.markdown", "readme", "readme.rst", "readme.txt"}

// pickReadme chooses among a repo's top-level files; empty when there is none.
func pickReadme(names []string) string {
	for _, want := range readmes {
		for _, name := range names {
			if strings.EqualFold(name, want) {
				return name
			}
		}
	}
	return ""
}

// describe takes title and description from a README: the first paragraph, or
// the title where there is none.
func (r *Repo) describe(name, text string) {
	var lines []line
	if strings.HasSuffix(strings.ToLower(name), ".rst") {
		lines = lexRST(text)
	} else {
		head := splitFrontmatter(text, func(place, string) {})
		lines = lex(nil, head.body, head.first)
	}
	r.Title = title(lines, 6)
	r.Description = firstParagraph(lines)
	if r.Description == "" {
		r.Description = r.Title
	}
}

// lexRST is lex for reStructuredText: titles are underlined with any
// punctuation, and a directive or comment takes its indented block with it.
func lexRST(text string) (lines []line) {
	directive := false
	number := 0
	for raw := range strings.Lines(text) {
		number++
		s := strings.TrimRight(raw, " \t\r\n")
		indented := s != "" && (s[0] == ' ' || s[0] == '\t')
		directive = directive && (indented || s == "") || strings.HasPrefix(s, ".. ")
		switch {
		case directive, strings.HasPrefix(s, ":"):
			s = ""
		case len(s) >= 3 && strings.IndexByte("=-~^\"'`*+#.:_<>", s[0]) >= 0 && strings.Trim(s, s[:1]) == "":
			if n := len(lines); n > 0 && !lines[n-1].blank() {
				lines[n-1].level = 1
			}
			continue
		}
		lines = append(lines, line{number: number, text: s})
	}
	return lines
}

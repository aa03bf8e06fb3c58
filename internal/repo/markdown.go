package repo

import (
	"slices"
	"strings"
)

// line is one line of a markdown file that is neither comment nor fence.
type line struct {
	// number counts from 1 in the file.
	number int
	text   string
	// level is a heading's, 0 for anything else; text is then its title.
	level int
	// code lines stand between fences.
	code bool
}

func (l line) blank() bool { return strings.TrimSpace(l.text) == "" }

// lexer splits markdown into lines. It knows what may hide a heading: fenced
// code and HTML comments.
type lexer struct {
	lines []line
	// fence is the run that opened a code block, empty outside.
	fence string
	// comment says that an HTML comment is open.
	comment bool
}

// lex splits text whose first line has the given number, into the memory of
// lines as far as that suffices.
func lex(lines []line, text string, number int) []line {
	x := lexer{lines: slices.Grow(lines[:0], strings.Count(text, "\n")+1)}
	for len(text) > 0 {
		end := strings.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		x.add(number, strings.TrimRight(text[:end], "\r\n"))
		text = text[end:]
		number++
	}
	return x.lines
}

// plainText tells whether the first character of a line rules out that it is
// anything but text, a list item or a quotation, comments inside it aside.
func plainText(s string) bool {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i == len(s) || s[i] > ' ' && s[i] < 0x7f && strings.IndexByte("`~<#=-", s[i]) < 0
}

func (x *lexer) add(number int, s string) {
	if x.comment {
		x.comment = !strings.Contains(s, "-->")
		return
	}
	if x.fence == "" && plainText(s) && strings.IndexByte(s, '<') < 0 {
		x.lines = append(x.lines, line{number: number, text: s})
		return
	}
	if run := fenceOf(s); x.fence != "" {
		if strings.HasPrefix(run, x.fence) && strings.TrimSpace(s) == run {
			x.fence = ""
		} else {
			x.lines = append(x.lines, line{number: number, text: s, code: true})
		}
		return
	} else if run != "" {
		x.fence = run
		return
	}
	trimmed := strings.TrimLeft(s, " ")
	if strings.HasPrefix(trimmed, "<!--") && !strings.Contains(trimmed, "-->") {
		x.comment = true
		return
	}
	s = withoutComments(s)
	if len(s)-len(strings.TrimLeft(s, " ")) <= 3 {
		if level, title := atx(s); level > 0 {
			x.lines = append(x.lines, line{number: number, text: title, level: level})
			return
		}
		if level := underline(s); level > 0 && x.paragraphOpen() {
			last := &x.lines[len(x.lines)-1]
			last.level, last.text = level, strings.TrimSpace(last.text)
			return
		}
	}
	x.lines = append(x.lines, line{number: number, text: s})
}

// paragraphOpen tells whether the line before may be a heading's text.
func (x *lexer) paragraphOpen() bool {
	if len(x.lines) == 0 {
		return false
	}
	last := x.lines[len(x.lines)-1]
	_, _, bullet := bulletOf(last.text)
	return last.level == 0 && !last.code && !last.blank() && !bullet
}

// withoutComments cuts the comments that begin and end on this line.
func withoutComments(s string) string {
	if !strings.Contains(s, "<!--") {
		return s
	}
	var b strings.Builder
	for {
		before, rest, _ := strings.Cut(s, "<!--")
		_, after, closed := strings.Cut(rest, "-->")
		if !closed {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(before)
		s = after
	}
}

// fenceOf is the run of backticks or tildes with which s opens or closes a code
// block.
func fenceOf(s string) string {
	s = strings.TrimLeft(s, " \t")
	if s == "" || s[0] != '`' && s[0] != '~' {
		return ""
	}
	n := 1
	for n < len(s) && s[n] == s[0] {
		n++
	}
	if n < 3 || s[0] == '`' && strings.IndexByte(s[n:], '`') >= 0 {
		return ""
	}
	return s[:n]
}

// atx reads a heading of the form "## Title ##".
func atx(s string) (level int, title string) {
	s = strings.TrimSpace(s)
	rest := strings.TrimLeft(s, "#")
	level = len(s) - len(rest)
	if level == 0 || level > 6 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0, ""
	}
	title = strings.TrimSpace(rest)
	if cut := strings.TrimRight(title, "#"); cut == "" || strings.HasSuffix(cut, " ") {
		title = strings.TrimSpace(cut)
	}
	return level, title
}

// underline is the level of the heading that a line of = or - makes of the
// paragraph above it.
func underline(s string) int {
	s = strings.TrimSpace(s)
	switch {
	case s != "" && strings.Trim(s, "=") == "":
		return 1
	case len(s) > 1 && strings.Trim(s, "-") == "":
		return 2
	}
	return 0
}

// bulletOf splits a list item into its indent and its text.
func bulletOf(s string) (indent int, text string, ok bool) {
	rest := strings.TrimLeft(s, " \t")
	indent = len(s) - len(rest)
	marker := 0
	switch {
	case rest == "":
		return 0, "", false
	case strings.IndexByte("-*+", rest[0]) >= 0:
		marker = 1
	default:
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits > 0 && digits < 10 && digits < len(rest) && (rest[digits] == '.' || rest[digits] == ')') {
			marker = digits + 1
		}
	}
	if marker == 0 || marker < len(rest) && rest[marker] != ' ' && rest[marker] != '\t' {
		return 0, "", false
	}
	return indent, strings.TrimSpace(rest[marker:]), true
}

// thematicBreak tells whether the line is a rule across the page.
func thematicBreak(s string) bool {
	n := 0
	var mark byte
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ' || c == '\t':
		case n == 0 && c != '-' && c != '*' && c != '_', n > 0 && c != mark:
			return false
		default:
			mark = c
			n++
		}
	}
	return n >= 3
}

// title is the first heading, of any level up to deepest. It is a copy, which
// does not hold on to the file's text.
func title(lines []line, deepest int) string {
	for _, l := range lines {
		if l.level > 0 && l.level <= deepest {
			return strings.Clone(l.text)
		}
	}
	return ""
}

// firstParagraph joins the lines of the first paragraph that is not made of
// images, badges or HTML alone. It is a copy.
func firstParagraph(lines []line) string {
	for len(lines) > 0 {
		end, size, decoration := 0, 0, true
		for ; end < len(lines) && lines[end].prose(); end++ {
			s := lines[end].words()
			decoration = decoration && (strings.HasPrefix(s, "![") || strings.HasPrefix(s, "[![") || strings.HasPrefix(s, "<"))
			size += len(s) + 1
		}
		if !decoration {
			return joined(lines[:end], size)
		}
		lines = lines[min(end+1, len(lines)):]
	}
	return ""
}

// prose tells whether the line is part of a paragraph.
func (l line) prose() bool {
	return l.level == 0 && !l.code && !l.blank() && !thematicBreak(l.text)
}

// words is the text of a paragraph's line, less the marks of a quotation.
func (l line) words() string { return strings.TrimSpace(strings.TrimLeft(l.text, " \t>")) }

func joined(lines []line, size int) string {
	var b strings.Builder
	b.Grow(size)
	for i, l := range lines {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(l.words())
	}
	return strings.TrimSpace(b.String())
}

// item is one bullet or paragraph.
type item struct {
	text   string
	number int
	bullet bool
	indent int
	// parts are joined into text in the end.
	parts []string
}

// items are the top-level bullets and the paragraphs between them, each with
// its continuation lines and nested bullets joined to it.
func items(lines []line) (out []item) {
	open, gap, code := false, false, false
	for _, l := range lines {
		s := strings.TrimSpace(l.text)
		gap, code = gap && !(code && l.code), l.code
		if s == "" {
			gap = true
			continue
		}
		if l.level > 0 || !l.code && thematicBreak(l.text) {
			open = false
			continue
		}
		indent, text, bullet := bulletOf(l.text)
		bullet = bullet && !l.code
		last := len(out) - 1
		switch {
		case bullet && !(open && out[last].bullet && indent >= out[last].indent+2):
			out = append(out, item{number: l.number, bullet: true, indent: indent, parts: []string{text}})
		case open && (!gap || out[last].bullet && len(l.text)-len(strings.TrimLeft(l.text, " \t")) >= 2):
			out[last].parts = append(out[last].parts, s)
		default:
			out = append(out, item{number: l.number, parts: []string{s}})
		}
		open, gap = true, false
	}
	for i := range out {
		out[i].text = strings.TrimSpace(strings.Join(out[i].parts, " "))
		out[i].parts = nil
	}
	return out
}

package gitsetup

import (
	"strconv"
	"strings"

	"agent-init/internal/problem"
)

// Entry is one assignment of a git configuration file.
type Entry struct {
	// Key is section.name or section.subsection.name; section and name in
	// lower case, the subsection as it stands.
	Key   string
	Value string
	// Bare says that the name stood without "=", which git reads as true.
	Bare bool
	// Line counts from 1.
	Line int
}

// ParseConfig reads a file in the syntax of git-config(1), as git 2.39 does
// (later ones keep tabs inside unquoted values, which read as blanks here).
// Includes are entries like any other and are not followed. What git refuses
// is an Error with its line; the entries before it are returned as well.
func ParseConfig(path string, data []byte) ([]Entry, *problem.Problem) {
	r := configReader{data: strings.TrimPrefix(string(data), bom), line: 1}
	if !r.file() {
		return r.entries, &problem.Problem{What: "cannot read git configuration", File: path, Line: r.line,
			Why: r.why, Hint: "git refuses this file too: correct the line"}
	}
	return r.entries, nil
}

// Last returns the value that counts where a variable has one value: the last.
func Last(entries []Entry, key string) (value string, ok bool) {
	for _, e := range entries {
		if e.Key == key {
			value, ok = e.Value, true
		}
	}
	return value, ok
}

const bom = "\xef\xbb\xbf"

// configReader follows git's own reader, config.c, so that what it accepts and
// refuses is the same; the end of the file reads as a newline there.
type configReader struct {
	data    string
	at      int
	eof     bool
	line    int
	prefix  string
	entries []Entry
	why     string
}

func (r *configReader) next() byte {
	if r.at >= len(r.data) {
		r.eof = true
		return '\n'
	}
	c := r.data[r.at]
	r.at++
	if c == '\r' && r.at < len(r.data) && r.data[r.at] == '\n' {
		c = '\n'
		r.at++
	}
	return c
}

func (r *configReader) fail(why string) bool {
	r.why = why
	return false
}

func (r *configReader) file() bool {
	comment := false
	for {
		c := r.next()
		switch {
		case c == '\n':
			if r.eof {
				return true
			}
			comment = false
			r.line++
		case comment || isBlank(c):
		case c == '#' || c == ';':
			comment = true
		case c == '[':
			if !r.section() {
				return false
			}
		case isAlpha(c):
			if !r.assignment(c) {
				return false
			}
			if r.eof {
				return true
			}
			r.line++
		default:
			return r.fail("a line begins with " + strconv.QuoteRune(rune(c)))
		}
	}
}

func (r *configReader) section() bool {
	var b strings.Builder
	for {
		c := r.next()
		switch {
		case r.eof:
			return r.fail("a section header has no ]")
		case c == ']' && b.Len() == 0:
			return r.fail("a section has no name")
		case c == ']':
			r.prefix = b.String() + "."
			return true
		case isBlank(c):
			return r.subsection(b.String(), c)
		case !isKeyByte(c) && c != '.':
			return r.fail("a section name holds " + strconv.QuoteRune(rune(c)))
		}
		b.WriteByte(lower(c))
	}
}

func (r *configReader) subsection(section string, c byte) bool {
	for isBlank(c) {
		if c == '\n' {
			return r.fail("a section header has no ]")
		}
		c = r.next()
	}
	if c != '"' {
		return r.fail("a subsection is not quoted")
	}
	var b strings.Builder
	for {
		c = r.next()
		if c == '"' {
			break
		}
		if c == '\\' {
			c = r.next()
		}
		if c == '\n' {
			return r.fail("a subsection's quotes are not closed")
		}
		b.WriteByte(c)
	}
	if r.next() != ']' {
		return r.fail("a section header has no ] after its subsection")
	}
	r.prefix = section + "." + b.String() + "."
	return true
}

func (r *configReader) assignment(c byte) bool {
	e := Entry{Line: r.line, Bare: true}
	var name strings.Builder
	for isKeyByte(c) && !r.eof {
		name.WriteByte(lower(c))
		c = r.next()
	}
	for c == ' ' || c == '\t' {
		c = r.next()
	}
	if c != '\n' {
		if c != '=' {
			return r.fail("a name is not followed by =")
		}
		e.Bare = false
		var ok bool
		if e.Value, ok = r.value(); !ok {
			return false
		}
	}
	e.Key = r.prefix + name.String()
	r.entries = append(r.entries, e)
	return true
}

// value reads up to the end of the line. White space inside an unquoted value
// reads as that many spaces, at its ends as nothing.
func (r *configReader) value() (string, bool) {
	var b strings.Builder
	quoted, comment, spaces := false, false, 0
	for {
		c := r.next()
		switch {
		case c == '\n':
			if quoted {
				return "", r.fail("a value's quotes are not closed")
			}
			return b.String(), true
		case comment:
			continue
		case isBlank(c) && !quoted:
			if b.Len() > 0 {
				spaces++
			}
			continue
		case !quoted && (c == ';' || c == '#'):
			comment = true
			continue
		}
		b.WriteString(strings.Repeat(" ", spaces))
		spaces = 0
		switch c {
		case '"':
			quoted = !quoted
		case '\\':
			if !r.escape(&b) {
				return "", false
			}
		default:
			b.WriteByte(c)
		}
	}
}

func (r *configReader) escape(b *strings.Builder) bool {
	switch c := r.next(); c {
	case '\n':
		if !r.eof {
			r.line++
		}
	case 't':
		b.WriteByte('\t')
	case 'b':
		b.WriteByte('\b')
	case 'n':
		b.WriteByte('\n')
	case '\\', '"':
		b.WriteByte(c)
	default:
		return r.fail("a value holds the escape \\" + string(rune(c)) + ", which git does not know")
	}
	return true
}

func isKeyByte(c byte) bool { return isAlnum(c) || c == '-' }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// appendQuoted writes a value so that git reads it back as it is; NUL aside, every
// byte can be represented.
func appendQuoted(b []byte, value string) []byte {
	b = append(b, '"')
	for i := range len(value) {
		switch c := value[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		case '\b':
			b = append(b, `\b`...)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

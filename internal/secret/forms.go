package secret

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// MinLength is the length in bytes from which on a value is masked: shorter
// ones occur in text by chance.
const MinLength = 8

// TooShort tells whether a value cannot be masked for its length.
func TooShort(value string) bool { return len(trimmed(value)) < MinLength }

// trimmed leaves out line ends around a value. They tell nothing, and a form
// that began with one would hold back the end of every line.
func trimmed(value string) string { return strings.Trim(value, "\r\n") }

// forms are the texts in which values appear, each once.
type forms struct {
	seen map[string]bool
	list []string
}

func (f *forms) add(text string) {
	if len(text) >= MinLength && !f.seen[text] {
		f.seen[text] = true
		f.list = append(f.list, text)
	}
}

// value adds every form of a value, and of its lines.
func (f *forms) value(value string) {
	value = trimmed(value)
	if len(value) < MinLength {
		return
	}
	f.encodings(value)
	if !strings.ContainsAny(value, "\r\n") {
		return
	}
	for line := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '\r' || r == '\n' }) {
		// Without its indentation: that changes when text is embedded.
		if line = strings.Trim(line, " \t"); len(line) >= MinLength {
			f.encodings(line)
		}
	}
}

func (f *forms) encodings(text string) {
	f.add(text)
	f.json(text)
	f.url(text)
	f.base64(text)
}

// jsonStyle is how an encoder writes the characters for which JSON leaves a
// choice.
type jsonStyle struct {
	// ascii escapes everything outside ASCII, del also U+007F (Python's default).
	ascii, del bool
	// html escapes < > & (Go's default).
	html bool
	// slash writes \/ (PHP's default).
	slash bool
	// long writes \u0008 and \u000c for \b and \f (Go before 1.22).
	long bool
	// quotes escapes " ' + ` as \u too (.NET's default).
	quotes bool
	// upper writes hexadecimal digits in upper case.
	upper bool
	// lines escapes U+2028 and U+2029, and writes \ufffd for what is no UTF-8
	// (Go, always).
	lines bool
}

func (f *forms) json(text string) {
	if isPlain(text, "-_.~=:,;!@#$%^*()[]{}|? ") {
		return
	}
	// Only the choices that make a difference to this text, in every combination.
	choices := choicesFor(text)
	for bits := choices; ; bits = (bits - 1) & choices {
		on := func(n int) bool { return bits>>n&1 != 0 }
		s := jsonStyle{ascii: on(0), del: on(1), html: on(2), slash: on(3), long: on(4), quotes: on(5), upper: on(6), lines: on(7)}
		f.add(s.escape(text))
		if bits == 0 {
			break
		}
	}
	// A JSON text in a string of another: tool input in an event.
	common := []jsonStyle{{}, {ascii: true, del: true}, {lines: true}}
	for _, inner := range common {
		once := inner.escape(text)
		for _, outer := range common {
			f.add(outer.escape(once))
		}
	}
}

// choicesFor is a bit for each field of jsonStyle, in their order, that matters
// to text.
func choicesFor(text string) int {
	bits := 0
	for i, r := range text {
		switch {
		case r == utf8.RuneError && text[i] != "\ufffd"[0]:
			bits |= 1<<0 | 1<<6 | 1<<7
		case r == '\u2028', r == '\u2029':
			bits |= 1<<0 | 1<<6 | 1<<7
		case r > 0x7f:
			bits |= 1<<0 | 1<<6
		case r == 0x7f:
			bits |= 1<<1 | 1<<6
		case strings.ContainsRune("<>&", r):
			bits |= 1<<2 | 1<<6
		case r == '/':
			bits |= 1 << 3
		case r == '\b', r == '\f':
			bits |= 1<<4 | 1<<6
		case strings.ContainsRune("\"'+`", r):
			bits |= 1<<5 | 1<<6
		case r < ' ':
			bits |= 1 << 6
		}
	}
	return bits
}

func (s jsonStyle) escape(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/4)
	for i, r := range text {
		if r < utf8.RuneSelf && isAlphanumeric(byte(r)) {
			b.WriteByte(byte(r))
			continue
		}
		if r == utf8.RuneError && text[i] != "\ufffd"[0] {
			s.invalid(&b, text[i])
			continue
		}
		s.rune(&b, r)
	}
	return b.String()
}

// invalid writes a byte that is no UTF-8: as Python does (which reads it as a
// lone surrogate), as Go does, or as it is.
func (s jsonStyle) invalid(b *strings.Builder, c byte) {
	switch {
	case s.ascii:
		s.unit(b, 0xdc00+rune(c))
	case s.lines:
		s.unit(b, utf8.RuneError)
	default:
		b.WriteByte(c)
	}
}

func (s jsonStyle) rune(b *strings.Builder, r rune) {
	switch {
	case s.quotes && strings.ContainsRune("\"'+`", r):
		s.unit(b, r)
	case r == '"' || r == '\\' || r == '/' && s.slash:
		b.WriteByte('\\')
		b.WriteRune(r)
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\b' && !s.long:
		b.WriteString(`\b`)
	case r == '\f' && !s.long:
		b.WriteString(`\f`)
	case r < ' ', r == 0x7f && s.del, s.html && strings.ContainsRune("<>&", r), s.lines && strings.ContainsRune("\u2028\u2029", r):
		s.unit(b, r)
	case r > 0xffff && s.ascii:
		r -= 0x10000
		s.unit(b, 0xd800+r>>10)
		s.unit(b, 0xdc00+r&0x3ff)
	case r > 0x7f && s.ascii:
		s.unit(b, r)
	default:
		b.WriteRune(r)
	}
}

func (s jsonStyle) unit(b *strings.Builder, u rune) {
	digits := hexDigits(s.upper)
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(digits[u>>shift&15])
	}
}

func hexDigits(upper bool) string {
	if upper {
		return "0123456789ABCDEF"
	}
	return "0123456789abcdef"
}

// urlSafe lists what encoders leave as it is besides letters and digits.
var urlSafe = []string{
	"-_.~",                 // RFC 3986 unreserved; Go's QueryEscape
	"-_.~/",                // Python's quote
	"-_.!~*'()",            // encodeURIComponent
	"-_.*",                 // HTML forms
	"-_.~$&+=:@",           // Go's PathEscape
	"-_.!~*'();/?:@&=+$,#", // encodeURI
}

func (f *forms) url(text string) {
	if isPlain(text, "-_.") {
		return
	}
	for _, safe := range urlSafe {
		for _, space := range []string{"%20", "+"} {
			f.add(percent(text, safe, space, true))
			f.add(percent(text, safe, space, false))
		}
	}
}

// isPlain tells that text consists of letters and digits of ASCII and of what
// more lists: tokens mostly do, and encoders have no choice then.
func isPlain(text, more string) bool {
	for i := range len(text) {
		if !isAlphanumeric(text[i]) && strings.IndexByte(more, text[i]) < 0 {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func percent(text, safe, space string, upper bool) string {
	digits := hexDigits(upper)
	var b strings.Builder
	b.Grow(len(text) + len(text)/4)
	for i := range len(text) {
		switch c := text[i]; {
		case isAlphanumeric(c), strings.IndexByte(safe, c) >= 0:
			b.WriteByte(c)
		case c == ' ':
			b.WriteString(space)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

// base64 adds what the text alone determines of its encoding, wherever it
// begins in what is encoded: after a multiple of three bytes, or one or two
// later.
func (f *forms) base64(text string) {
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			whole := enc.EncodeToString(append(make([]byte, before), text...))
			f.add(whole[(before*8+5)/6 : (before+len(text))*8/6])
		}
	}
	f.wrapped(base64.RawStdEncoding.EncodeToString([]byte(text))[:len(text)*8/6])
}

// wrapped adds a long encoding as base64(1) and PEM break it into lines.
func (f *forms) wrapped(encoded string) {
	for _, width := range []int{64, 76} {
		if len(encoded) <= width {
			continue
		}
		var lines []string
		for rest := encoded; rest != ""; {
			n := min(width, len(rest))
			lines = append(lines, rest[:n])
			f.add(rest[:n])
			rest = rest[n:]
		}
		f.add(strings.Join(lines, "\n"))
	}
}

package event

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds nesting, as encoding/json does; what nests deeper is no event.
const maxDepth = 10000

// IsEvent tells whether a line, with or without its line end, is an event: one
// complete JSON object whose event_type is a non-empty string; of several
// members of that name the last counts, as in most JSON readers. More than JSON
// allows passes: NaN, Infinity and -Infinity (Python writes them), and bytes
// that are no UTF-8 inside strings.
func IsEvent(line []byte) bool {
	line = bytes.TrimSuffix(line, []byte("\n"))
	i := blanks(line, 0)
	if i == len(line) || line[i] != '{' {
		return false
	}
	s := scanner{data: line}
	end, ok := s.object(i, 0)
	return ok && s.event && blanks(line, end) == len(line)
}

// scanner checks one JSON text. Its methods take the offset at which a thing
// begins and return the one after it.
type scanner struct {
	data []byte
	// event says that the last event_type seen in the outermost object is a
	// non-empty string.
	event bool
}

func blanks(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

func (s *scanner) object(i, depth int) (end int, ok bool) {
	i = blanks(s.data, i+1)
	if s.at(i) == '}' {
		return i + 1, true
	}
	for {
		nameStart := i
		if i, ok = s.str(i); !ok {
			return i, false
		}
		named := depth == 0 && isEventType(s.data[nameStart:i])
		if i = blanks(s.data, i); s.at(i) != ':' {
			return i, false
		}
		valueStart := blanks(s.data, i+1)
		// Most values are strings.
		if s.at(valueStart) == '"' {
			i, ok = s.str(valueStart)
		} else {
			i, ok = s.value(valueStart, depth+1)
		}
		if !ok {
			return i, false
		}
		if named {
			s.event = s.data[valueStart] == '"' && i-valueStart > len(`""`)
		}
		i = blanks(s.data, i)
		switch s.at(i) {
		case '}':
			return i + 1, true
		case ',':
			i = blanks(s.data, i+1)
		default:
			return i, false
		}
	}
}

func (s *scanner) array(i, depth int) (end int, ok bool) {
	i = blanks(s.data, i+1)
	if s.at(i) == ']' {
		return i + 1, true
	}
	for {
		if i, ok = s.value(i, depth+1); !ok {
			return i, false
		}
		i = blanks(s.data, i)
		switch s.at(i) {
		case ']':
			return i + 1, true
		case ',':
			i = blanks(s.data, i+1)
		default:
			return i, false
		}
	}
}

func (s *scanner) value(i, depth int) (end int, ok bool) {
	if depth > maxDepth {
		return i, false
	}
	switch s.at(i) {
	case '"':
		return s.str(i)
	case '{':
		return s.object(i, depth)
	case '[':
		return s.array(i, depth)
	case 't':
		return s.word(i, "true")
	case 'f':
		return s.word(i, "false")
	case 'n':
		return s.word(i, "null")
	case 'N':
		return s.word(i, "NaN")
	case 'I':
		return s.word(i, "Infinity")
	case '-':
		if s.at(i+1) == 'I' {
			return s.word(i, "-Infinity")
		}
		return s.number(i + 1)
	default:
		return s.number(i)
	}
}

// at is the byte at i, or 0 (which JSON has nowhere) after the end.
func (s *scanner) at(i int) byte {
	if i < len(s.data) {
		return s.data[i]
	}
	return 0
}

func (s *scanner) word(i int, w string) (end int, ok bool) {
	end = i + len(w)
	return end, end <= len(s.data) && string(s.data[i:end]) == w
}

func (s *scanner) number(i int) (end int, ok bool) {
	if s.at(i) == '0' {
		i++
	} else if i, ok = s.digits(i); !ok {
		return i, false
	}
	if s.at(i) == '.' {
		if i, ok = s.digits(i + 1); !ok {
			return i, false
		}
	}
	if c := s.at(i); c == 'e' || c == 'E' {
		i++
		if c := s.at(i); c == '+' || c == '-' {
			i++
		}
		return s.digits(i)
	}
	return i, true
}

func (s *scanner) digits(i int) (end int, ok bool) {
	start := i
	for s.at(i)-'0' < 10 {
		i++
	}
	return i, i > start
}

// str tests eight bytes at once for what does not stand for itself in a string,
// quotes, backslashes and control characters: in spot, the lowest bit set is the
// top bit of the first such byte (bits above it may be wrong).
func (s *scanner) str(i int) (end int, ok bool) {
	const (
		ones  = 0x0101010101010101
		tops  = 0x8080808080808080
		quote = ones * '"'
		slash = ones * '\\'
		space = ones * ' '
	)
	data := s.data
	if i >= len(data) || data[i] != '"' {
		return i, false
	}
	for i++; ; {
		if i+8 <= len(data) {
			w := binary.LittleEndian.Uint64(data[i:])
			q, b := w^quote, w^slash
			spot := ((q-ones)&^q | (b-ones)&^b | (w-space)&^w) & tops
			if spot == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(spot) / 8
		} else {
			for i < len(data) && data[i] != '"' && data[i] != '\\' && data[i] >= ' ' {
				i++
			}
			if i == len(data) {
				return i, false
			}
		}
		switch data[i] {
		case '"':
			return i + 1, true
		case '\\':
			if i, ok = s.escape(i); !ok {
				return i, false
			}
		default:
			return i, false
		}
	}
}

func (s *scanner) escape(i int) (end int, ok bool) {
	switch s.at(i + 1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, true
	case 'u':
		for n := i + 2; n < i+6; n++ {
			c := s.at(n)
			if c-'0' >= 10 && c|0x20-'a' >= 6 {
				return n, false
			}
		}
		return i + 6, true
	default:
		return i, false
	}
}

const eventType = "event_type"

// isEventType tells whether a quoted name reads event_type.
func isEventType(quoted []byte) bool {
	inner := quoted[1 : len(quoted)-1]
	// Escapes make a name longer; none of this name's is longer than six bytes a letter.
	if len(inner) <= len(eventType) {
		return string(inner) == eventType
	}
	if len(inner) > 6*len(eventType) || bytes.IndexByte(inner, '\\') < 0 || !utf8.Valid(inner) {
		return false
	}
	name, err := jsontext.AppendUnquote(nil, quoted)
	return err == nil && string(name) == eventType
}

package jsondoc

import (
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// quick parses a document that has nothing wrong with it, without a token for
// each part. It gives up at whatever it does not know to be right, and leaves the
// judgement, and the words for it, to jsontext.
type quick struct {
	data []byte
	// text is data; names and strings without escapes are parts of it.
	text string
	at   int
	// members and elements are those of the open objects and arrays.
	members  []Member
	elements []Value
}

// maxCompared bounds the members of an object whose names are compared one by one.
const maxCompared = 32

// spare keeps the memory of members and elements from one document to the next.
var spare = sync.Pool{New: func() any { return new(quick) }}

func parseQuick(data []byte) (root Value, ok bool) {
	if !utf8.Valid(data) {
		return root, false
	}
	q := spare.Get().(*quick)
	q.data, q.text, q.at = data, string(data), 0
	root, ok = q.value(0)
	q.blank()
	ok = ok && q.at == len(data)
	q.release()
	return root, ok
}

// release lets go of the document, and of memory that few others need.
func (q *quick) release() {
	const many = 1 << 10
	members, elements := q.members[:cap(q.members)], q.elements[:cap(q.elements)]
	if len(members) > many || len(elements) > many {
		return
	}
	clear(members)
	clear(elements)
	*q = quick{members: members[:0], elements: elements[:0]}
	spare.Put(q)
}

// peek is the next byte, 0 at the end.
func (q *quick) peek() byte {
	if q.at == len(q.data) {
		return 0
	}
	return q.data[q.at]
}

func (q *quick) blank() {
	for q.at < len(q.data) {
		switch q.data[q.at] {
		case ' ', '\t', '\r', '\n':
			q.at++
		default:
			return
		}
	}
}

// take skips white space and then one byte, if it is c.
func (q *quick) take(c byte) bool {
	q.blank()
	if q.peek() != c {
		return false
	}
	q.at++
	return true
}

func (q *quick) value(depth int) (v Value, ok bool) {
	q.blank()
	v.Start = q.at
	if depth > MaxDepth {
		return v, false
	}
	switch c := q.peek(); c {
	case '{':
		v.Kind = '{'
		v.Members, ok = q.object(depth)
	case '[':
		v.Kind = '['
		v.Elements, ok = q.array(depth)
	case '"':
		v.Kind = '"'
		v.Text, ok = q.string()
	case 't':
		v.Kind, ok = 't', q.word("true")
	case 'f':
		v.Kind, ok = 'f', q.word("false")
	case 'n':
		v.Kind, ok = 'n', q.word("null")
	default:
		v.Kind, ok = '0', q.number()
	}
	v.End = q.at
	return v, ok
}

func (q *quick) object(depth int) (members []Member, ok bool) {
	q.at++
	if q.take('}') {
		return nil, true
	}
	open := len(q.members)
	for {
		q.blank()
		m := Member{NameStart: q.at}
		if m.Name, ok = q.string(); !ok || !q.take(':') || !q.isNew(m.Name, open) {
			return nil, false
		}
		if m.Value, ok = q.value(depth + 1); !ok {
			return nil, false
		}
		q.members = append(q.members, m)
		if q.take('}') {
			members = slices.Clone(q.members[open:])
			q.members = q.members[:open]
			return members, true
		}
		if !q.take(',') {
			return nil, false
		}
	}
}

// isNew tells whether no member from open on has the name.
func (q *quick) isNew(name string, open int) bool {
	for i := open; i < len(q.members); i++ {
		if q.members[i].Name == name || i-open == maxCompared {
			return false
		}
	}
	return true
}

func (q *quick) array(depth int) (elements []Value, ok bool) {
	q.at++
	if q.take(']') {
		return nil, true
	}
	open := len(q.elements)
	for {
		e, ok := q.value(depth + 1)
		if !ok {
			return nil, false
		}
		q.elements = append(q.elements, e)
		if q.take(']') {
			elements = slices.Clone(q.elements[open:])
			q.elements = q.elements[:open]
			return elements, true
		}
		if !q.take(',') {
			return nil, false
		}
	}
}

func (q *quick) string() (text string, ok bool) {
	if q.peek() != '"' {
		return "", false
	}
	start, escaped := q.at, false
	for i := start + 1; i < len(q.data); i++ {
		switch c := q.data[i]; {
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			return "", false
		case c == '"':
			q.at = i + 1
			if !escaped {
				return q.text[start+1 : i], true
			}
			b, err := jsontext.AppendUnquote(nil, q.data[start:q.at])
			return string(b), err == nil
		}
	}
	return "", false
}

func (q *quick) word(w string) bool {
	end := q.at + len(w)
	if end > len(q.text) || q.text[q.at:end] != w {
		return false
	}
	q.at = end
	return true
}

func (q *quick) number() bool {
	if q.peek() == '-' {
		q.at++
	}
	if q.peek() == '0' {
		q.at++
	} else if !q.digits() {
		return false
	}
	if q.peek() == '.' {
		q.at++
		if !q.digits() {
			return false
		}
	}
	if q.peek()|0x20 == 'e' {
		q.at++
		if c := q.peek(); c == '+' || c == '-' {
			q.at++
		}
		return q.digits()
	}
	return true
}

// digits takes at least one.
func (q *quick) digits() bool {
	start := q.at
	for c := q.peek(); '0' <= c && c <= '9'; c = q.peek() {
		q.at++
	}
	return q.at > start
}

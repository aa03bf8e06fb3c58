// Package jsondoc parses JSON that people wrote, strictly and with positions:
// every value knows its line and column, a duplicate key is an error, and so
// are invalid UTF-8, a byte order mark and anything after the document.
package jsondoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"agent-init/internal/problem"
)

// MaxDepth bounds nesting. Nothing that agents read nests as deep; what does
// is broken or hostile.
const MaxDepth = 100

// Document is a parsed file.
type Document struct {
	// What is the kind of file in messages: "plugin manifest".
	What string
	Path string
	Data []byte
	Root Value
}

// Value is one JSON value of a document.
type Value struct {
	// Kind is one of: null n, false f, true t, string ", number 0, object {, array [.
	Kind jsontext.Kind
	// Start and End bound the value in Document.Data.
	Start, End int
	// Text is a string's content, unescaped.
	Text string
	// Members are an object's, in the order of the file.
	Members []Member
	// Elements are an array's.
	Elements []Value
}

// Member is a name and a value of an object.
type Member struct {
	Name string
	// NameStart is the offset of the name's opening quote.
	NameStart int
	Value     Value
}

// Get returns the member of that name; ok is false when there is none or v is
// no object.
func (v Value) Get(name string) (m Value, ok bool) {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value, true
		}
	}
	return Value{}, false
}

// IsBool tells whether the value is true or false.
func (v Value) IsBool() bool { return v.Kind == 't' || v.Kind == 'f' }

// KindName is the value's type in the words of a message: "an object".
func (v Value) KindName() string {
	switch v.Kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	default:
		return "an array"
	}
}

// Raw is the value as it stands in the file.
func (d *Document) Raw(v Value) jsontext.Value { return jsontext.Value(d.Data[v.Start:v.End]) }

// Position turns an offset into a line and a column, both from 1, the column
// counted in characters.
func (d *Document) Position(offset int) (line, column int) { return position(d.Data, offset) }

func position(data []byte, offset int) (line, column int) {
	before := data[:min(offset, len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// Error is an Error about the value at offset.
func (d *Document) Error(offset int, why, hint string) problem.Problem {
	p := problem.Problem{What: "cannot use " + d.What, File: d.Path, Why: why, Hint: hint}
	p.Line, p.Column = d.Position(offset)
	return p
}

// Warning is a Warning about the value at offset.
func (d *Document) Warning(offset int, why, hint string) problem.Problem {
	p := d.Error(offset, why, hint)
	p.Severity, p.What = problem.Warning, d.What
	return p
}

// Parse parses data, which was read from path. A document that is no valid
// JSON is one Error that says where and why.
func Parse(what, path string, data []byte) (*Document, *problem.Problem) {
	fail := func(offset int, why, hint string) (*Document, *problem.Problem) {
		p := &problem.Problem{What: "cannot read " + what, File: path, Why: why, Hint: hint}
		p.Line, p.Column = position(data, offset)
		return nil, p
	}
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return fail(0, "it begins with a byte order mark", "save it as UTF-8 without BOM")
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return fail(0, "it is UTF-16", "save it as UTF-8")
	case len(bytes.TrimSpace(data)) == 0:
		return fail(0, "it is empty", "")
	}
	if root, ok := parseQuick(data); ok {
		return &Document{What: what, Path: path, Data: data, Root: root}, nil
	}
	root, wrong, why := parseStrict(data)
	if why != "" {
		return fail(wrong, why, "")
	}
	return &Document{What: what, Path: path, Data: data, Root: root}, nil
}

// parseStrict says where and why a document is no valid JSON; why is empty when
// it is.
func parseStrict(data []byte) (root Value, offset int, why string) {
	p := parser{data: data, dec: jsontext.NewDecoder(bytes.NewBuffer(data))}
	root, err := p.value(0)
	if err == nil {
		p.next()
		if _, rest := p.dec.ReadToken(); rest == nil {
			return root, p.start, "there is more after the end of the document"
		} else if !errors.Is(rest, io.EOF) {
			err = rest
		}
	}
	if err != nil {
		offset, why = p.explain(err)
	}
	return root, offset, why
}

type parser struct {
	data []byte
	dec  *jsontext.Decoder
	// start is the offset of the token or value read last.
	start int
}

type depthError struct{ offset int }

func (e depthError) Error() string {
	return "it is nested more than " + strconv.Itoa(MaxDepth) + " levels deep"
}

// next advances start to the next token, past white space and punctuation.
func (p *parser) next() {
	i := int(p.dec.InputOffset())
	for i < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[i]) >= 0 {
		i++
	}
	p.start = i
}

func (p *parser) value(depth int) (Value, error) {
	p.next()
	v := Value{Start: p.start}
	if depth > MaxDepth {
		return v, depthError{v.Start}
	}
	tok, err := p.dec.ReadToken()
	if err != nil {
		return v, err
	}
	v.Kind = tok.Kind()
	switch v.Kind {
	case '"':
		v.Text = tok.String()
	case '{':
		for p.dec.PeekKind() != '}' {
			p.next()
			m := Member{NameStart: p.start}
			name, err := p.dec.ReadToken()
			if err != nil {
				return v, err
			}
			m.Name = name.String()
			if m.Value, err = p.value(depth + 1); err != nil {
				return v, err
			}
			v.Members = append(v.Members, m)
		}
		_, err = p.dec.ReadToken()
	case '[':
		for p.dec.PeekKind() != ']' {
			e, err := p.value(depth + 1)
			if err != nil {
				return v, err
			}
			v.Elements = append(v.Elements, e)
		}
		_, err = p.dec.ReadToken()
	}
	v.End = int(p.dec.InputOffset())
	return v, err
}

// explain says where a parse ended and why, in the words of a message.
func (p *parser) explain(err error) (offset int, why string) {
	var deep depthError
	if errors.As(err, &deep) {
		return deep.offset, deep.Error()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return len(bytes.TrimRight(p.data, " \t\r\n")), "it ends in the middle of a value"
	}
	var se *jsontext.SyntacticError
	if !errors.As(err, &se) {
		return p.start, err.Error()
	}
	offset = int(se.ByteOffset)
	if errors.Is(err, jsontext.ErrDuplicateName) {
		if name, e := jsontext.AppendUnquote(nil, quoted(p.data[p.start:])); e == nil {
			return p.start, fmt.Sprintf("duplicate key %q", name)
		}
		return p.start, "duplicate key"
	}
	if r, size := utf8.DecodeRune(p.data[min(offset, len(p.data)):]); r == utf8.RuneError && size == 1 {
		return offset, "it is not valid UTF-8"
	}
	if rest := p.data[min(offset, len(p.data)):]; len(rest) > 0 && rest[0] == ',' {
		if next := bytes.TrimLeft(rest[1:], " \t\r\n"); len(next) > 0 && (next[0] == '}' || next[0] == ']') {
			return offset, "there is a comma before the closing " + string(next[:1])
		}
	}
	return offset, strings.TrimPrefix(se.Err.Error(), "jsontext: ")
}

// quoted is the JSON string at the start of data.
func quoted(data []byte) []byte {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return data[:i+1]
		}
	}
	return data
}

// Package hook turns the input of a Claude Code hook into the event that the
// agentic_events vocabulary has for it.
package hook

import (
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"agent-init/internal/event"
	"agent-init/internal/problem"
)

// What is kept of a member, in characters. A member without a limit of its own
// is one that the event carries whole; the CLI cuts what it reports long before
// maxText.
const (
	maxPreview = 500
	maxPrompt  = 200
	maxText    = 64 << 10
)

// limits are the members that some event needs.
var limits = map[string]int{
	"hook_event_name": maxText,
	"session_id":      maxText,
	"source":          maxText,
	"reason":          maxText,
	"prompt":          maxPrompt,
	"tool_name":       maxText,
	"tool_use_id":     maxText,
	"tool_input":      maxPreview,
	"tool_response":   maxPreview,
	"duration_ms":     maxText,
	"error":           maxText,
	"message":         maxText,
	"agent_id":        maxText,
	"agent_type":      maxText,
	"trigger":         maxText,
	"teammate_name":   maxText,
	"task_id":         maxText,
}

// Payload is what an event needs of a hook's input.
type Payload struct {
	members map[string]member
}

type member struct {
	kind jsontext.Kind
	// text is a string's content, or any other value as compact JSON, cut.
	text string
}

// Read reads a hook's input to its end, however long: memory stays within a few
// MiB. Where a name occurs twice the last one counts, and a byte that is no
// UTF-8 becomes U+FFFD, as most readers of hook input have it. A member that is
// null counts as absent.
func Read(in io.Reader) (Payload, *problem.Problem) {
	d := decoder{jsontext.NewDecoder(&clipper{src: in}, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	p := Payload{members: map[string]member{}}
	err := d.payload(p.members)
	if err == nil {
		if _, hasName := p.members["hook_event_name"]; hasName {
			return p, nil
		}
		err = errors.New("it has no hook_event_name")
	}
	// Whoever writes the input does not expect that nobody reads it.
	io.Copy(io.Discard, in)
	return Payload{}, &problem.Problem{What: "cannot read hook input", Why: explain(err)}
}

// explain leaves out where in the input the error is: the pointer that jsontext
// gives is made of the input's own words.
func explain(err error) string {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax) && errors.Is(syntax.Err, io.ErrUnexpectedEOF):
		return "it ends in the middle of a value"
	case errors.As(err, &syntax):
		return strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")
	case errors.Is(err, io.EOF):
		return "it is empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends in the middle of a value"
	}
	return strings.TrimPrefix(err.Error(), "jsontext: ")
}

type decoder struct{ *jsontext.Decoder }

func (d decoder) payload(into map[string]member) error {
	begin, err := d.ReadToken()
	if err != nil {
		return err
	}
	if begin.Kind() != '{' {
		return errors.New("it is no JSON object")
	}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		limit, wanted := limits[name] // 0, keep nothing, where it is not wanted.
		m, err := d.member(limit)
		if err != nil {
			return err
		}
		if wanted {
			delete(into, name)
			if m.kind != 'n' {
				into[name] = m
			}
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after its end")
	}
	return nil
}

// member reads the next value, whole, and keeps the first limit characters.
func (d decoder) member(limit int) (member, error) {
	m := member{kind: d.PeekKind()}
	if m.kind == '"' {
		token, err := d.ReadToken()
		if err != nil || limit == 0 {
			return m, err
		}
		m.text = cut(token.String(), limit)
		return m, nil
	}
	var compact []byte
	outside := d.StackDepth()
	for kept := 0; ; {
		before := d.separator(outside)
		token, err := d.ReadToken()
		if err != nil {
			return m, err
		}
		if kept < limit {
			start := len(compact)
			if before != 0 && token.Kind() != '}' && token.Kind() != ']' {
				compact = append(compact, before)
			}
			compact = appendToken(compact, token)
			kept += utf8.RuneCount(compact[start:])
		}
		if d.StackDepth() <= outside {
			m.text = cut(string(compact), limit)
			return m, nil
		}
	}
}

// separator is what compact JSON has before the next token, unless that one
// closes an object or array; 0 is nothing.
func (d decoder) separator(outside int) byte {
	depth := d.StackDepth()
	if depth <= outside {
		return 0
	}
	switch kind, n := d.StackIndex(depth); {
	case n == 0:
		return 0
	case kind == '{' && n%2 == 1:
		return ':'
	default:
		return ','
	}
}

func appendToken(dst []byte, token jsontext.Token) []byte {
	if token.Kind() != '"' {
		return append(dst, token.String()...)
	}
	// It fails for invalid UTF-8 only, and the token has none left.
	dst, _ = jsontext.AppendQuote(dst, token.String())
	return dst
}

// cut returns the first n characters of s.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// Event is the event for the hook; nil when the vocabulary has none.
func (p Payload) Event(now time.Time) *event.Event {
	describe, ok := vocabulary[p.text("hook_event_name", "")]
	if !ok {
		return nil
	}
	kind, context := describe(p)
	return event.New(kind, p.text("session_id", ""), "claude", now).Add(context...)
}

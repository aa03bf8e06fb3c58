// Package event holds agent-init's own events and knows an event line when it
// sees one.
package event

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Event is one event of agent-init's own, in the shape that the agent's hooks
// give theirs.
type Event struct {
	Type     string
	Session  string
	Provider string
	Time     time.Time
	// Context is written in this order.
	Context []Member
}

// Member is a name and a value of an object.
type Member struct {
	Name string
	// Value is valid JSON; the functions below make it.
	Value jsontext.Value
}

// New returns an event without context.
func New(kind, session, provider string, now time.Time) *Event {
	return &Event{Type: kind, Session: session, Provider: provider, Time: now}
}

// Add appends members to the context and returns the event.
func (e *Event) Add(members ...Member) *Event {
	e.Context = append(e.Context, members...)
	return e
}

// String is a member with a string; invalid UTF-8 in it becomes U+FFFD.
func String(name, value string) Member { return Member{name, quote(nil, value)} }

// Int is a member with a whole number.
func Int(name string, value int64) Member {
	return Member{name, scalar(jsontext.Int(value))}
}

// Float is a member with a number; NaN and the infinities, which JSON does not
// have, become strings.
func Float(name string, value float64) Member {
	return Member{name, scalar(jsontext.Float(value))}
}

// Bool is a member with true or false.
func Bool(name string, value bool) Member {
	return Member{name, scalar(jsontext.Bool(value))}
}

// Strings is a member with a list of strings.
func Strings(name string, values []string) Member {
	list := jsontext.Value("[")
	for i, v := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = quote(list, v)
	}
	return Member{name, append(list, ']')}
}

// Object is a member with an object.
func Object(name string, members ...Member) Member {
	return Member{name, object(nil, members)}
}

// List is a member with a list of objects.
func List(name string, objects ...[]Member) Member {
	list := jsontext.Value("[")
	for i, members := range objects {
		if i > 0 {
			list = append(list, ',')
		}
		list = object(list, members)
	}
	return Member{name, append(list, ']')}
}

// Raw is a member with JSON made elsewhere, put on one line. What is no valid
// JSON becomes a string, so that the event stays an event.
func Raw(name string, value []byte) Member {
	v := jsontext.Value(value).Clone()
	if v.Compact() != nil {
		return String(name, string(value))
	}
	return Member{name, v}
}

// timestamp is RFC 3339 with microseconds; in UTC it ends in +00:00, as
// Python's datetime.isoformat has it.
const timestamp = "2006-01-02T15:04:05.000000-07:00"

// AppendJSON appends the event as one line, its newline included.
func (e *Event) AppendJSON(dst []byte) []byte {
	dst = object(dst, []Member{
		String("event_type", e.Type),
		String("timestamp", e.Time.UTC().Format(timestamp)),
		String("session_id", e.Session),
		String("provider", e.Provider),
		Object("context", e.Context...),
	})
	return append(dst, '\n')
}

func object(dst []byte, members []Member) []byte {
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(quote(dst, m.Name), ':')
		dst = append(dst, m.Value...)
	}
	return append(dst, '}')
}

func quote(dst []byte, text string) []byte {
	// It fails for invalid UTF-8 only.
	dst, _ = jsontext.AppendQuote(dst, strings.ToValidUTF8(text, "\ufffd"))
	return dst
}

func scalar(t jsontext.Token) jsontext.Value {
	if t.Kind() == '"' {
		return quote(nil, t.String())
	}
	return jsontext.Value(t.String())
}

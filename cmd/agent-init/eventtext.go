package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"agent-init/internal/event"
)

// eventText shows events to people, one a line:
//
//	2026-11-21 07:45:47.785 tool_execution_failed claude tool_name=Bash error="no such file"
//
// Context and what else an event has is shown in its order; empty values are
// left out, and long ones cut.
type eventText struct{ coloured bool }

// maxShown is how many bytes of a value are shown.
const maxShown = 300

// Escape sequences of ECMA-48.
const (
	faint = "\x1b[2m"
	cyan  = "\x1b[36m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

func (t eventText) line(line []byte) []byte {
	var kind, stamp, provider, session string
	var rest strings.Builder
	event.Members(line, func(name string, value []byte) {
		switch name {
		case "event_type":
			kind = shown(value)
		case "timestamp":
			stamp = shownTime(value)
		case "provider":
			provider = shown(value)
		case "session_id":
			session = shown(value)
		case "context":
			if !event.Members(value, func(name string, value []byte) { t.member(&rest, name, value) }) {
				t.member(&rest, name, value)
			}
		default:
			t.member(&rest, name, value)
		}
	})
	var b strings.Builder
	t.put(&b, faint, stamp)
	colour := cyan
	if strings.Contains(kind, "fail") || strings.Contains(kind, "lost") || strings.Contains(kind, "error") {
		colour = red
	}
	t.put(&b, colour, kind)
	t.put(&b, "", provider)
	t.put(&b, faint, session)
	return []byte(strings.TrimSuffix(b.String()+rest.String(), " ") + "\n")
}

// put appends a word and a blank.
func (t eventText) put(b *strings.Builder, colour, word string) {
	if word != "" {
		b.WriteString(t.paint(colour, word) + " ")
	}
}

func (t eventText) paint(colour, word string) string {
	if !t.coloured || colour == "" {
		return word
	}
	return colour + word + plain
}

// member appends NAME=VALUE.
func (t eventText) member(b *strings.Builder, name string, value []byte) {
	switch string(value) {
	case "null", "{}", "[]", `""`:
	default:
		b.WriteString(t.paint(faint, printable(name)+"=") + shown(value) + " ")
	}
}

func shownTime(value []byte) string {
	text := event.Unquote(value)
	if t, ok := parseStamp(text); ok {
		return t.UTC().Format("2006-01-02 15:04:05.000")
	}
	return printable(text)
}

// shown is a JSON value: a string without quotes unless it needs them.
func shown(value []byte) string {
	text := string(value)
	if text == `""` {
		return ""
	}
	quote := false
	if text[0] == '"' {
		text = event.Unquote(value)
		quote = strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || r == '"' || !unicode.IsPrint(r) })
	}
	if len(text) > maxShown {
		cut := maxShown
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "..."
	}
	if quote {
		return strconv.Quote(text)
	}
	return printable(text)
}

// printable replaces what could disguise a line or drive a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

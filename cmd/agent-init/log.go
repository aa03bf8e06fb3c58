package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"

	"agent-init/internal/problem"
)

// newLogger logs JSON lines to w, or lines for people where w is a terminal.
// Each entry is one Write.
func newLogger(w io.Writer, level string, terminal bool) zerolog.Logger {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000000Z07:00"
	l, err := zerolog.ParseLevel(level)
	if err != nil {
		l = zerolog.InfoLevel
	}
	if terminal {
		return zerolog.New(people{w}).Level(l)
	}
	return zerolog.New(w).Level(l).With().Timestamp().Str("source", "agent-init").Logger()
}

// logProblems logs each finding on a line of its own.
func logProblems(log zerolog.Logger, found problem.List) {
	for _, p := range found {
		e := log.Error()
		if p.Severity == problem.Warning {
			e = log.Warn()
		}
		if p.File != "" {
			e = e.Str("file", p.File)
		}
		if p.Line > 0 {
			e = e.Int("line", p.Line).Int("column", p.Column)
		}
		if p.Hint != "" {
			e = e.Str("hint", p.Hint)
		}
		e.Msg(p.Text())
	}
}

// people rewrites zerolog's JSON lines for a terminal:
//
//	agent-init: error: cannot ... (hint)
type people struct{ w io.Writer }

// shownApart are fields that the message already says, or that people see in
// another way.
var shownApart = map[string]bool{"level": true, "message": true, "hint": true, "file": true, "line": true, "column": true}

func (p people) Write(line []byte) (int, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(line))
	fields := map[string]string{}
	var order []string
	if _, err := dec.ReadToken(); err != nil {
		return p.w.Write(line)
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return p.w.Write(line)
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return p.w.Write(line)
		}
		text := string(value)
		if value.Kind() == '"' {
			unquoted, _ := jsontext.AppendUnquote(nil, value)
			text = string(unquoted)
		}
		fields[key] = text
		order = append(order, key)
	}
	var b strings.Builder
	b.WriteString("agent-init: ")
	if level := fields["level"]; level != "info" {
		b.WriteString(strings.Replace(level, "warn", "warning", 1) + ": ")
	}
	b.WriteString(fields["message"])
	if hint := fields["hint"]; hint != "" {
		b.WriteString(" (" + hint + ")")
	}
	for _, key := range order {
		if !shownApart[key] {
			b.WriteString(" " + key + "=" + fields[key])
		}
	}
	b.WriteByte('\n')
	if _, err := io.WriteString(p.w, b.String()); err != nil {
		return 0, err
	}
	return len(line), nil
}

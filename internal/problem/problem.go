// Package problem holds what boot finds wrong: one finding says what cannot be
// done, to what, where, why, and what to do about it.
//
// The wording has rules: a finding that refuses begins with "cannot", nothing
// is capitalised or ends in a period, and neither a stack trace nor the value
// of a secret is ever part of one.
package problem

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Severity says whether a finding refuses boot.
type Severity int

const (
	// Error refuses boot.
	Error Severity = iota
	// Warning is recorded in the boot report and lets boot go on.
	Warning
)

// String is the name that reports use.
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Problem is one finding.
type Problem struct {
	Severity Severity
	// What cannot be done or is odd, without the file: "cannot read MCP config".
	What string
	// File is the path concerned; empty where there is none.
	File string
	// Line and Column count from 1, columns in characters; 0 means unknown.
	Line, Column int
	// Why it is so: `duplicate key "api"`.
	Why string
	// Hint says what to do; may be empty.
	Hint string
}

// Text is the finding on one line, without its hint:
//
//	cannot read MCP config /repos/b/mcp.json:14:7: duplicate key "api"
func (p Problem) Text() string {
	var b strings.Builder
	b.WriteString(oneLine(p.What))
	if p.File != "" {
		b.WriteByte(' ')
		b.WriteString(p.Place())
	}
	if p.Why != "" {
		b.WriteString(": ")
		b.WriteString(oneLine(p.Why))
	}
	return b.String()
}

// Place is FILE:LINE:COLUMN as far as it is known.
func (p Problem) Place() string {
	s := Path(p.File)
	if p.Line > 0 {
		s += ":" + strconv.Itoa(p.Line)
		if p.Column > 0 {
			s += ":" + strconv.Itoa(p.Column)
		}
	}
	return s
}

// Error is Text and the hint, so that a Problem can travel as an error.
func (p Problem) Error() string {
	if p.Hint == "" {
		return p.Text()
	}
	return p.Text() + " (" + oneLine(p.Hint) + ")"
}

// Path is a path as messages show it: quoted when it holds something that
// would break or disguise the line it stands in.
func Path(path string) string {
	if strings.ContainsFunc(path, unprintable) {
		return strconv.Quote(path)
	}
	return path
}

func oneLine(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r == unicode.ReplacementChar {
			b.WriteString(`\ufffd`)
		} else if unprintable(r) {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// List collects findings in the order in which they were made.
type List []Problem

// Add appends findings.
func (l *List) Add(p ...Problem) { *l = append(*l, p...) }

// Refuses tells whether any finding is an Error.
func (l List) Refuses() bool {
	return slices.ContainsFunc(l, func(p Problem) bool { return p.Severity == Error })
}

// Only returns the findings of one severity.
func (l List) Only(s Severity) List {
	var out List
	for _, p := range l {
		if p.Severity == s {
			out = append(out, p)
		}
	}
	return out
}

// Downgraded returns the list with every Error made a Warning.
func (l List) Downgraded() List {
	out := slices.Clone(l)
	for i := range out {
		out[i].Severity = Warning
	}
	return out
}

package secret

import (
	"fmt"
	"strings"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
)

// PutLimit is how many bytes the JSON object of "agent-init secrets put" may have.
const PutLimit = 1 << 20

// maxEntry is how long NAME=VALUE with its NUL may be in an environment: Linux's
// MAX_ARG_STRLEN, 32 pages of 4 KiB (execve(2)).
const maxEntry = 32 * 4096

const putHint = `write one JSON object of names and strings: {"GITHUB_TOKEN": "..."}`

// ParsePut reads the JSON object of names and values on which "agent-init secrets
// put" is fed. The Error has the position, and never a value.
func ParsePut(data []byte) (map[string]string, *problem.Problem) {
	fail := func(line, column int, why, hint string) (map[string]string, *problem.Problem) {
		return nil, &problem.Problem{What: "cannot take secrets from", File: "stdin", Line: line, Column: column, Why: why, Hint: hint}
	}
	if len(data) > PutLimit {
		return fail(0, 0, fmt.Sprintf("there are more than %d bytes", PutLimit), "hand over secrets only, not files")
	}
	doc, bad := jsondoc.Parse("secrets", "stdin", data)
	if bad != nil {
		return fail(bad.Line, bad.Column, unquoted(bad.Why), putHint)
	}
	if doc.Root.Kind != '{' {
		return fail(1, 1, "it holds "+doc.Root.KindName()+", not an object", putHint)
	}
	values := make(map[string]string, len(doc.Root.Members))
	for _, m := range doc.Root.Members {
		line, column := doc.Position(m.NameStart)
		if !IsVariable(m.Name) {
			return fail(line, column, "what stands in the place of a name is not the name of a variable (not shown, in case it is a secret)", putHint)
		}
		if why := CheckPut(m.Name, m.Value.Text); why != "" {
			return fail(line, column, m.Name+" "+why, "")
		}
		if m.Value.Kind != '"' {
			line, column := doc.Position(m.Value.Start)
			return fail(line, column, m.Name+" is "+m.Value.KindName()+", not a string", putHint)
		}
		values[m.Name] = m.Value.Text
	}
	if len(values) == 0 {
		return fail(1, 1, "the object holds no secret", putHint)
	}
	return values, nil
}

// unquoted leaves out what a message about JSON quotes of it: somebody may have
// fed a bare token.
func unquoted(why string) string {
	switch {
	case strings.HasPrefix(why, "duplicate key"):
		return "a name stands there twice"
	case strings.ContainsAny(why, "\"'`"):
		return "it is not valid JSON"
	}
	return why
}

// CheckPut says why a value cannot be handed over; it is empty where it can.
func CheckPut(name, value string) (why string) {
	switch {
	case strings.HasPrefix(name, "AGENTIC_"):
		return "is a setting of agent-init's, which it has read already"
	case strings.ContainsRune(value, 0):
		return "contains a NUL byte"
	case len(name)+len(value)+2 > maxEntry:
		return fmt.Sprintf("is longer than a variable can be, %d bytes", maxEntry)
	}
	return ""
}

// IsVariable tells whether a text can name a variable: letters, digits and
// underscores, not beginning with a digit.
func IsVariable(name string) bool {
	for i := range len(name) {
		c := name[i]
		digit := c >= '0' && c <= '9'
		if c != '_' && !(c|0x20 >= 'a' && c|0x20 <= 'z') && (!digit || i == 0) {
			return false
		}
	}
	return name != ""
}

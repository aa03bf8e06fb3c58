package gitsetup

import (
	"bytes"
	"fmt"
	"strings"

	"agent-init/internal/problem"
)

const (
	blockBegin = "# >>> agent-init: replaced at every start, lines of your own belong below it"
	blockEnd   = "# <<< agent-init"
	// ownTag ends every line that is ours. git config(1) writes new variables
	// into the last section of that name, which may stand in our block, and
	// drops a comment from a line that it changes: what has no tag is not ours.
	ownTag = " # agent-init"
)

// header and name of a setting, as the block spells them. A subsection stands
// between the first dot and the last; none of ours needs escapes.
func (s Setting) split() (header, name string) {
	first, last := strings.IndexByte(s.Key, '.'), strings.LastIndexByte(s.Key, '.')
	header, name = s.Key[:first], s.Key[last+1:]
	if first < last {
		header += ` "` + s.Key[first+1:last] + `"`
	}
	return header, name
}

// renderBlock writes settings between the marker lines.
func renderBlock(settings []Setting) []byte {
	size := len(blockBegin) + len(blockEnd) + 2
	for _, s := range settings {
		size += len(s.Key) + len(s.Value) + len(ownTag) + 16
	}
	b := append(make([]byte, 0, size), blockBegin+"\n"...)
	last := ""
	for _, s := range settings {
		header, name := s.split()
		if header != last {
			b = append(append(append(b, '['), header...), "]\n"...)
			last = header
		}
		b = append(append(append(b, '\t'), name...), " = "...)
		b = append(append(appendQuoted(b, s.Value), ownTag...), '\n')
	}
	return append(b, blockEnd+"\n"...)
}

// userContent is a configuration file without what is ours in it.
type userContent struct {
	bom bool
	// moved are lines that stood inside our block and are not ours.
	moved []byte
	rest  []byte
}

// all is what git reads of it.
func (u userContent) all() []byte { return append(bytes.Clone(u.moved), u.rest...) }

// with puts a block before the user's lines, so that those win.
func (u userContent) with(block []byte) []byte {
	var b bytes.Buffer
	if u.bom {
		b.WriteString(bom)
	}
	b.Write(block)
	b.Write(u.moved)
	b.Write(u.rest)
	return b.Bytes()
}

// splitConfig takes our block out of a file. A marker without its counterpart
// is an Error: where ours ends is then unknown, and lines of the user's could
// be lost.
func splitConfig(path string, data []byte) (userContent, *problem.Problem) {
	var u userContent
	data, u.bom = bytes.CutPrefix(data, []byte(bom))
	var in *block
	number := 0
	for raw := range bytes.Lines(data) {
		number++
		line := strings.TrimRight(string(raw), "\r\n")
		switch {
		case line == blockBegin && in == nil:
			in = &block{line: number}
		case line == blockEnd && in != nil:
			u.moved = append(u.moved, in.foreign...)
			in = nil
		case line == blockBegin:
			return u, unpaired(path, in.line, blockEnd)
		case line == blockEnd:
			return u, unpaired(path, number, blockBegin)
		case in != nil:
			in.add(line, raw)
		default:
			u.rest = append(u.rest, raw...)
		}
	}
	if in != nil {
		return u, unpaired(path, in.line, blockEnd)
	}
	return u, nil
}

func unpaired(path string, line int, missing string) *problem.Problem {
	p := &problem.Problem{What: "cannot replace agent-init's block in git configuration", File: path, Line: line,
		Why:  "the begin marker of the block has no end marker",
		Hint: fmt.Sprintf("remove this line and those that end in %q", strings.TrimSpace(ownTag))}
	if missing == blockBegin {
		p.Why = "the end marker of the block has no begin marker"
	}
	return p
}

// block collects the lines of an old block that are not ours, under the section
// headers that they had.
type block struct {
	line            int
	section, copied string
	foreign         []byte
}

func (b *block) add(line string, raw []byte) {
	trimmed := strings.Trim(line, " \t")
	switch {
	case trimmed == "" || strings.HasSuffix(line, ownTag):
		return
	case isOwnHeader(trimmed):
		b.section = trimmed
		return
	case trimmed[0] == '[':
		b.section, b.copied = line, line
	case trimmed[0] != '#' && trimmed[0] != ';' && b.copied != b.section:
		b.foreign = append(b.foreign, b.section+"\n"...)
		b.copied = b.section
	}
	b.foreign = append(b.foreign, raw...)
}

func isOwnHeader(line string) bool {
	switch line {
	case "[user]", "[init]", "[safe]", "[core]", "[credential]":
		return true
	}
	return strings.HasPrefix(line, `[credential "https://`)
}

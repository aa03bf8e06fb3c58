package tap

import "strings"

// words splits a command line that the CLI has put together from a program and
// its arguments: words of plain characters and quoted parts, with blanks between
// them. It is false for anything that would mean more to a shell.
func words(line string) (out []string, ok bool) {
	var word strings.Builder
	begun := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\n':
			if begun {
				out = append(out, word.String())
				word.Reset()
				begun = false
			}
		case '\'', '"':
			end := strings.IndexByte(line[i+1:], c)
			if end < 0 {
				return nil, false
			}
			part := line[i+1 : i+1+end]
			if c == '"' && strings.ContainsAny(part, "\\$`!") {
				return nil, false
			}
			word.WriteString(part)
			begun = true
			i += end + 1
		default:
			if !plain(c) {
				return nil, false
			}
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out, len(out) > 0
}

// plain tells whether a character means nothing but itself in any shell's word.
func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 || strings.IndexByte("_./:=@+,-", c) >= 0
}

// quoted makes one word of text for a POSIX shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }

// called is the command line that has a prefix run a command, as the CLI writes
// it: what follows the last " -" of the prefix is an argument.
func called(prefix, command string) string {
	if i := strings.LastIndex(prefix, " -"); i > 0 {
		return quoted(prefix[:i]) + prefix[i:] + " " + quoted(command)
	}
	return quoted(prefix) + " " + quoted(command)
}

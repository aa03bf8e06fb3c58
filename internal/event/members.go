package event

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Members calls visit with each member of the object that text is, in order,
// and tells whether text is one, with or without a newline. The value is as it
// stands in the text; what IsEvent lets pass beyond JSON passes here too.
func Members(text []byte, visit func(name string, value []byte)) bool {
	text = bytes.TrimSuffix(text, []byte("\n"))
	s := scanner{data: text}
	i := blanks(text, 0)
	if s.at(i) != '{' {
		return false
	}
	if end, ok := s.object(i, 0); !ok || blanks(text, end) < len(text) {
		return false
	}
	for i = blanks(text, i+1); s.at(i) == '"'; {
		nameEnd, _ := s.str(i)
		name := Unquote(text[i:nameEnd])
		i = blanks(text, blanks(text, nameEnd)+1)
		end, _ := s.value(i, 1)
		visit(name, text[i:end])
		if i = blanks(text, end); s.at(i) == ',' {
			i = blanks(text, i+1)
		}
	}
	return true
}

// Unquote is the text of a JSON string; what is no UTF-8 in it becomes U+FFFD.
func Unquote(value []byte) string {
	text, _ := jsontext.AppendUnquote(nil, value) // It unquotes all the same.
	return string(text)
}

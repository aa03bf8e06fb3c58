package hook

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"agent-init/internal/event"
)

// AppendLine appends the event as one line, newline included, byte for byte as
// Python's json.dumps writes it: a space after commas and colons, nothing but
// ASCII.
func AppendLine(dst []byte, e *event.Event) []byte {
	// It fails for invalid JSON only.
	spaced, _ := jsontext.AppendFormat(nil, e.AppendJSON(nil), jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))
	return append(appendASCII(dst, spaced), '\n')
}

// appendASCII appends JSON with what is no printable ASCII, which occurs within
// strings only, as escape sequences.
func appendASCII(dst, json []byte) []byte {
	for i := 0; i < len(json); {
		if c := json[i]; c < utf8.RuneSelf && c != 0x7f {
			dst = append(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(json[i:])
		i += size
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			dst = appendEscape(appendEscape(dst, high), low)
		} else {
			dst = appendEscape(dst, r)
		}
	}
	return dst
}

func appendEscape(dst []byte, unit rune) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[unit>>12&15], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
}

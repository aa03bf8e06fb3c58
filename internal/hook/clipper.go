package hook

import (
	"errors"
	"io"
)

const (
	// maxString is what a string literal may hold, in bytes: room for maxText
	// characters of which each is a surrogate pair, twelve bytes. What exceeds
	// it is dropped.
	maxString = 12*maxText + 1
	// maxLiteral bounds a number, in bytes.
	maxLiteral = 4 << 10
	clipBuffer = 64 << 10
)

// clipper passes JSON on with long strings shortened and white space reduced:
// the decoder above it holds a whole token in memory, however long. What it
// drops of a string is not checked.
type clipper struct {
	src     io.Reader
	buf     []byte
	pending []byte
	err     error

	inString bool
	// escape says where in an escape sequence the input is: 0 is in none,
	// afterBackslash after its first byte, less is the digits to come.
	escape   int
	dropping bool
	// length counts what was kept of the string, or the bytes of the literal.
	length int
	blank  bool
}

const (
	afterBackslash = 5
	unicodeDigits  = 4
)

// Read implements io.Reader.
func (c *clipper) Read(p []byte) (int, error) {
	for len(c.pending) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		if c.buf == nil {
			c.buf = make([]byte, clipBuffer)
		}
		n, err := c.src.Read(c.buf)
		c.err = err
		c.pending = c.clip(c.buf[:n])
	}
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

// clip shortens data in place.
func (c *clipper) clip(data []byte) []byte {
	kept := data[:0]
	for i := 0; i < len(data); i++ {
		if c.inString && c.escape == 0 {
			plain := plainRun(data[i:])
			fits := min(plain, max(maxString-c.length, 0))
			kept = append(kept, data[i:i+fits]...)
			c.length += fits
			if i += plain; i == len(data) {
				break
			}
		}
		if c.keep(data[i]) {
			kept = append(kept, data[i])
		}
		if !c.inString && c.length > maxLiteral {
			c.err = errors.New("a number in it is too long")
			break
		}
	}
	return kept
}

// plainRun is the length of what stands for itself at the start of data, which
// is inside a string.
func plainRun(data []byte) int {
	for i, b := range data {
		if b == '"' || b == '\\' {
			return i
		}
	}
	return len(data)
}

func (c *clipper) keep(b byte) bool {
	if c.inString {
		return c.stringByte(b)
	}
	wasBlank := c.blank
	c.blank = false
	switch b {
	case '"':
		c.inString, c.length = true, 0
	case ' ', '\t', '\r', '\n':
		c.blank, c.length = true, 0
		return !wasBlank
	case ',', ':', '[', ']', '{', '}':
		c.length = 0
	default:
		c.length++
	}
	return true
}

// stringByte tells whether to keep a byte of a string that is not plain. An escape
// sequence is kept or dropped as a whole.
func (c *clipper) stringByte(b byte) bool {
	switch {
	case c.escape == afterBackslash && b == 'u':
		c.escape = unicodeDigits
	case c.escape == afterBackslash:
		c.escape = 0
	case c.escape > 0:
		c.escape--
	case b == '"':
		c.inString, c.dropping, c.length = false, false, 0
		return true
	default:
		c.dropping = c.length >= maxString
		c.escape = afterBackslash
	}
	if !c.dropping {
		c.length++
	}
	return !c.dropping
}

package relay

import (
	"bytes"

	"agent-init/internal/secret"
	"agent-init/internal/sink"
)

// collector masks a text that comes in pieces and passes its lines on to an
// Output.
type collector struct {
	out *Output
	// shows says that lines that are no events are written too; else they are
	// dropped.
	shows bool
	// buf[:text] is masked and waits for the end of its line; buf[text:end] is
	// what the masker holds back.
	buf       []byte
	text, end int
	mask      secret.Stream
	// begun says that the beginning of the current line is out already, or in
	// line.
	begun bool
	// line has the current line, if it is long and may be an event; else nil.
	line *sink.Line
	pick picked
	// passed says that something has been passed on.
	passed bool
}

// room returns where the next piece, of up to a chunk, is to be put.
func (c *collector) room() []byte {
	c.makeRoom(chunk)
	return c.buf[c.end:]
}

// makeRoom makes buf hold another n bytes, and not much more than it needs.
func (c *collector) makeRoom(n int) {
	if len(c.buf)-c.end >= n && (len(c.buf) <= 4*chunk || c.end >= chunk) {
		return
	}
	size := 2 * n
	for size-c.end < n {
		size *= 2
	}
	if size != len(c.buf) {
		grown := make([]byte, size)
		copy(grown, c.buf[:c.end])
		c.buf = grown
	}
}

// add takes a piece.
func (c *collector) add(p []byte) {
	c.makeRoom(len(p))
	c.take(copy(c.buf[c.end:], p), false)
}

// finish passes on what is left when nothing follows.
func (c *collector) finish() {
	c.take(0, true)
	if c.text > 0 {
		c.pass(c.text)
	}
	c.endLine(false)
	c.out.release(c)
	c.buf = nil
}

// take masks n bytes that were put into room and passes on what may be passed
// on.
func (c *collector) take(n int, last bool) {
	seen := c.text
	raw := c.buf[c.text : c.end+n]
	masked, held := c.mask.Mask(raw[:0], c.out.masker.Load(), raw, last)
	c.text += len(masked)
	c.end = c.text + copy(c.buf[c.text:], raw[len(raw)-held:])
	if nl := bytes.LastIndexByte(c.buf[seen:c.text], '\n'); nl >= 0 {
		c.pass(seen + nl + 1)
		c.begun = false
	}
	if c.begun || c.text >= maxHeld {
		c.passBeginning()
	}
}

// passBeginning passes on the beginning of a line that is not complete.
func (c *collector) passBeginning() {
	if c.text > 0 {
		if !c.begun && mayBeEvent(c.buf[:c.text]) {
			c.line = c.out.newLine()
		}
		c.pass(c.text)
		c.begun = true
	}
}

// pass passes on the first n bytes of buf and forgets them: lines, of which the
// first may have begun before and the last be incomplete.
func (c *collector) pass(n int) {
	c.passed = true
	text, begun := c.buf[:n], c.begun
	if c.line != nil {
		text, begun = c.addToLine(text)
	}
	if begun {
		head := bytes.IndexByte(text, '\n') + 1
		if head == 0 {
			head = len(text)
		}
		if c.shows {
			c.out.emit(c, text[:head], 0)
		}
		text = text[head:]
	}
	if len(text) > 0 {
		c.out.lines(c, text)
	}
	copy(c.buf, c.buf[n:c.end])
	c.text -= n
	c.end -= n
}

// addToLine adds the beginning of text to the long line that it continues and
// returns what comes after that. Where there is no place for it the line is
// shown as it comes: what is returned then continues it.
func (c *collector) addToLine(text []byte) (rest []byte, begun bool) {
	piece, rest, ended := bytes.Cut(text, newline)
	if !c.out.retry(func() error { return c.line.Append(piece) }) {
		c.out.giveUpLine(c, c.line)
		c.line = nil
		return text, true
	}
	if ended {
		c.endLine(true)
	}
	return rest, false
}

// endLine ends a long line, with its newline or without.
func (c *collector) endLine(ended bool) {
	if c.line != nil {
		c.out.longLine(c, c.line, ended)
		c.line.Close()
		c.line = nil
	}
}

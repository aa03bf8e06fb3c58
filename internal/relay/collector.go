package relay

import (
	"bytes"

	"agent-init/internal/secret"
)

// collector masks a text that comes in pieces and hands the lines that are
// events to the sinks of its Output.
type collector struct {
	out *Output
	// buf[:text] is masked and waits for the end of its line; the rest is what
	// the masker holds back.
	buf  []byte
	text int
	mask secret.Stream
	// begun says that the beginning of the current line has been handed on.
	begun  bool
	events toJournal
}

// add takes the next piece.
func (c *collector) add(p []byte) { c.take(p, false) }

// finish ends the last line.
func (c *collector) finish() {
	c.take(nil, true)
	if c.text > 0 {
		c.hand(c.text)
	}
	c.events.end()
	c.buf = nil
}

func (c *collector) take(p []byte, last bool) {
	seen := c.text
	c.buf = append(c.buf, p...)
	raw := c.buf[seen:]
	masked, held := c.mask.Mask(raw[:0], c.out.masker.Load(), raw, last)
	c.text += len(masked)
	c.buf = c.buf[:c.text+copy(c.buf[c.text:], raw[len(raw)-held:])]
	if nl := bytes.LastIndexByte(c.buf[seen:c.text], '\n'); nl >= 0 {
		c.hand(seen + nl + 1)
		c.begun = false
	}
	if c.text > 0 && (c.begun || c.text >= maxHeld) {
		c.hand(c.text)
		c.begun = true
	}
}

// hand hands on the first n bytes of buf and forgets them.
func (c *collector) hand(n int) {
	if j := c.out.journal.Load(); j != nil {
		c.events.take(j, c.buf[:n], c.begun)
	}
	c.buf = c.buf[:copy(c.buf, c.buf[n:])]
	c.text -= n
}

package relay

import (
	"time"

	"agent-init/internal/sink"
)

// emit writes text of c (nil for agent-init itself): lines, of which the first
// may continue the open line of c and the last be left open. events is how many
// events they are if they are nothing else, or 0. Where nobody reads, events go
// to disk; other lines wait, unless they continue one.
func (o *Output) emit(c *collector, text []byte, events int64) {
	o.line.Lock()
	defer o.line.Unlock()
	for {
		o.acquire(c)
		if o.offer(c, text, events) {
			break
		}
		if o.awaitRoom(c, events > 0) {
			o.queue.Lose(text, 0)
			break
		}
	}
	o.fresh = text[len(text)-1] == '\n'
	if o.fresh {
		o.open = nil
		o.ended.Broadcast()
		return
	}
	o.open, o.since = c, time.Now()
}

// offer writes or queues text, if there is room for it.
func (o *Output) offer(c *collector, text []byte, events int64) bool {
	continues := o.open != nil
	if !continues && !o.fresh {
		text = append([]byte{'\n'}, text...)
	}
	if o.queue.Idle() {
		// Nobody else writes: line is held.
		n, err := o.dest.try(text)
		switch {
		case err != nil:
			o.queue.Lose(text, n)
		case n < len(text):
			o.queue.Append(text[n:])
		}
		return true
	}
	room := sink.Memory
	if events > 0 || continues {
		room = sink.Disk
	}
	return o.queue.TryPut(text, events, room)
}

// awaitRoom waits for room without holding line, and tells whether text is to be
// dropped instead.
func (o *Output) awaitRoom(c *collector, events bool) (drop bool) {
	if c != nil && o.open == c {
		o.stuck = true
		defer func() { o.stuck = false }()
	}
	o.line.Unlock()
	defer o.line.Lock()
	return o.queue.AwaitRoom(events)
}

// lineEnd says what follows a long line.
type lineEnd int

const (
	// endsLine is its newline.
	endsLine lineEnd = iota
	// unended is nothing: its writer has ended.
	unended
	// begins is the rest of it.
	begins
)

// emitLine writes a long line of c that is so many events.
func (o *Output) emitLine(c *collector, l *sink.Line, end lineEnd, events int64) {
	o.line.Lock()
	defer o.line.Unlock()
	for {
		o.acquire(c)
		if o.queue.TryPutPart(l, !o.fresh, end == endsLine, events) {
			break
		}
		if o.awaitRoom(c, events > 0) {
			o.queue.LosePart(l, events)
			break
		}
	}
	o.fresh, o.open = end == endsLine, nil
	if end == begins {
		o.open, o.since = c, time.Now()
	}
	o.ended.Broadcast()
}

// acquire waits until c may write: no line is open, or its own is, or one that
// has been quiet for too long.
func (o *Output) acquire(c *collector) {
	for o.open != nil && o.open != c {
		left := openQuiet - time.Since(o.since)
		if left <= 0 && !o.stuck {
			o.open = nil
			return
		}
		timer := time.AfterFunc(max(left, openQuiet/10), func() {
			o.line.Lock()
			defer o.line.Unlock()
			o.ended.Broadcast()
		})
		o.ended.Wait()
		timer.Stop()
	}
}

// release ends the open line of c, which has no newline and gets none.
func (o *Output) release(c *collector) {
	o.line.Lock()
	defer o.line.Unlock()
	if o.open == c {
		o.open = nil
		o.ended.Broadcast()
	}
}

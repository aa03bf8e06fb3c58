package relay

import (
	"bytes"

	"agent-init/internal/event"
)

// picked are the events among some lines.
type picked struct {
	// lines are they, each with its newline.
	lines []byte
	count int64
	// all says that there are no other lines.
	all bool
	// scratch is memory for events that do not stand together.
	scratch []byte
	// halves are used for long texts, joined is memory for what they have found.
	halves *[2]picked
	joined []byte
}

// apart is the size in bytes from which on the two halves of a text are looked at
// at the same time: recognising events is most of a relay's work.
const apart = 16 << 10

// pick finds the events among lines, of which the last newline may be missing.
// The result holds until the next call.
func (p *picked) pick(lines []byte) {
	half := 0
	if len(lines) >= apart {
		half = bytes.LastIndexByte(lines[:len(lines)/2], '\n') + 1
	}
	if half == 0 {
		p.pickAll(lines)
		return
	}
	if p.halves == nil {
		p.halves = new([2]picked)
	}
	first, second := &p.halves[0], &p.halves[1]
	done := make(chan struct{})
	go func() {
		second.pickAll(lines[half:])
		close(done)
	}()
	first.pickAll(lines[:half])
	<-done
	p.count, p.all = first.count+second.count, first.all && second.all
	if p.all && lines[len(lines)-1] == '\n' {
		p.lines = lines
		return
	}
	p.joined = append(append(p.joined[:0], first.lines...), second.lines...)
	p.lines = p.joined
}

func (p *picked) pickAll(lines []byte) {
	// Neighbours go together: most often all lines are events, or none.
	scattered := p.scratch[:0]
	run := 0
	p.count, p.all = 0, true
	for start := 0; start < len(lines); {
		end := len(lines)
		if i := bytes.IndexByte(lines[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		if isEvent(lines[start:end]) {
			p.count++
		} else {
			scattered = append(scattered, lines[run:start]...)
			run, p.all = end, false
		}
		start = end
	}
	last := lines[run:]
	if len(scattered) == 0 && (len(last) == 0 || last[len(last)-1] == '\n') {
		p.lines = last
		return
	}
	scattered = append(scattered, last...)
	if len(scattered) > 0 && scattered[len(scattered)-1] != '\n' {
		scattered = append(scattered, '\n')
	}
	p.lines, p.scratch = scattered, scattered
}

// countEvents counts the events among lines.
func countEvents(lines []byte) (n int64) {
	for line := range bytes.Lines(lines) {
		if isEvent(line) {
			n++
		}
	}
	return n
}

// runs calls do for neighbouring lines of one kind.
func runs(lines []byte, do func(lines []byte, events int64)) {
	start, end, kind := 0, 0, false
	for line := range bytes.Lines(lines) {
		if is := isEvent(line); is != kind {
			if end > start {
				do(lines[start:end], count(kind, lines[start:end]))
			}
			start, kind = end, is
		}
		end += len(line)
	}
	if end > start {
		do(lines[start:end], count(kind, lines[start:end]))
	}
}

func count(events bool, lines []byte) int64 {
	if !events {
		return 0
	}
	n := int64(bytes.Count(lines, newline))
	if lines[len(lines)-1] != '\n' {
		n++
	}
	return n
}

var (
	newline   = []byte("\n")
	eventType = []byte("event_type")
)

// isEvent is event.IsEvent, at less cost for lines that are none.
func isEvent(line []byte) bool {
	return mayBeEvent(line) && named(line) && event.IsEvent(line)
}

// named tells whether a line has an event's member in it, perhaps written with
// escapes: it spares other JSON lines the whole check.
func named(line []byte) bool {
	return bytes.Contains(line, eventType) || bytes.IndexByte(line, '\\') >= 0
}

// mayBeEvent tells whether the beginning of a line could be an event's.
func mayBeEvent(text []byte) bool {
	for _, c := range text {
		if c != ' ' && c != '\t' && c != '\r' {
			return c == '{'
		}
	}
	return false
}

package relay

import (
	"time"

	"agent-init/internal/sink"
)

// Events says where events go.
type Events struct {
	// Sinks get every event.
	Sinks []Sink
	// Stderr says that events are written as other lines are.
	Stderr bool
	// Dir is the directory for what does not fit in memory; "" is for none.
	Dir string
	// Drop has events that do not fit dropped instead of making writers wait.
	Drop bool
}

// Sink is a sink with its name in events and log lines.
type Sink struct {
	Name string
	*sink.Sink
}

// fullRetry is the time between attempts at a disk that is full.
const fullRetry = 50 * time.Millisecond

// SetEvents sets where events go from now on; until then all lines are written.
func (o *Output) SetEvents(e Events) {
	o.queue.SetSpool(e.Dir, e.Drop)
	o.events.Store(&e)
}

// Loss is how many events a sink lacks.
type Loss struct {
	Sink   string
	Events int64
}

// Losses are those of all sinks that lack some; that of the descriptor is called
// stderr.
func (o *Output) Losses() []Loss {
	e := o.events.Load()
	if e == nil {
		return nil
	}
	all := e.Sinks
	if e.Stderr {
		all = append(all[:len(all):len(all)], Sink{"stderr", o.queue})
	}
	var out []Loss
	for _, s := range all {
		if _, events := s.Lost(); events > 0 {
			out = append(out, Loss{s.Name, events})
		}
	}
	return out
}

// sinks returns a new slice.
func (e *Events) sinks() (out []*sink.Sink) {
	if e != nil {
		for _, s := range e.Sinks {
			out = append(out, s.Sink)
		}
	}
	return out
}

// Event takes an event line of agent-init's own, with its newline, and never
// waits: the sinks get it.
func (o *Output) Event(line []byte) {
	e := o.events.Load()
	if e == nil || e.Stderr {
		o.Write(line)
	}
	if e != nil && len(e.Sinks) > 0 {
		masked := o.masker.Load().Mask(nil, line)
		for _, s := range e.Sinks {
			s.PutOwn(masked, 1)
		}
	}
}

// lines passes on lines of c, of which the last newline may be missing.
func (o *Output) lines(c *collector, text []byte) {
	e := o.events.Load()
	if e == nil || c.shows && e.Stderr && len(e.Sinks) == 0 {
		if c.shows {
			o.emit(c, text, 0)
		}
		return
	}
	p := &c.pick
	p.pick(text)
	if p.count > 0 {
		for _, s := range e.Sinks {
			s.Put(p.lines, p.count)
		}
	}
	switch {
	case c.shows && p.count == 0:
		o.emit(c, text, 0)
	case c.shows && e.Stderr && p.all:
		o.emit(c, text, p.count)
	case c.shows && e.Stderr && o.queue.HasMemory():
		o.emit(c, text, 0)
	case c.shows && !p.all:
		runs(text, func(lines []byte, events int64) {
			if events == 0 || e.Stderr {
				o.emit(c, lines, events)
			}
		})
	case !c.shows && e.Stderr && p.count > 0:
		o.emit(c, p.lines, p.count)
	}
}

// newLine begins a line that is long and may be an event; nil says that there is
// no place for it, so that the sinks lack it.
func (o *Output) newLine() (l *sink.Line) {
	e := o.events.Load()
	if e == nil {
		return nil
	}
	made := e.Dir != "" && o.retry(func() (err error) {
		l, err = sink.NewLine(e.Dir)
		return err
	})
	if !made {
		o.loseLine(e)
		return nil
	}
	return l
}

// retry repeats something while the disk is full, if writers are to wait, and
// tells whether it was done.
func (o *Output) retry(do func() error) bool {
	for {
		err := do()
		if err == nil {
			return true
		}
		e := o.events.Load()
		if !sink.IsFull(err) || e == nil || e.Drop || o.hurried.Load() {
			return false
		}
		time.Sleep(fullRetry)
	}
}

// loseLine counts a long line that may have been an event: nobody can tell any
// more.
func (o *Output) loseLine(e *Events) {
	for _, s := range e.Sinks {
		s.LoseEvent()
	}
}

// giveUpLine passes on the beginning of a long line that cannot be kept.
func (o *Output) giveUpLine(c *collector, l *sink.Line) {
	defer l.Close()
	e := o.events.Load()
	o.loseLine(e)
	if c.shows {
		o.emitLine(c, l, begins, 0)
	} else if e.Stderr {
		o.queue.LoseEvent()
	}
}

// longLine passes on a long line of c, with its newline or without.
func (o *Output) longLine(c *collector, l *sink.Line, ended bool) {
	e := o.events.Load()
	end := unended
	if ended {
		end = endsLine
	}
	is := false
	if err := l.Read(func(text []byte) { is = isEvent(text) }); err != nil {
		o.giveUpLine(c, l)
		return
	}
	var events int64
	if is {
		events = 1
		if o.retry(l.End) {
			for _, s := range e.Sinks {
				s.PutLine(l)
			}
		} else {
			o.loseLine(e)
		}
	}
	switch {
	case is && e.Stderr && !c.shows:
		o.emitLine(c, l, endsLine, events)
	case is && e.Stderr || !is && c.shows:
		o.emitLine(c, l, end, events)
	}
}

// Package relay brings what the agent writes to its standard error, and what
// agent-init itself has to say, to one descriptor: line by line, nothing torn,
// secrets masked.
//
// Lines of several writers never mix. A line that is shown before it is
// complete (a prompt, or one too long to be held) is open: others wait for its
// end, or until nothing has been added to it for a second; then they begin on a
// fresh line.
package relay

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"agent-init/internal/secret"
	"agent-init/internal/sink"
)

const (
	// openQuiet is how long an open line may stand still while others wait.
	openQuiet = time.Second
	// ownLimit bounds agent-init's own lines in bytes that are not queued yet.
	ownLimit = 1 << 20
	// lastWrites is how long after a Drain's deadline writing may go on.
	lastWrites = 100 * time.Millisecond
)

// Output owns a descriptor to which lines are written. All its methods are safe
// for concurrent use.
type Output struct {
	dest *descriptor
	// queue is what dest has not taken at once.
	queue  *sink.Sink
	masker atomic.Pointer[secret.Masker]
	events atomic.Pointer[Events]
	// hurried says that what finds no place is to be given up.
	hurried atomic.Bool

	// line guards where on the descriptor's current line we are; it is held
	// while writing.
	line sync.Mutex
	// ended is signalled when open or its quiet changes.
	ended *sync.Cond
	// open is who wrote the beginning of a line and not yet its end; stuck says
	// that its rest waits for room.
	open  *collector
	since time.Time
	stuck bool
	// fresh says that the next byte begins a line.
	fresh bool

	// work guards what Drain waits for.
	work sync.Mutex
	// streams are what is read, each with the run during which it began.
	streams  map[source]int
	run      int
	own      []byte
	flushing bool
	// idle is closed when there is nothing left to do, less when a stream has
	// ended; nil unless someone waits.
	idle, less chan struct{}

	// watch tells followed files of changes.
	watch watch
}

// NewOutput returns an Output that writes to fd and masks nothing yet. It does
// not close fd.
func NewOutput(fd int) *Output {
	o := &Output{dest: newDescriptor(fd), fresh: true, streams: map[source]int{}}
	o.queue = sink.New(o.dest, sink.Options{GiveUp: true, Count: countEvents, Torn: o.dest.tear})
	o.ended = sync.NewCond(&o.line)
	return o
}

// SetMasker sets what is masked from now on.
func (o *Output) SetMasker(m *secret.Masker) { o.masker.Store(m) }

// Lost is how many bytes were not written: the reader was gone, the disk full, a
// Drain out of time, or own lines piled up with nobody reading them. It counts
// text as it is written, that is masked.
func (o *Output) Lost() int64 {
	size, _ := o.queue.Lost()
	return size
}

// Write takes whole lines of agent-init's own and never waits for the
// descriptor: they are written as soon as it accepts them. Drain waits for
// that. The last line's newline may be missing; err is always nil.
func (o *Output) Write(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	o.work.Lock()
	defer o.work.Unlock()
	if len(o.own) > 0 && len(o.own)+len(p) > ownLimit {
		o.queue.Lose(p, 0)
		return len(p), nil
	}
	o.own = o.masker.Load().Mask(o.own, p)
	if o.own[len(o.own)-1] != '\n' {
		o.own = append(o.own, '\n')
	}
	if !o.flushing {
		o.flushing = true
		go o.flush()
	}
	return len(p), nil
}

// flush writes own lines until there are none.
func (o *Output) flush() {
	var lines []byte
	for {
		o.work.Lock()
		if len(o.own) == 0 {
			o.own, o.flushing = nil, false
			o.checkIdle()
			o.work.Unlock()
			return
		}
		lines, o.own = o.own, lines[:0]
		o.work.Unlock()
		o.emit(nil, lines, 0)
	}
}

// Copy begins to copy r, line by line, until its end, in a goroutine of its own
// that closes r. r is the read end of a pipe in non-blocking mode, as os.Pipe
// makes it, so that waiting for it takes no thread.
func (o *Output) Copy(r *os.File) { o.CopyTee(r, nil) }

// CopyTee is Copy, and tee gets what is read as it is; it keeps nothing of it.
func (o *Output) CopyTee(r *os.File, tee func([]byte)) {
	s := &stream{collector: collector{out: o, shows: true}, in: r, tee: tee}
	o.begin(s, s.run)
}

// source is what Drain waits for: a pipe or a file that is read.
type source interface {
	// stop makes it end soon, with what it has.
	stop()
}

// begin runs a source in a goroutine of its own.
func (o *Output) begin(s source, run func()) {
	o.work.Lock()
	o.streams[s] = o.run
	o.work.Unlock()
	go func() {
		run()
		o.work.Lock()
		delete(o.streams, s)
		if o.less != nil {
			close(o.less)
			o.less = nil
		}
		o.checkIdle()
		o.work.Unlock()
	}()
}

// Streams is how many pipes and files are being read: each takes descriptors
// and memory.
func (o *Output) Streams() int {
	o.work.Lock()
	defer o.work.Unlock()
	return len(o.streams)
}

// BeginRun makes the streams that begin from now on those of a run of the agent,
// for Settle.
func (o *Output) BeginRun() {
	o.work.Lock()
	o.run++
	o.work.Unlock()
}

// Settle waits until the streams that have begun since BeginRun have ended, or
// until the deadline. Those that have not are read on. The result tells whether
// there is none.
func (o *Output) Settle(deadline time.Time) bool {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for {
		less := o.awaitLess()
		if less == nil {
			return true
		}
		select {
		case <-less:
		case <-timer.C:
			return false
		}
	}
}

// awaitLess returns a channel that is closed when a stream ends; nil where none
// of this run is left.
func (o *Output) awaitLess() <-chan struct{} {
	o.work.Lock()
	defer o.work.Unlock()
	for _, run := range o.streams {
		if run != o.run {
			continue
		}
		if o.less == nil {
			o.less = make(chan struct{})
		}
		return o.less
	}
	return nil
}

// checkIdle tells Drain when nothing is left to do; work is held.
func (o *Output) checkIdle() {
	if o.idle != nil && len(o.streams) == 0 && !o.flushing {
		close(o.idle)
		o.idle = nil
	}
}

// Drain waits until every stream has ended and everything is delivered. At the
// deadline (a tenth of a second from now, if it is earlier) it stops reading (a
// process may hold a pipe open for ever) and delivers what it has; that takes at
// most three tenths of a second more. The result tells whether every stream
// ended by itself and nothing is left to be delivered; what was given up is
// counted as lost. The Output can be used, and drained, again.
func (o *Output) Drain(deadline time.Time) bool {
	if soon := time.Now().Add(lastWrites); deadline.Before(soon) {
		deadline = soon
	}
	sinks := append(o.events.Load().sinks(), o.queue)
	whole := o.wait(time.Until(deadline))
	if !whole {
		o.hurried.Store(true)
		defer o.hurried.Store(false)
		for _, s := range sinks {
			s.Hurry()
		}
		o.work.Lock()
		for s := range o.streams {
			s.stop()
		}
		o.work.Unlock()
		deadline = deadline.Add(lastWrites)
		o.wait(time.Until(deadline))
	}
	for _, s := range sinks {
		s.Await(deadline)
	}
	for _, s := range sinks {
		if !s.Stop(deadline) {
			whole = false
		}
	}
	return whole
}

// wait waits until nothing is left to be read or queued, at most for limit.
func (o *Output) wait(limit time.Duration) bool {
	o.work.Lock()
	if len(o.streams) == 0 && !o.flushing {
		o.work.Unlock()
		return true
	}
	if o.idle == nil {
		o.idle = make(chan struct{})
	}
	idle := o.idle
	o.work.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}

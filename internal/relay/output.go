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

	"agent-init/internal/journal"
	"agent-init/internal/secret"
)

const (
	// openQuiet is how long an open line may stand still while others wait.
	openQuiet = time.Second
	// ownLimit bounds agent-init's own lines in bytes while nobody reads them.
	ownLimit = 1 << 20
	// lastWrites is how long after a Drain's deadline writing may go on.
	lastWrites = 100 * time.Millisecond
)

// Output owns a descriptor to which lines are written. All its methods are safe
// for concurrent use.
type Output struct {
	dest    *descriptor
	masker  atomic.Pointer[secret.Masker]
	journal atomic.Pointer[journal.Journal]
	lost    atomic.Int64

	// line guards where on the descriptor's current line we are; it is held
	// while writing.
	line sync.Mutex
	// ended is signalled when open or its quiet changes.
	ended *sync.Cond
	// open is who wrote the beginning of a line and not yet its end.
	open  *stream
	since time.Time
	// fresh says that the next byte begins a line.
	fresh bool

	// work guards what Drain waits for.
	work     sync.Mutex
	streams  map[source]struct{}
	own      []byte
	flushing bool
	// idle is closed when there is nothing left to do; nil unless someone waits.
	idle chan struct{}

	// watch tells followed files of changes.
	watch watch
}

// NewOutput returns an Output that writes to fd and masks nothing yet. It does
// not close fd.
func NewOutput(fd int) *Output {
	o := &Output{dest: newDescriptor(fd), fresh: true, streams: map[source]struct{}{}}
	o.ended = sync.NewCond(&o.line)
	return o
}

// SetMasker sets what is masked from now on.
func (o *Output) SetMasker(m *secret.Masker) { o.masker.Store(m) }

// SetJournal makes lines that are events go to a journal too from now on, before
// they are written.
func (o *Output) SetJournal(j *journal.Journal) { o.journal.Store(j) }

// Lost is how many bytes were not written: the reader was gone, the disk full, a
// Drain out of time, or own lines piled up with nobody reading them. It counts
// text as it is written, that is masked.
func (o *Output) Lost() int64 { return o.lost.Load() }

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
		o.lost.Add(int64(len(p)))
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

// Event takes an event line of agent-init's own, with its newline: the journal
// gets it, and if shown is set it is written as Write does.
func (o *Output) Event(line []byte, shown bool) {
	o.journal.Load().Append(o.masker.Load().Mask(nil, line))
	if shown {
		o.Write(line)
	}
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
		o.emit(nil, lines)
	}
}

// Copy begins to copy r, line by line, until its end, in a goroutine of its own
// that closes r. r is the read end of a pipe in non-blocking mode, as os.Pipe
// makes it, so that waiting for it takes no thread.
func (o *Output) Copy(r *os.File) {
	s := &stream{out: o, in: r}
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
	o.streams[s] = struct{}{}
	o.work.Unlock()
	go func() {
		run()
		o.work.Lock()
		delete(o.streams, s)
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

// checkIdle tells Drain when nothing is left to do; work is held.
func (o *Output) checkIdle() {
	if o.idle != nil && len(o.streams) == 0 && !o.flushing {
		close(o.idle)
		o.idle = nil
	}
}

// Drain waits until every stream has ended and every line is written. At the
// deadline it stops reading (a process may hold a pipe open for ever) and
// writes what it has; that takes at most two tenths of a second more. The result
// tells whether every stream ended by itself and nothing is left to be written;
// what was given up, and what a stopped stream leaves unread, Lost counts. The
// Output can be used, and drained, again.
func (o *Output) Drain(deadline time.Time) bool {
	o.dest.setDeadline(deadline.Add(lastWrites))
	defer o.dest.setDeadline(time.Time{})
	if o.wait(time.Until(deadline)) {
		return true
	}
	o.work.Lock()
	cut := len(o.streams) > 0
	for s := range o.streams {
		s.stop()
	}
	o.work.Unlock()
	return o.wait(time.Until(deadline.Add(2*lastWrites))) && !cut
}

// wait waits until nothing is left to do, at most for limit.
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

// emit writes text of s (nil for agent-init itself): lines, of which the first
// may continue the open line of s and the last be left open.
func (o *Output) emit(s *stream, text []byte) {
	o.line.Lock()
	defer o.line.Unlock()
	o.acquire(s)
	if o.open == nil && !o.fresh {
		o.put([]byte("\n"))
	}
	o.lost.Add(int64(len(text) - o.put(text)))
	if text[len(text)-1] == '\n' {
		o.open = nil
		o.ended.Broadcast()
		return
	}
	o.open, o.since = s, time.Now()
}

// acquire waits until s may write: no line is open, or its own is, or one that
// has been quiet for too long.
func (o *Output) acquire(s *stream) {
	for o.open != nil && o.open != s {
		left := openQuiet - time.Since(o.since)
		if left <= 0 {
			o.open = nil
			return
		}
		timer := time.AfterFunc(left, func() {
			o.line.Lock()
			defer o.line.Unlock()
			o.ended.Broadcast()
		})
		o.ended.Wait()
		timer.Stop()
	}
}

// release ends the open line of s, which has no newline and gets none.
func (o *Output) release(s *stream) {
	o.line.Lock()
	defer o.line.Unlock()
	if o.open == s {
		o.open = nil
		o.ended.Broadcast()
	}
}

// put writes text and returns how much of it was written.
func (o *Output) put(text []byte) int {
	n, _ := o.dest.write(text) // Whatever the error, what is missing is lost.
	if n > 0 {
		o.fresh = text[n-1] == '\n'
	}
	return n
}

// Package sink delivers lines to where they are wanted: each sink has a queue,
// in memory up to a bound and then on disk, from which a goroutine of its own
// writes, so that one that is slow or fails holds up no other.
package sink

import (
	"bytes"
	"cmp"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of a queue in bytes.
const (
	MaxMemory = 4 << 20
	MaxDisk   = 256 << 20
	// maxOwn is what lines that never wait may have beyond MaxMemory.
	maxOwn = 1 << 20
)

const (
	// firstRetry and lastRetry bound the time between attempts at a target that
	// fails; the time doubles.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// fullRetry is the time between attempts at a disk that is full.
	fullRetry = 50 * time.Millisecond
	// lastWrites is how long after a Drain's deadline a write may go on.
	lastWrites = 100 * time.Millisecond
)

// Target is where a sink's text ends. One goroutine at a time writes.
type Target interface {
	// Write writes text and returns how much of it has been delivered for good;
	// less than all of it only with an error.
	Write(text []byte) (n int, err error)
	// SetDeadline bounds the writes that may wait, also the one under way; the
	// zero time lifts it.
	SetDeadline(time.Time)
}

// Options say how a sink deals with trouble.
type Options struct {
	// Dir is the directory for what does not fit in memory; "" is for none.
	Dir string
	// Memory and Disk are the bounds in bytes of what is queued there; 0 stands for
	// MaxMemory and MaxDisk.
	Memory, Disk int64
	// Drop has text that does not fit dropped instead of making writers wait.
	Drop bool
	// GiveUp has what cannot be written dropped at once instead of tried again.
	GiveUp bool
	// Count counts the events in a text; nil counts lines.
	Count func(text []byte) int64
	// Failed is told of the first error, and again of the first after Recovered
	// was called; Torn after text was dropped that had been taken. They are called
	// from the sink's goroutine and may be nil.
	Failed    func(err error)
	Recovered func()
	Torn      func()
}

// Sink delivers text to a target in the order in which it comes. Its methods
// are safe for concurrent use.
type Sink struct {
	target Target

	mu sync.Mutex
	// changed is signalled when there is room, or nothing left to do.
	changed *sync.Cond
	opts    Options
	queue   queue
	// running says that the goroutine is there.
	running bool
	// failing says that the target does not take text, so that nobody waits for
	// it.
	failing bool
	// reported says that trouble has been told of.
	reported bool
	// stopping says that what is left is to be given up; abandoned that the write
	// under way has been given up too.
	stopping, abandoned bool
	// hurry says that nobody waits for room any more.
	hurry bool
	// hopeless says that the target had not taken all when it was given up, and
	// has taken nothing since.
	hopeless bool
	// kick is closed to end a pause before the next attempt; nil in none.
	kick chan struct{}

	lostBytes, lostEvents int64
}

// New returns a sink for a target.
func New(target Target, o Options) *Sink {
	s := &Sink{target: target, opts: o}
	s.opts.Memory, s.opts.Disk = cmp.Or(o.Memory, MaxMemory), cmp.Or(o.Disk, MaxDisk)
	if s.opts.Count == nil {
		s.opts.Count = CountLines
	}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// CountLines counts newlines.
func CountLines(text []byte) int64 { return int64(bytes.Count(text, newline)) }

// SetSpool sets where text goes that does not fit in memory, and whether what
// does not fit anywhere is dropped.
func (s *Sink) SetSpool(dir string, drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Dir, s.opts.Drop = dir, drop
}

// Lost is how many bytes, and how many events among them, were not delivered.
func (s *Sink) Lost() (size, events int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lostBytes, s.lostEvents
}

// Lose counts text that was given up elsewhere, after n bytes of it had been
// delivered.
func (s *Sink) Lose(text []byte, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := bytes.LastIndexByte(text[:n], '\n') + 1
	s.lose(int64(len(text)-n), s.opts.Count(text[line:]))
}

// LoseEvent counts an event that was given up elsewhere.
func (s *Sink) LoseEvent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose(0, 1)
}

func (s *Sink) lose(size, events int64) {
	s.lostBytes += size
	s.lostEvents += events
}

// Idle tells whether everything has been delivered.
func (s *Sink) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.running
}

// Room says what a text may have when memory is full.
type Room int

const (
	// Memory is none.
	Memory Room = iota
	// Disk is a place on disk, if there is one.
	Disk
	// Own is a little more memory, for lines of agent-init's own.
	Own
)

// Put takes lines that are so many events. Where there is no room it waits, or
// drops them, as the options and the state of the target want it.
func (s *Sink) Put(text []byte, events int64) {
	if len(text) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.put(text, events, Disk) {
		if s.gaveUp() {
			s.lose(int64(len(text)), events)
			return
		}
		s.wait()
	}
}

// PutOwn takes lines that never wait.
func (s *Sink) PutOwn(text []byte, events int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.put(text, events, Own) {
		s.lose(int64(len(text)), events)
	}
}

// TryPut takes text if there is room for it.
func (s *Sink) TryPut(text []byte, events int64, room Room) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(text, events, room)
}

// Append takes text that continues what was taken or written before.
func (s *Sink) Append(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.addMemory(text)
	s.start()
}

// HasMemory tells whether there is room in memory.
func (s *Sink) HasMemory() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.memory < s.opts.Memory
}

// AwaitRoom waits until TryPut may have another chance, and tells whether
// instead text is to be dropped; the option to do so is for events.
func (s *Sink) AwaitRoom(events bool) (drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hurried() || events && s.gaveUp() {
		return true
	}
	s.wait()
	return false
}

// gaveUp tells whether events for which there is no room are dropped.
func (s *Sink) gaveUp() bool { return s.opts.Drop || s.failing || s.hurried() }

func (s *Sink) hurried() bool { return s.hurry || s.stopping || s.abandoned }

// wait waits until something changes, but also looks whether a disk has room
// again.
func (s *Sink) wait() {
	timer := time.AfterFunc(fullRetry, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	s.changed.Wait()
	timer.Stop()
}

// put takes text if there is room. The bounds may be exceeded by one text.
func (s *Sink) put(text []byte, events int64, room Room) bool {
	if s.abandoned {
		return false
	}
	limit := s.opts.Memory
	if room == Own {
		limit += maxOwn
	}
	// What is on disk has to grow on, or memory and disk would take turns.
	onDisk := room == Disk && s.queue.spool != nil
	switch {
	case s.queue.memory < limit && !onDisk:
		s.queue.addMemory(text)
	case room == Disk && s.opts.Dir != "" && s.queue.disk < s.opts.Disk && s.queue.addDisk(s.opts.Dir, text, events) == nil:
	case s.queue.memory < limit:
		s.queue.addMemory(text)
	default:
		return false
	}
	s.start()
	return true
}

// PutLine takes a long line that is an event and has its end. Where there is no
// room it waits, or drops it.
func (s *Sink) PutLine(l *Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.abandoned || s.queue.disk >= s.opts.Disk {
		if s.gaveUp() {
			s.lose(l.file.size, 1)
			return
		}
		s.wait()
	}
	s.queue.addLine(l.file, l.file.size, 1)
	s.start()
}

// TryPutPart takes a long line that is so many events, without its end, if there
// is room for it, and a newline before or after it.
func (s *Sink) TryPutPart(l *Line, before, after bool, events int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abandoned || s.queue.disk >= s.opts.Disk {
		return false
	}
	if before {
		s.queue.addMemory(newline)
	}
	if l.size > 0 {
		s.queue.addLine(l.file, l.size, events)
	}
	if after {
		s.queue.addMemory(newline)
	}
	s.start()
	return true
}

// LosePart counts a long line that TryPutPart had no room for.
func (s *Sink) LosePart(l *Line, events int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose(l.size, events)
}

// start begins to deliver; mu is held.
func (s *Sink) start() {
	if !s.running {
		s.running = true
		go s.run()
	}
}

// run delivers until there is nothing left.
func (s *Sink) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := firstRetry
	for {
		if s.stopping {
			s.clear()
		}
		text, err := s.queue.next()
		if text == nil && err == nil {
			break
		}
		if err != nil {
			// What a spool file had is gone.
			s.lose(s.queue.drop(s.opts.Count))
			s.trouble(err)
			continue
		}
		s.mu.Unlock()
		n, err := s.target.Write(text)
		s.mu.Lock()
		if s.abandoned {
			// Everything has been counted as lost.
			s.abandoned, s.queue = false, queue{}
			break
		}
		s.queue.done(n, s.opts.Count)
		s.changed.Broadcast()
		switch {
		case err == nil:
			s.recovered()
			pause = firstRetry
		case s.opts.GiveUp || s.stopping:
			s.giveUp(text, n)
		case IsFull(err):
			s.failing = false
			s.trouble(err)
			s.pause(fullRetry)
		default:
			s.failing = true
			s.changed.Broadcast()
			s.trouble(err)
			s.pause(pause)
			pause = min(2*pause, lastRetry)
		}
	}
	s.running = false
	s.changed.Broadcast()
}

// IsFull tells whether an error means that others have to make room.
func IsFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// giveUp drops a batch of which n bytes have been delivered.
func (s *Sink) giveUp(batch []byte, n int) {
	line := bytes.LastIndexByte(batch[:n], '\n') + 1
	if len(batch) > n {
		s.lose(s.queue.giveUp(len(batch)-n, batch[line:], s.opts.Count))
	}
	if s.opts.Torn != nil {
		s.opts.Torn()
	}
}

// clear drops everything.
func (s *Sink) clear() {
	if len(s.queue.items) == 0 {
		return
	}
	for len(s.queue.items) > 0 {
		s.lose(s.queue.drop(s.opts.Count))
	}
	if s.opts.Torn != nil {
		s.opts.Torn()
	}
	s.changed.Broadcast()
}

// trouble tells of an error, once.
func (s *Sink) trouble(err error) {
	if s.reported {
		return
	}
	s.reported = true
	if s.opts.Failed != nil {
		s.mu.Unlock()
		s.opts.Failed(err)
		s.mu.Lock()
	}
}

// recovered tells that the target takes text again.
func (s *Sink) recovered() {
	s.failing, s.hopeless = false, s.hopeless && s.stopping
	if !s.reported {
		return
	}
	s.reported = false
	if s.opts.Recovered != nil {
		s.mu.Unlock()
		s.opts.Recovered()
		s.mu.Lock()
	}
}

// pause waits before the next attempt, unless it is the last one.
func (s *Sink) pause(d time.Duration) {
	if s.stopping {
		return
	}
	kick := make(chan struct{})
	s.kick = kick
	s.mu.Unlock()
	timer := time.NewTimer(d)
	select {
	case <-kick:
	case <-timer.C:
	}
	timer.Stop()
	s.mu.Lock()
	s.kick = nil
}

// retry ends a pause.
func (s *Sink) retry() {
	if s.kick != nil {
		close(s.kick)
		s.kick = nil
	}
}

// Hurry has what finds no room dropped until the next Stop.
func (s *Sink) Hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurry = true
	s.changed.Broadcast()
}

// Await waits until everything has been delivered, at most until the deadline,
// and tells whether it has. It does not wait long again for a target that a Stop
// had to give up.
func (s *Sink) Await(deadline time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if soon := time.Now().Add(lastWrites); s.hopeless && soon.Before(deadline) {
		deadline = soon
	}
	s.target.SetDeadline(deadline.Add(lastWrites))
	s.retry()
	return s.await(deadline)
}

// await is Await with mu held.
func (s *Sink) await(deadline time.Time) bool {
	timer := time.AfterFunc(time.Until(deadline), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer timer.Stop()
	for s.running && time.Now().Before(deadline) {
		s.changed.Wait()
	}
	return !s.running
}

// Stop gives up what has not been delivered by the deadline of Await, after one
// last attempt, and tells whether there was nothing. It returns soon; the sink
// can be used again.
func (s *Sink) Stop(deadline time.Time) bool {
	defer s.target.SetDeadline(time.Time{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurry = false
	if !s.running {
		return true
	}
	s.stopping, s.hopeless = true, true
	s.retry()
	s.changed.Broadcast()
	if !s.await(deadline.Add(2 * lastWrites)) {
		// A disk or a network file system hangs.
		s.abandoned = true
		s.clear()
	}
	s.stopping = false
	return false
}

package supervise

import (
	"time"

	"github.com/rs/zerolog"
)

// notes are log lines on their way to a log that may block.
type notes struct {
	lines chan func()
	lost  *int
}

// notesHeld is how many lines wait for a log that is stalled; notesFlush is how
// long Wait lets it catch up.
const (
	notesHeld  = 64
	notesFlush = 100 * time.Millisecond
)

func newNotes() notes {
	n := notes{lines: make(chan func(), notesHeld), lost: new(int)}
	go func() {
		for write := range n.lines {
			write()
		}
	}()
	return n
}

// add is called by the loop only; fields runs elsewhere, so that it may use
// nothing that belongs to the loop.
func (n notes) add(log zerolog.Logger, level zerolog.Level, message string, fields func(*zerolog.Event)) {
	lost := *n.lost
	select {
	case n.lines <- func() {
		if lost > 0 {
			log.Warn().Int("lines", lost).Msg("log lines were dropped while the log was stalled")
		}
		e := log.WithLevel(level)
		fields(e)
		e.Msg(message)
	}:
		*n.lost = 0
	default:
		*n.lost++
	}
}

func (n notes) flush() {
	flushed := make(chan struct{})
	select {
	case n.lines <- func() { close(flushed) }:
	default:
		return
	}
	select {
	case <-flushed:
	case <-time.After(notesFlush):
	}
}

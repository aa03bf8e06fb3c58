package relay

import (
	"bytes"

	"agent-init/internal/journal"
)

// toJournal hands one stream's events to the journal: whole lines at once, a
// line that is passed on before its end by way of a spool.
type toJournal struct {
	// spool has the beginning of the current line if that is out already and the
	// line may be an event; else nil.
	spool *journal.Spool
}

// take takes lines, of which the first may continue a line that has begun and
// the last be incomplete.
func (t *toJournal) take(j *journal.Journal, text []byte, begun bool) {
	if begun {
		nl := bytes.IndexByte(text, '\n')
		if nl < 0 {
			t.add(text)
			return
		}
		t.add(text[:nl])
		t.end()
		text = text[nl+1:]
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	j.AppendEvents(text[:whole])
	if rest := text[whole:]; journal.MayBeEvent(rest) {
		t.spool = j.Spool()
		t.add(rest)
	}
}

func (t *toJournal) add(text []byte) {
	if t.spool != nil {
		t.spool.Write(text)
	}
}

// end ends the line that has begun.
func (t *toJournal) end() {
	if t.spool != nil {
		t.spool.Close()
		t.spool = nil
	}
}

package sink

import (
	"errors"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Line is one line that is too long to be held in memory. It is kept in a file
// without a name, which all sinks share that get it.
type Line struct {
	file *spoolFile
	// size is without the newline.
	size int64
}

// NewLine begins a line, in a file of a directory.
func NewLine(dir string) (*Line, error) {
	f, err := newSpoolFile(dir)
	if err != nil {
		return nil, err
	}
	return &Line{file: f}, nil
}

// Append takes a piece of the line, without its newline, or none of it on error.
func (l *Line) Append(piece []byte) error {
	err := l.file.append(piece)
	l.size = l.file.size
	return err
}

// End adds the newline that sinks need.
func (l *Line) End() error { return l.file.append(newline) }

// Read calls take with the line's text, without the newline, which is not to be
// kept.
func (l *Line) Read(take func(text []byte)) (err error) {
	if l.size == 0 {
		take(nil)
		return nil
	}
	text, err := l.file.mmap(l.size)
	if err != nil {
		return err
	}
	defer unix.Munmap(text)
	// A disk that fails shows as a fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = errUnreadable
		}
	}()
	take(text)
	return nil
}

var errUnreadable = errors.New("a spool file cannot be read")

// Close gives the line up; sinks that have it keep it.
func (l *Line) Close() { l.file.release() }

var newline = []byte("\n")

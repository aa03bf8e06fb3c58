// Package runlog writes the log of one run of the agent: what it says on stdout
// and stderr, masked, as it comes.
package runlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/secret"
)

const (
	// maxLine is the length in bytes from which on a line is written before it is
	// complete.
	maxLine = 64 << 10
	// maxNames bounds the logs of one second.
	maxNames = 1000
)

// Check tells whether logs can be written in a directory, or whether it could be
// made. It makes nothing.
func Check(dir string) error {
	for path := dir; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path):
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
		}
		if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
			return &fs.PathError{Op: "access", Path: path, Err: err}
		}
		return nil
	}
}

// Log is the log of one run. A fault of its file does not concern the run: what
// cannot be written is counted.
type Log struct {
	// Path is the log's file.
	Path string

	mu     sync.Mutex
	file   *os.File
	masker *secret.Masker
	failed func(error)
	// lost is how many bytes are missing in all, gap how many of them since the
	// last that were written.
	lost, gap int64
	// midline says that the last byte written ends no line.
	midline bool
}

// Create makes the log of a run that begins now, run-YYYYMMDD-HHMMSS.log in UTC,
// in a directory that is made if it is not there; further runs in the same second
// get -2, -3 and so on. failed is called once, when a write fails.
func Create(dir string, now time.Time, header []byte, masker *secret.Masker, failed func(error)) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	stem := filepath.Join(dir, "run-"+now.UTC().Format("20060102-150405"))
	for n := 1; ; n++ {
		path := stem + ".log"
		if n > 1 {
			path = stem + "-" + strconv.Itoa(n) + ".log"
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
		if errors.Is(err, fs.ErrExist) && n < maxNames {
			continue
		}
		if err != nil {
			return nil, err
		}
		l := &Log{Path: path, file: f, masker: masker, failed: failed}
		l.write(masker.Mask(nil, header))
		return l, nil
	}
}

// write appends p, or counts it as lost.
func (l *Log) write(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || len(p) == 0 {
		return
	}
	if l.gap > 0 {
		note := fmt.Sprintf("[agent-init: %d bytes are missing here]\n", l.gap)
		if l.midline {
			note = "\n" + note
		}
		if n, err := l.file.WriteString(note); err != nil {
			l.midline = l.midline || n > 0
			l.lost, l.gap = l.lost+int64(len(p)), l.gap+int64(len(p))
			return
		}
		l.gap, l.midline = 0, false
	}
	n, err := l.file.Write(p)
	if n > 0 {
		l.midline = p[n-1] != '\n'
	}
	if err == nil {
		return
	}
	l.lost, l.gap = l.lost+int64(len(p)-n), l.gap+int64(len(p)-n)
	if l.failed != nil {
		l.failed(err)
		l.failed = nil
	}
}

// Close ends the log and returns how many bytes are missing. What streams bring
// later is not logged.
func (l *Log) Close() (lost int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.lost
	}
	if l.midline {
		_, _ = l.file.WriteString("\n")
	}
	if err := l.file.Close(); err != nil && l.failed != nil {
		l.failed(err)
	}
	l.file = nil
	return l.lost
}

// Stream is one of the streams that a log takes. Its lines are kept whole.
type Stream struct {
	log  *Log
	mu   sync.Mutex
	mask secret.Stream
	// held could begin a secret; line is masked and not complete.
	held, line []byte
}

// Stream begins another stream.
func (l *Log) Stream() *Stream { return &Stream{log: l} }

// Add takes what the stream brings next. It keeps nothing of p.
func (s *Stream) Add(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(p, false)
}

// Finish writes what is held back. More may follow.
func (s *Stream) Finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(nil, true)
}

func (s *Stream) add(p []byte, last bool) {
	raw := append(s.held, p...)
	var held int
	s.line, held = s.mask.Mask(s.line, s.log.masker, raw, last)
	s.held = append([]byte(nil), raw[len(raw)-held:]...)
	end := bytes.LastIndexByte(s.line, '\n') + 1
	if last || len(s.line)-end >= maxLine {
		end = len(s.line)
	}
	s.log.write(s.line[:end])
	s.line = append(s.line[:0], s.line[end:]...)
}

package journal

import (
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"agent-init/internal/event"
)

// Spool takes one line that is too long to be held in memory, piece by piece,
// in a file without a name.
type Spool struct {
	journal *Journal
	fd      int
	size    int64
	err     error
}

// spools makes the names differ that spool files have for a moment.
var spools atomic.Int64

// Spool begins a line. Where no file can be made, or the disk is full, the line
// counts as one event lost, whether it is one or not: nobody can tell any more.
func (j *Journal) Spool() *Spool {
	s := &Spool{journal: j, fd: -1}
	if j == nil {
		return s
	}
	path := j.path("spool-" + strconv.Itoa(unix.Getpid()) + "-" + strconv.FormatInt(spools.Add(1), 10))
	s.fd, s.err = again(func() (int, error) {
		return unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	})
	if s.err == nil {
		s.err = unix.Unlink(path)
	}
	return s
}

// Write takes a piece of the line. It never fails: Close deals with errors.
func (s *Spool) Write(p []byte) (n int, err error) {
	if s.journal != nil && s.err == nil {
		s.err = writeAll(s.fd, p)
		s.size += int64(len(p))
	}
	return len(p), nil
}

// Close ends the line, which has no newline yet, and appends it to the journal
// if it is an event.
func (s *Spool) Close() {
	if s.journal == nil {
		return
	}
	if s.fd >= 0 {
		defer unix.Close(s.fd)
	}
	if s.err == nil {
		s.err = s.append()
	}
	if s.err != nil {
		s.journal.mu.Lock()
		defer s.journal.mu.Unlock()
		s.journal.lost.Add(1)
		s.journal.fail(s.err)
	}
}

// append maps the file instead of reading it, so that the kernel may take the
// memory back. Nobody else can cut it short: it has no name.
func (s *Spool) append() error {
	if s.size == 0 {
		return nil
	}
	line, err := unix.Mmap(s.fd, 0, int(s.size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(line)
	if event.IsEvent(line) {
		s.journal.append(s.size+1, 1, func(fd int) error {
			if err := writeAll(fd, line); err != nil {
				return err
			}
			return writeAll(fd, newline)
		})
	}
	return nil
}

// Package journal keeps events in a file of the runtime directory, whole lines
// only, for every process of a workspace that relays some. When the file has
// grown to Limit it becomes the one old file, and what that one held is dropped
// and counted.
package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/sink"
)

// Names of the journal's files in the runtime directory.
const (
	Name    = "events.jsonl"
	OldName = Name + ".1"
	// CountName holds how many events were dropped before the old file's first.
	CountName = Name + ".dropped"
)

// Names are all files that a journal leaves.
var Names = []string{Name, OldName, CountName}

// Limit is the size in bytes that the file does not grow beyond, unless a single
// event is longer.
const Limit = 16 << 20

// Notify is told what becomes of a journal. Either function may be nil; they are
// called while events are being written.
type Notify struct {
	// Failed is called with the first error of a rotation; the journal then grows.
	Failed func(error)
	// Dropped is called with the number of events that a rotation has dropped,
	// if it is not 0.
	Dropped func(events int)
}

// Journal writes to the journal of one runtime directory. Its methods are safe
// for concurrent use, also by several processes. It is the target of a sink.
type Journal struct {
	dir    string
	limit  int64
	notify Notify

	// mu guards what follows, and writing within this process; a lock on the
	// file does among processes.
	mu     sync.Mutex
	fd     int
	failed bool
	// current and old are what is known of the two files, so that a rotation need
	// not read what it drops.
	current, old counted
}

// counted says that a file had so many lines when it had a size; nobody else has
// written to it if it still has that.
type counted struct {
	inode uint64
	size  int64
	lines int
}

// Open returns the journal in a directory. Its file is made at the first Write,
// which may then fail.
func Open(dir string, notify Notify) *Journal {
	return &Journal{dir: dir, limit: Limit, notify: notify, fd: -1}
}

// Make makes the file.
func (j *Journal) Make() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open()
}

// SetDeadline does nothing: files do not wait.
func (j *Journal) SetDeadline(time.Time) {}

// Write appends event lines, each with its newline, and returns how much of
// them, in whole lines, is in the journal.
func (j *Journal) Write(lines []byte) (n int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.lock(); err != nil {
		return 0, err
	}
	// A rotation opens another file.
	defer func() { unix.Flock(j.fd, unix.LOCK_UN) }()
	st, err := j.room(int64(len(lines)))
	if err != nil {
		return 0, err
	}
	n, err = sink.AppendWhole(j.fd, st.Size, lines)
	j.count(st, lines[:n])
	return n, err
}

var newline = []byte("\n")

// count notes what was written to a file that was as st says.
func (j *Journal) count(st unix.Stat_t, lines []byte) {
	if j.current.inode != st.Ino || j.current.size != st.Size {
		j.current = counted{inode: st.Ino, lines: -1}
	}
	if st.Size == 0 {
		j.current.lines = 0
	}
	j.current.size = st.Size + int64(len(lines))
	if j.current.lines >= 0 {
		j.current.lines += bytes.Count(lines, newline)
	}
}

// linesOf is how many lines a file has; it need not exist.
func (j *Journal) linesOf(path string) (int, error) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil && j.old.inode == st.Ino && j.old.size == st.Size && j.old.lines >= 0 {
		return j.old.lines, nil
	}
	lines, err := countLines(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return lines, err
}

// fail reports the first failure of a rotation.
func (j *Journal) fail(err error) {
	if !j.failed && j.notify.Failed != nil {
		j.notify.Failed(err)
	}
	j.failed = true
}

// open opens the file that has the journal's name now. Somebody may have put
// something else there: it must neither be followed nor waited for.
func (j *Journal) open() error {
	if j.fd >= 0 {
		unix.Close(j.fd)
		j.fd = -1
	}
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_APPEND | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := again(func() (int, error) { return unix.Open(j.path(Name), flags, 0o600) })
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errors.New(Name + " is not a regular file")
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	j.fd = fd
	return nil
}

func (j *Journal) path(name string) string { return filepath.Join(j.dir, name) }

// lock locks the file that has the journal's name: another process may have
// rotated it.
func (j *Journal) lock() error {
	for {
		if j.fd >= 0 {
			if _, err := again(func() (int, error) { return 0, unix.Flock(j.fd, unix.LOCK_EX) }); err != nil {
				return err
			}
			var ours, named unix.Stat_t
			if unix.Fstat(j.fd, &ours) == nil && unix.Lstat(j.path(Name), &named) == nil && ours.Ino == named.Ino && ours.Dev == named.Dev {
				return nil
			}
		}
		// Closing drops the lock.
		if err := j.open(); err != nil {
			return err
		}
	}
}

// room makes room for size bytes, by rotation where that is needed, and returns
// how the file is then. The file is locked before and after.
func (j *Journal) room(size int64) (st unix.Stat_t, err error) {
	if err := unix.Fstat(j.fd, &st); err != nil {
		return st, err
	}
	if st.Size == 0 || st.Size+size <= j.limit {
		return st, nil
	}
	if err := j.rotate(st); err != nil {
		// The journal grows, which is better than to lose events.
		j.fail(fmt.Errorf("it cannot be rotated: %w", err))
		return st, nil
	}
	if err := j.lock(); err != nil {
		return st, err
	}
	return st, unix.Fstat(j.fd, &st)
}

// rotate makes the locked file, which is as st says, the old one. The
// count is written first and names the file for which it holds, so that a reader
// who finds both in between can tell.
func (j *Journal) rotate(st unix.Stat_t) error {
	events, err := j.linesOf(j.path(OldName))
	if err != nil {
		return err
	}
	before, _, _ := readCount(j.dir)
	text := strconv.FormatInt(before+int64(events), 10) + " " + strconv.FormatUint(st.Ino, 10) + "\n"
	fresh := j.path(CountName + ".new")
	if err := os.WriteFile(fresh, []byte(text), 0o600); err == nil {
		os.Rename(fresh, j.path(CountName))
	} else {
		// The disk may be full; readers then cannot tell how many are missing.
		os.Remove(fresh)
	}
	if err := os.Rename(j.path(Name), j.path(OldName)); err != nil {
		return err
	}
	j.old = counted{lines: -1}
	if j.current.inode == st.Ino && j.current.size == st.Size {
		j.old = j.current
	}
	if events > 0 && j.notify.Dropped != nil {
		j.notify.Dropped(events)
	}
	return nil
}

// readCount returns how many events were dropped before the old file's first,
// and the inode number of the old file for which that holds.
func readCount(dir string) (events int64, inode uint64, err error) {
	data, err := os.ReadFile(filepath.Join(dir, CountName))
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscanf(string(data), "%d %d\n", &events, &inode)
	return events, inode, err
}

func countLines(path string) (lines int, err error) {
	fd, err := again(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 256<<10)
	for {
		n, err := again(func() (int, error) { return unix.Read(fd, buf) })
		if n <= 0 {
			return lines, err
		}
		lines += bytes.Count(buf[:n], newline)
	}
}

// again repeats a call that a signal interrupted.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

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
	"sync/atomic"

	"golang.org/x/sys/unix"

	"agent-init/internal/event"
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
// called while an event is being appended and must not append one.
type Notify struct {
	// Failed is called with the first error; later ones only count as Lost.
	Failed func(error)
	// Dropped is called with the number of events that a rotation has dropped,
	// if it is not 0.
	Dropped func(events int)
}

// Journal appends to the journal of one runtime directory. Its methods are safe
// for concurrent use, also by several processes; those of a nil Journal do
// nothing.
type Journal struct {
	dir    string
	limit  int64
	notify Notify
	lost   atomic.Int64

	// mu guards what follows, and writing within this process; a lock on the
	// file does among processes.
	mu     sync.Mutex
	fd     int
	failed bool
}

// Open returns the journal in a directory and makes its file. One that cannot be
// made counts each event as Lost, and is tried again at each.
func Open(dir string, notify Notify) *Journal {
	j := &Journal{dir: dir, limit: Limit, notify: notify, fd: -1}
	if err := j.open(); err != nil {
		j.fail(err)
	}
	return j
}

// Lost is how many events could not be written.
func (j *Journal) Lost() int64 {
	if j == nil {
		return 0
	}
	return j.lost.Load()
}

// Append appends event lines, each with its newline. They are all written, or
// none is and they count as Lost.
func (j *Journal) Append(lines []byte) {
	if j == nil || len(lines) == 0 {
		return
	}
	j.append(int64(len(lines)), bytes.Count(lines, newline), func(fd int) error { return writeAll(fd, lines) })
}

var newline = []byte("\n")

// append has write put size bytes, which are so many events, at the file's end.
func (j *Journal) append(size int64, events int, write func(fd int) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.lock()
	if err == nil {
		var old int64
		if old, err = j.room(size); err == nil {
			if err = write(j.fd); err != nil {
				// Others find whole lines only. Where even this fails, they find
				// the beginning of one.
				unix.Ftruncate(j.fd, old)
			}
		}
		unix.Flock(j.fd, unix.LOCK_UN)
	}
	if err != nil {
		j.lost.Add(int64(events))
		j.fail(err)
	}
}

// fail reports the first failure.
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
// the file's size. The file is locked before and after.
func (j *Journal) room(size int64) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(j.fd, &st); err != nil {
		return 0, err
	}
	if st.Size == 0 || st.Size+size <= j.limit {
		return st.Size, nil
	}
	if err := j.rotate(st.Ino); err != nil {
		// The journal grows, which is better than to lose events.
		j.fail(fmt.Errorf("it cannot be rotated: %w", err))
		return st.Size, nil
	}
	if err := j.lock(); err != nil {
		return 0, err
	}
	err := unix.Fstat(j.fd, &st)
	return st.Size, err
}

// rotate makes the locked file, with the given inode number, the old one. The
// count is written first and names the file for which it holds, so that a reader
// who finds both in between can tell.
func (j *Journal) rotate(inode uint64) error {
	events, err := countLines(j.path(OldName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, _, _ := readCount(j.dir)
	text := strconv.FormatInt(before+int64(events), 10) + " " + strconv.FormatUint(inode, 10) + "\n"
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

func writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := again(func() (int, error) { return unix.Write(fd, p) })
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// again repeats a call that a signal interrupted.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

// AppendEvents appends those of several lines that are events. The last newline
// may be missing.
func (j *Journal) AppendEvents(lines []byte) {
	if j == nil {
		return
	}
	// Neighbours go together: most often all lines are events, or none.
	var scattered []byte
	run := 0
	for start := 0; start < len(lines); {
		end := len(lines)
		if i := bytes.IndexByte(lines[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		if line := lines[start:end]; !MayBeEvent(line) || !named(line) || !event.IsEvent(line) {
			scattered = append(scattered, lines[run:start]...)
			run = end
		}
		start = end
	}
	last := lines[run:]
	if len(scattered) == 0 && bytes.HasSuffix(last, newline) {
		j.Append(last)
		return
	}
	scattered = append(scattered, last...)
	if len(scattered) > 0 && scattered[len(scattered)-1] != '\n' {
		scattered = append(scattered, '\n')
	}
	j.Append(scattered)
}

// named tells whether a line has an event's member in it, perhaps written with
// escapes: it spares other JSON lines the whole check.
func named(line []byte) bool {
	return bytes.Contains(line, eventType) || bytes.IndexByte(line, '\\') >= 0
}

var eventType = []byte("event_type")

// MayBeEvent tells whether the beginning of a line could be an event's.
func MayBeEvent(text []byte) bool {
	for _, c := range text {
		if c != ' ' && c != '\t' && c != '\r' {
			return c == '{'
		}
	}
	return false
}

package journal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Reader reads a journal from its oldest event on, across rotations.
type Reader struct {
	dir string
	// parts are the files to be read, oldest first. All but the last have been
	// rotated and change no more.
	parts []part
	// offset is how much of the first has been read; buf[start:end] is the end
	// of that, and buf[start:searched] holds no newline.
	offset               int64
	buf                  []byte
	start, searched, end int
	// next is the number of the next event, counted from the journal's first.
	next   int64
	missed int64
}

// part is a file and the number of its first event; -1 where nobody knows, or
// where it follows the one before it.
type part struct {
	file  *os.File
	first int64
}

// readSize is how many bytes are read at once.
const readSize = 128 << 10

// NewReader opens the journal in a directory; fs.ErrNotExist says that there is
// none.
func NewReader(dir string) (*Reader, error) {
	parts, err := openParts(dir)
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, parts: parts}
	r.enter()
	return r, nil
}

// Close closes the files.
func (r *Reader) Close() {
	for _, p := range r.parts {
		p.file.Close()
	}
}

// Missed is how many events rotations have dropped before they could be read.
func (r *Reader) Missed() int64 { return r.missed }

// Next returns the next event line with its newline; it is valid until the next
// call. io.EOF says that there is none yet.
func (r *Reader) Next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(r.buf[r.searched:r.end], '\n'); i >= 0 {
			line := r.buf[r.start : r.searched+i+1]
			r.start += len(line)
			r.searched = r.start
			r.next++
			return line, nil
		}
		r.makeRoom()
		n, err := r.parts[0].file.ReadAt(r.buf[r.end:], r.offset)
		r.end += n
		r.offset += int64(n)
		switch {
		case n > 0:
		case err != io.EOF:
			return nil, err
		default:
			if err := r.atEnd(); err != nil {
				return nil, err
			}
		}
	}
}

// makeRoom moves the beginning of a line to the front and makes room behind it.
func (r *Reader) makeRoom() {
	r.end = copy(r.buf, r.buf[r.start:r.end])
	r.start, r.searched = 0, r.end
	if len(r.buf)-r.end < readSize {
		grown := make([]byte, max(2*readSize, 2*len(r.buf)))
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
}

// atEnd goes on where the first file has no more to read; io.EOF says that
// nothing follows yet.
func (r *Reader) atEnd() error {
	// Half a line may be taken back by its writer when the disk is full: it is
	// read again.
	r.offset -= int64(r.end)
	r.start, r.searched, r.end = 0, 0, 0
	if len(r.parts) > 1 {
		r.parts[0].file.Close()
		r.parts = r.parts[1:]
		r.offset = 0
		r.enter()
		return nil
	}
	ours := r.parts[0].file
	if isAt(ours, filepath.Join(r.dir, Name)) {
		return io.EOF
	}
	// What was written between the end that we saw and the rotation is still to
	// be read: the file stays first.
	parts, err := openParts(r.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = io.EOF
		}
		return err
	}
	if same(parts[0].file, ours) {
		parts[0].file.Close()
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return io.EOF
	}
	r.parts = append(r.parts, parts...)
	return nil
}

// enter counts what is missing before the first file.
func (r *Reader) enter() {
	if first := r.parts[0].first; first >= 0 {
		r.missed += max(0, first-r.next)
		r.next = first
	}
}

const (
	// openTries and openPause bound the wait for a rotation under way.
	openTries = 100
	openPause = time.Millisecond
)

// openParts opens the old file, if there is one, and the one that follows it.
func openParts(dir string) ([]part, error) {
	for try := 1; ; try++ {
		count, inode, _ := readCount(dir)
		old, oldErr := open(filepath.Join(dir, OldName))
		current, err := open(filepath.Join(dir, Name))
		var parts []part
		settled := err == nil
		if oldErr == nil {
			first := int64(-1)
			if inodeOf(old) == inode {
				first = count
			}
			settled = settled && first >= 0 && isAt(old, filepath.Join(dir, OldName))
			parts = append(parts, part{old, first})
		} else {
			_, statErr := os.Lstat(filepath.Join(dir, OldName))
			settled = settled && errors.Is(statErr, fs.ErrNotExist)
		}
		if err == nil {
			first := int64(-1)
			if oldErr != nil {
				first = 0
			}
			parts = append(parts, part{current, first})
		}
		// Where nothing was ever rotated, nothing is under way either.
		never := err != nil && oldErr != nil
		if settled || try == openTries || never {
			if len(parts) == 0 {
				return nil, err
			}
			return parts, nil
		}
		for _, p := range parts {
			p.file.Close()
		}
		time.Sleep(openPause)
	}
}

func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

func inodeOf(f *os.File) uint64 {
	var st unix.Stat_t
	unix.Fstat(int(f.Fd()), &st)
	return st.Ino
}

func same(a, b *os.File) bool {
	one, err := a.Stat()
	other, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(one, other)
}

// isAt tells whether an open file still has the given name.
func isAt(f *os.File, path string) bool {
	one, err := f.Stat()
	other, err2 := os.Lstat(path)
	return err == nil && err2 == nil && os.SameFile(one, other)
}

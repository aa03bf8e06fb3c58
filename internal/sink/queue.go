package sink

import (
	"bytes"

	"golang.org/x/sys/unix"
)

const (
	// blockSize is how many bytes of text are kept together in memory, and
	// delivered at once.
	blockSize = 256 << 10
	// fileSize is the size in bytes from which on a spool file is not appended to:
	// one whose text has been delivered is given back as a whole.
	fileSize = 16 << 20
)

// queue is text in the order in which it is to be delivered, in memory and in
// files without a name. A Sink guards it.
type queue struct {
	items []item
	// memory and disk are the bytes that the items have.
	memory, disk int64
	// spool is the file that text goes to when memory is full; nil if there is
	// none to append to.
	spool *spoolFile
	// spare is a block to be used again.
	spare []byte
	// batch is what next returned last from a file and done has left of it;
	// mapping is the memory where that is, if it is a file's.
	batch, mapping []byte
}

// item is a text in memory, buf[start:], or in a file.
type item struct {
	buf   []byte
	start int

	file      *spoolFile
	off, size int64
	// line says that the text is one line, of any length.
	line bool
	// events is how many events the text in a file has.
	events int64
}

// addMemory appends text in memory.
func (q *queue) addMemory(text []byte) {
	q.memory += int64(len(text))
	if n := len(q.items); n > 0 && q.items[n-1].file == nil {
		if last := &q.items[n-1]; len(last.buf)+len(text) <= blockSize {
			last.buf = append(last.buf, text...)
			return
		}
	}
	buf := q.spare
	q.spare = nil
	q.items = append(q.items, item{buf: append(buf, text...)})
}

// addDisk appends text in a file of a directory.
func (q *queue) addDisk(dir string, text []byte, events int64) error {
	if q.spool != nil && q.spool.size >= fileSize {
		q.spool.release()
		q.spool = nil
	}
	if q.spool == nil {
		f, err := newSpoolFile(dir)
		if err != nil {
			return err
		}
		q.spool = f
	}
	off := q.spool.size
	if err := q.spool.append(text); err != nil {
		return err
	}
	q.disk += int64(len(text))
	if n := len(q.items); n > 0 && q.items[n-1].file == q.spool {
		q.items[n-1].size += int64(len(text))
		q.items[n-1].events += events
		return nil
	}
	q.spool.hold()
	q.items = append(q.items, item{file: q.spool, off: off, size: int64(len(text)), events: events})
	return nil
}

// addLine appends the first size bytes of a file, which are one line.
func (q *queue) addLine(f *spoolFile, size, events int64) {
	f.hold()
	q.disk += size
	q.items = append(q.items, item{file: f, size: size, line: true, events: events})
}

// next returns text from the front, whole lines of it where whole lines were
// added; nil if there is none. It is valid until done.
func (q *queue) next() ([]byte, error) {
	if len(q.items) == 0 {
		return nil, nil
	}
	front := &q.items[0]
	switch {
	case front.file == nil:
		return front.buf[front.start:], nil
	case q.batch != nil:
		return q.batch, nil
	case front.line:
		text, err := front.file.mmap(front.size)
		q.batch, q.mapping = text, text
		return text, err
	}
	for size := min(front.size, blockSize); ; size = min(front.size, 2*size) {
		text := make([]byte, size)
		if err := front.file.read(text, front.off); err != nil {
			return nil, err
		}
		if end := bytes.LastIndexByte(text, '\n') + 1; end > 0 || size == front.size {
			if end > 0 {
				text = text[:end]
			}
			q.batch = text
			return text, nil
		}
	}
}

// done forgets the first n bytes of what next returned; count counts the events
// in a text.
func (q *queue) done(n int, count func([]byte) int64) {
	front := &q.items[0]
	if front.file == nil {
		front.start += n
		q.memory -= int64(n)
		if front.start == len(front.buf) {
			q.pop()
		}
		return
	}
	front.off += int64(n)
	front.size -= int64(n)
	if !front.line {
		front.events -= count(q.batch[:n])
	}
	q.disk -= int64(n)
	q.batch = q.batch[n:]
	if len(q.batch) == 0 {
		q.unmap()
	}
	if front.size == 0 {
		q.pop()
	}
}

func (q *queue) unmap() {
	if q.mapping != nil {
		unix.Munmap(q.mapping)
	}
	q.batch, q.mapping = nil, nil
}

// pop forgets the first item.
func (q *queue) pop() {
	front := q.items[0]
	q.items[0] = item{}
	q.items = q.items[1:]
	if front.file == nil {
		if cap(front.buf) <= 2*blockSize {
			q.spare = front.buf[:0]
		}
		return
	}
	front.file.release()
	if q.spool == front.file && q.spool.held() == 1 {
		// All of it has been delivered.
		q.spool.release()
		q.spool = nil
	}
}

// giveUp forgets the next n bytes of a batch, which has the text from the line on
// in which they begin, and returns how much that was.
func (q *queue) giveUp(n int, text []byte, count func([]byte) int64) (size, events int64) {
	if front := &q.items[0]; front.line {
		events = front.events
	} else {
		events = count(text)
	}
	q.done(n, count)
	return int64(n), events
}

// drop forgets the first item and returns what it had; count tells how many
// events a text in memory has.
func (q *queue) drop(count func([]byte) int64) (size, events int64) {
	front := &q.items[0]
	if front.file == nil {
		text := front.buf[front.start:]
		size, events = int64(len(text)), count(text)
		q.memory -= size
	} else {
		size, events = front.size, front.events
		q.disk -= size
		q.unmap()
	}
	q.pop()
	return size, events
}

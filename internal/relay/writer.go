package relay

import "time"

// Writer writes to a descriptor that other processes share, such as standard
// output: whether it is in non-blocking mode does not matter and is not changed.
type Writer struct{ to *descriptor }

// NewWriter returns a Writer for fd. It does not close fd.
func NewWriter(fd int) Writer { return Writer{newDescriptor(fd)} }

// Write writes all of p, as long as it takes, unless there is an error.
func (w Writer) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = w.to.writeAll(p[n:], w.to.getDeadline)
		n += m
	}
	return n, err
}

// SetDeadline bounds writes, also those under way.
func (w Writer) SetDeadline(t time.Time) { w.to.SetDeadline(t) }

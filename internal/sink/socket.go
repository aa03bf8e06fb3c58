package sink

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is a target that writes to a Unix stream socket on which somebody
// listens. It connects when there is something to write, and again when the
// connection has broken; a line of which only a part was taken is sent again
// from its beginning.
type Socket struct {
	path string
	// unread is told how many events, at most, a listener has been sent that it
	// closed without reading.
	unread func(events int64)

	// mu guards what SetDeadline needs while Write waits.
	mu       sync.Mutex
	conn     *os.File
	deadline time.Time

	// sent are the batches that the listener may not have read, oldest first.
	sent []sentBatch
}

type sentBatch struct{ size, events int64 }

// maxUnread is how many bytes a socket holds at most: what was sent before them
// has been read.
const maxUnread = 4 << 20

// NewSocket returns a target for the socket with the given path.
func NewSocket(path string, unread func(events int64)) *Socket {
	return &Socket{path: path, unread: unread}
}

// SetDeadline bounds writes, also the one under way; the zero time lifts it.
func (s *Socket) SetDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	if s.conn != nil {
		s.conn.SetWriteDeadline(t)
	}
}

// Write sends lines.
func (s *Socket) Write(lines []byte) (n int, err error) {
	if s.conn == nil {
		if err := s.connect(); err != nil {
			return 0, err
		}
	}
	n, err = s.conn.Write(lines)
	whole := n
	if n < len(lines) {
		whole = bytes.LastIndexByte(lines[:n], '\n') + 1
	}
	s.count(lines[:whole])
	if err != nil {
		s.disconnect(err)
	} else {
		s.forgetRead()
	}
	return whole, err
}

func (s *Socket) connect() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	// EAGAIN says that the listener's backlog is full: as good as not there.
	if _, err := again(func() (int, error) { return 0, unix.Connect(fd, &unix.SockaddrUnix{Name: s.path}) }); err != nil {
		unix.Close(fd)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = os.NewFile(uintptr(fd), s.path)
	s.conn.SetWriteDeadline(s.deadline)
	s.sent = nil
	return nil
}

// disconnect closes a connection that has failed.
func (s *Socket) disconnect(err error) {
	reset := errors.Is(err, syscall.ECONNRESET) || s.wasReset()
	s.mu.Lock()
	s.conn.Close()
	s.conn = nil
	s.mu.Unlock()
	var events int64
	for _, b := range s.sent {
		events += b.events
	}
	s.sent = nil
	if reset && events > 0 && s.unread != nil {
		s.unread(events)
	}
}

// wasReset tells whether the listener closed with something unread.
func (s *Socket) wasReset() bool {
	n, err := s.onConn(func(fd int) (int, error) { return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR) })
	return err == nil && unix.Errno(n) == unix.ECONNRESET
}

// count notes what was sent, as long as it may be unread.
func (s *Socket) count(lines []byte) {
	if len(lines) == 0 {
		return
	}
	s.sent = append(s.sent, sentBatch{int64(len(lines)), CountLines(lines)})
	var later int64
	for i := len(s.sent) - 1; i >= 0; i-- {
		if later > maxUnread {
			s.sent = s.sent[i+1:]
			return
		}
		later += s.sent[i].size
	}
}

// forgetRead forgets what was sent if all of it has been read.
func (s *Socket) forgetRead() {
	if n, err := s.onConn(func(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCOUTQ) }); err == nil && n == 0 {
		s.sent = s.sent[:0]
	}
}

func (s *Socket) onConn(call func(fd int) (int, error)) (n int, err error) {
	conn, err := s.conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	if bad := conn.Control(func(fd uintptr) { n, err = call(int(fd)) }); bad != nil {
		return 0, bad
	}
	return n, err
}

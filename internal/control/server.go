package control

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// connections is how many are served at once; others wait in the kernel.
	connections = 8
	// backlog is how many may wait there.
	backlog = 64
	// exchange bounds one request and its reply.
	exchange = 5 * time.Second
	// closing bounds what Close waits.
	closing = 200 * time.Millisecond
	// shortage is the pause after the kernel had no descriptor or memory for a
	// connection.
	shortage = 10 * time.Millisecond
)

// Server answers on a socket.
type Server struct {
	path   string
	socket *os.File
	slots  chan struct{}
	// done is closed by Close.
	done   chan struct{}
	closed sync.Once
	// busy is held by each answer that is being made.
	busy sync.RWMutex
}

// Listen makes the socket at path, in a directory that must exist, for root and
// the user that this process works as.
func Listen(path string) (*Server, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	socket := os.NewFile(uintptr(fd), path)
	if err := bind(fd, path); err != nil {
		socket.Close()
		return nil, err
	}
	return &Server{path: path, socket: socket,
		slots: make(chan struct{}, connections), done: make(chan struct{})}, nil
}

// bind closes the file to others before anybody can connect, which needs the
// listening.
func bind(fd int, path string) error {
	where, release, err := address(path)
	if err != nil {
		return err
	}
	defer release()
	if err := unix.Bind(fd, where); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	return os.NewSyscallError("listen", unix.Listen(fd, backlog))
}

// Serve answers each request with what handle returns for it, in a goroutine of
// its own, until Close. handle must not block for long.
func (s *Server) Serve(handle func(request []string) (reply []string)) {
	for {
		select {
		case s.slots <- struct{}{}:
		case <-s.done:
			return
		}
		conn, err := s.accept()
		if err != nil {
			return
		}
		go func() {
			s.answer(conn, handle)
			conn.Close()
			<-s.slots
		}()
	}
}

// accept waits for a connection in Go's poller. It fails after Close only.
func (s *Server) accept() (*os.File, error) {
	listening, err := s.socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	for {
		fd := -1
		var fault error
		err := listening.Read(func(l uintptr) bool {
			fd, fault = again(func() (int, error) {
				fd, _, err := unix.Accept4(int(l), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
				return fd, err
			})
			return fault != unix.EAGAIN
		})
		if err != nil {
			return nil, err
		}
		if fault == nil {
			return os.NewFile(uintptr(fd), "control connection"), nil
		}
		time.Sleep(shortage)
	}
}

// answer serves one connection. Whoever may not ask gets no word.
func (s *Server) answer(conn *os.File, handle func([]string) []string) {
	conn.SetDeadline(time.Now().Add(exchange))
	if p, err := peerOf(conn); err != nil || p.UID != 0 && p.UID != os.Geteuid() {
		return
	}
	request, err := decode(conn)
	if err != nil {
		return
	}
	s.busy.RLock()
	defer s.busy.RUnlock()
	if reply, err := encode(handle(request)); err == nil {
		conn.Write(reply)
	}
}

// Close removes the socket and makes Serve return. It waits for answers that are
// being made, but not for long.
func (s *Server) Close() {
	s.closed.Do(func() {
		os.Remove(s.path)
		close(s.done)
		s.socket.Close()
	})
	for end := time.Now().Add(closing); time.Now().Before(end); time.Sleep(closing / 100) {
		if s.busy.TryLock() {
			s.busy.Unlock()
			return
		}
	}
}

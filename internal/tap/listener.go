package tap

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Listener receives what taps hand over.
type Listener struct {
	dir    string
	socket *os.File
	stop   atomic.Bool
}

// Listen makes a tap's directory: the names under which program is called, and
// the socket, which nobody but this user and root can write to. What an earlier
// process of the same id left there is replaced.
func Listen(dir, program string) (*Listener, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l, err := listen(dir, program)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return l, nil
}

func listen(dir, program string) (*Listener, error) {
	for _, name := range []string{Name, ExecName} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	socket := os.NewFile(uintptr(fd), "tap socket")
	address, release, err := socketAddress(dir)
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, address))
		release()
	}
	if err == nil {
		err = os.Chmod(filepath.Join(dir, socketName), 0o600)
	}
	if err != nil {
		socket.Close()
		return nil, err
	}
	return &Listener{dir: dir, socket: socket}, nil
}

// Receive waits for the next message. After Stop it returns those that were
// already sent, and then io.EOF.
func (l *Listener) Receive() (Message, error) {
	conn, err := l.socket.SyscallConn()
	if err != nil {
		return Message{}, io.EOF
	}
	for {
		var m Message
		var ok bool
		var fault error
		take := func(fd uintptr) bool {
			m, ok, fault = receive(int(fd))
			return fault != unix.EAGAIN
		}
		if l.stop.Load() {
			conn.Control(func(fd uintptr) { take(fd) })
			if fault == unix.EAGAIN {
				return Message{}, io.EOF
			}
		} else if err := conn.Read(take); errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		} else if err != nil {
			return Message{}, io.EOF
		}
		if ok {
			return m, nil
		}
		if fault != nil {
			time.Sleep(shortage)
		}
	}
}

// shortage is the pause after the kernel had no memory for a message.
const shortage = 10 * time.Millisecond

// Stop makes Receive return what is there, and then io.EOF.
func (l *Listener) Stop() {
	l.stop.Store(true)
	l.socket.SetReadDeadline(time.Unix(1, 0))
}

// Resume takes back Stop.
func (l *Listener) Resume() {
	l.stop.Store(false)
	l.socket.SetReadDeadline(time.Time{})
}

// Stopped tells whether Stop was called.
func (l *Listener) Stopped() bool { return l.stop.Load() }

// Close ends the tap: commands from now on run as without it.
func (l *Listener) Close() error {
	err := os.RemoveAll(l.dir)
	return errors.Join(err, l.socket.Close())
}

// receive takes a datagram, if there is one. Its error is EAGAIN where there is
// none; another one, such as a descriptor limit's, costs one message at most.
func receive(fd int) (Message, bool, error) {
	data := make([]byte, maxMessage)
	control := make([]byte, unix.CmsgSpace(4*maxFiles))
	for {
		n, controls, flags, _, err := unix.Recvmsg(fd, data, control, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return Message{}, false, err
		}
		fds := descriptors(control[:controls])
		if flags&(unix.MSG_CTRUNC|unix.MSG_TRUNC) != 0 {
			closeAll(fds)
			return Message{Failure: "agent-init cannot take more descriptors"}, true, nil
		}
		m, ok := parse(data[:n], fds)
		return m, ok, nil
	}
}

func descriptors(control []byte) (fds []int) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}

func viaDescriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) + "/" + socketName }

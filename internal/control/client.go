package control

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrAbsent says that nobody answers at a path: there is no socket, or whoever
// listened there is gone.
var ErrAbsent = errors.New("no agent-init answers there")

// ErrRefused says that the other end does not talk to this user.
var ErrRefused = errors.New("agent-init there does not talk to this user")

// replyTime bounds an exchange, the wait for a free place included.
const replyTime = 20 * time.Second

// Ask sends a request to the socket at path and waits for the reply. trusted
// tells whether whoever listens there may be asked: what is sent may be a secret.
func Ask(path string, trusted func(Peer) bool, request ...string) ([]string, error) {
	message, err := encode(request)
	if err != nil {
		return nil, err
	}
	conn, err := dial(path)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	listener, err := peerOf(conn)
	if err != nil {
		return nil, err
	}
	if !trusted(listener) {
		return nil, fmt.Errorf("process %d of uid %d listens there, which is not agent-init", listener.PID, listener.UID)
	}
	conn.SetDeadline(time.Now().Add(replyTime))
	if _, err := conn.Write(message); err != nil && !errors.Is(err, unix.EPIPE) {
		return nil, err
	}
	reply, err := decode(conn)
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
		return nil, ErrRefused
	}
	return reply, err
}

func dial(path string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	where, release, err := address(path)
	if err == nil {
		_, err = again(func() (int, error) { return 0, unix.Connect(fd, where) })
		release()
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) {
			return nil, ErrAbsent
		}
		return nil, &os.PathError{Op: "connect", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

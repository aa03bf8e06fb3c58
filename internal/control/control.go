// Package control is how other processes of a workspace ask the agent-init that
// booted it: a Unix stream socket in the runtime directory on which one request
// gets one reply. Requests and replies are lists of texts; what they mean is the
// caller's affair.
package control

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Limit is how many bytes a request or a reply may have.
const Limit = 2 << 20

// maxTexts is how many texts one may have.
const maxTexts = 4096

// errMalformed says that what came is no message of this package.
var errMalformed = errors.New("it is no message of agent-init's")

// encode puts texts behind their lengths, and all of it behind its length
// (32 bits each, little-endian).
func encode(texts []string) ([]byte, error) {
	size := 0
	for _, t := range texts {
		size += 4 + len(t)
	}
	if size > Limit || len(texts) > maxTexts {
		return nil, fmt.Errorf("it has %d bytes in %d texts, more than the limits of %d and %d", size, len(texts), Limit, maxTexts)
	}
	data := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+size), uint32(size))
	for _, t := range texts {
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(t))), t...)
	}
	return data, nil
}

// decode reads one message.
func decode(r io.Reader) ([]string, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(length[:])
	if size > Limit {
		return nil, errMalformed
	}
	// What is announced is not believed before it is there.
	data, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil {
		return nil, err
	}
	if len(data) < int(size) {
		return nil, io.ErrUnexpectedEOF
	}
	return split(data)
}

func split(data []byte) (texts []string, err error) {
	for len(data) > 0 {
		if len(data) < 4 || len(texts) == maxTexts {
			return nil, errMalformed
		}
		n := binary.LittleEndian.Uint32(data)
		data = data[4:]
		if uint64(n) > uint64(len(data)) {
			return nil, errMalformed
		}
		texts = append(texts, string(data[:n]))
		data = data[n:]
	}
	return texts, nil
}

// maxAddress is how long a socket's path can be (unix(7)).
const maxAddress = 107

// address names a socket. A path that is too long is reached through a
// descriptor of its directory.
func address(path string) (_ *unix.SockaddrUnix, release func(), err error) {
	if len(path) <= maxAddress {
		return &unix.SockaddrUnix{Name: path}, func() {}, nil
	}
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("open", err)
	}
	name := "/proc/self/fd/" + strconv.Itoa(fd) + "/" + filepath.Base(path)
	return &unix.SockaddrUnix{Name: name}, func() { unix.Close(fd) }, nil
}

// again repeats a call that a signal interrupted.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

// Peer is the process at the other end of a connection, as it was when it
// connected or began to listen.
type Peer struct {
	// PID is 0 where it lives in another PID namespace.
	PID int
	// UID is the effective one.
	UID int
}

func peerOf(f *os.File) (Peer, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *unix.Ucred
	if bad := conn.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); bad != nil {
		return Peer{}, bad
	}
	if err != nil {
		return Peer{}, os.NewSyscallError("getsockopt", err)
	}
	return Peer{PID: int(cred.Pid), UID: int(cred.Uid)}, nil
}

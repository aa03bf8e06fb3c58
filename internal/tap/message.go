package tap

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// kind is what a tap tells agent-init, the first byte of a datagram.
type kind byte

const (
	// pipe comes with the read end of a pipe that is the command's standard
	// error, and the standard error that it would have had.
	pipe kind = 'p'
	// file comes with a file that is the command's standard output and error,
	// the process's pidfd, and the file's size before it.
	file kind = 'f'
	// failed says why the events of a command will not be seen.
	failed kind = 'x'
)

// Datagrams hold at most this many bytes, and descriptors.
const (
	maxMessage = 512
	maxFiles   = 2
)

// Message is what one tapped command hands over. It is one of three: with Pipe
// and Stderr, with File, From and Process, or with Failure alone.
type Message struct {
	// Pipe is the read end of the pipe that is the command's standard error,
	// Stderr where its bytes belong.
	Pipe, Stderr *os.File
	// File is a file to which the command writes both output and errors, from
	// the offset From on; Process is a pidfd of it.
	File, Process *os.File
	From          int64
	// Failure says why a command runs untapped.
	Failure string
}

// send hands a message over. It waits while agent-init's queue is full: events
// are not to be lost.
func send(dir string, k kind, payload []byte, fds ...int) error {
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(sock)
	address, release, err := socketAddress(dir)
	if err != nil {
		return err
	}
	defer release()
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	data := append([]byte{byte(k)}, payload...)
	for {
		err := unix.Sendmsg(sock, data, rights, address, unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			return err
		}
	}
}

// maxAddress is how long a socket's path can be (unix(7)).
const maxAddress = 107

// socketAddress names the socket in a directory. A path that is too long is
// reached through a descriptor of the directory.
func socketAddress(dir string) (_ *unix.SockaddrUnix, release func(), err error) {
	path := dir + "/" + socketName
	if len(path) <= maxAddress {
		return &unix.SockaddrUnix{Name: path}, func() {}, nil
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return &unix.SockaddrUnix{Name: viaDescriptor(fd)}, func() { unix.Close(fd) }, nil
}

func offset(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// parse makes a Message of a datagram. What is no message of a tap closes the
// files and counts as nothing: anybody of the agent's user can send one.
func parse(data []byte, fds []int) (Message, bool) {
	if len(data) == 0 {
		return Message{}, closeAll(fds)
	}
	payload := data[1:]
	switch kind(data[0]) {
	case pipe:
		if len(fds) == 2 && fileType(fds[0]) == unix.S_IFIFO && unix.SetNonblock(fds[0], true) == nil {
			return Message{Pipe: os.NewFile(uintptr(fds[0]), "tapped"), Stderr: os.NewFile(uintptr(fds[1]), "stderr")}, true
		}
	case file:
		if len(fds) == 2 && len(payload) == 8 && fileType(fds[0]) == unix.S_IFREG {
			return Message{File: os.NewFile(uintptr(fds[0]), "tapped"), Process: os.NewFile(uintptr(fds[1]), "pidfd"),
				From: int64(binary.LittleEndian.Uint64(payload))}, true
		}
	case failed:
		closeAll(fds)
		return Message{Failure: string(payload)}, len(payload) > 0
	}
	return Message{}, closeAll(fds)
}

// closeAll returns false.
func closeAll(fds []int) bool {
	for _, fd := range fds {
		unix.Close(fd)
	}
	return false
}

func fileType(fd int) uint32 {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return 0
	}
	return st.Mode & unix.S_IFMT
}

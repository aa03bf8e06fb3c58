package supervise

import (
	"encoding/binary"
	"errors"
	"os"
	"path"
	"strings"
	"syscall"

	"agent-init/internal/problem"

	"golang.org/x/sys/unix"
)

// Exit codes for a command that cannot be started, as shells have them.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// codeFault is for an error that is none of starting a command.
const codeFault = 70

// defaultPath is where execvp(3) looks without a PATH.
const defaultPath = "/bin:/usr/bin"

// StartError is why a command cannot be started.
type StartError struct {
	problem.Problem
	// Code is the exit code that goes with it: 127 when there is no such
	// command, 126 when it is there and cannot be executed.
	Code int
}

// StartErrorCode is the exit code that goes with an error of Lookup or Start;
// 70 for any other error.
func StartErrorCode(err error) int {
	var s *StartError
	if errors.As(err, &s) {
		return s.Code
	}
	return codeFault
}

func startError(name string, code int, why, hint string) error {
	return &StartError{Problem: problem.Problem{What: "cannot start " + problem.Path(name), Why: why, Hint: hint}, Code: code}
}

// Lookup finds the file of a command as execvp(3) does: a name with a slash is
// that file, any other is looked for in the directories of searchPath. Its
// error is a *StartError.
func Lookup(name, searchPath string) (string, error) {
	if name == "" {
		return "", startError(`""`, CodeNotFound, "the command is empty", "")
	}
	if strings.Contains(name, "/") {
		if errno, why := executable(name); errno != 0 {
			return "", startError(name, codeOf(errno), why, "")
		}
		return name, nil
	}
	if searchPath == "" {
		searchPath = defaultPath
	}
	var denied error
	for _, dir := range strings.Split(searchPath, ":") {
		if dir == "" {
			dir = "."
		}
		file := strings.TrimSuffix(dir, "/") + "/" + name
		errno, why := executable(file)
		if errno == 0 {
			return file, nil
		}
		if codeOf(errno) == CodeNotExecutable && denied == nil {
			denied = startError(file, CodeNotExecutable, why, "")
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", startError(name, CodeNotFound, "not found in PATH="+searchPath, "")
}

// executable tells why exec of file would fail; 0 if nothing speaks against it.
func executable(file string) (errno unix.Errno, why string) {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		errno, _ = err.(unix.Errno)
		return errno, errno.Error()
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR, "it is a directory"
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.EACCES, "it is no regular file"
	}
	if err := unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS); err != nil {
		errno, _ = err.(unix.Errno)
		return errno, errno.Error()
	}
	return 0, ""
}

func codeOf(errno unix.Errno) int {
	switch errno {
	case unix.ENOENT, unix.ENOTDIR, unix.ENAMETOOLONG, unix.ELOOP:
		return CodeNotFound
	}
	return CodeNotExecutable
}

// explain turns what the kernel says about an exec into what is wrong.
func explain(c Command, err error) error {
	name := c.argv0()
	errno, _ := err.(syscall.Errno)
	if c.Dir != "" {
		if st, err := os.Stat(c.Dir); err != nil || !st.IsDir() {
			return startError(name, CodeNotExecutable, "cannot enter working directory "+problem.Path(c.Dir), "")
		}
	}
	switch errno {
	case unix.ENOENT:
		if interpreter := interpreterOf(c.Path); interpreter != "" {
			return startError(name, CodeNotFound, "its interpreter "+problem.Path(interpreter)+" does not exist",
				"install it, or correct the first line of the script")
		}
	case unix.ENOEXEC:
		return startError(name, CodeNotExecutable, "exec format error",
			"a script needs a first line such as #!/bin/sh; a program must be built for this machine")
	case unix.EAGAIN:
		return startError(name, CodeNotExecutable, "no further process can be started",
			"raise the limit of processes (pids.max, ulimit -u)")
	}
	return startError(name, codeOf(errno), err.Error(), "")
}

// headBytes is enough for a script's first line, of which the kernel reads 256
// bytes, and for the headers of an ELF file, which linkers put first.
const headBytes = 4096

// interpreterOf names the program that the kernel starts for a script or for a
// dynamically linked program, if it does not exist; empty otherwise.
func interpreterOf(file string) string {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	head := make([]byte, headBytes)
	n, err := unix.Pread(fd, head, 0)
	if err != nil {
		return ""
	}
	interpreter := scriptInterpreter(head[:n])
	if interpreter == "" {
		interpreter = elfInterpreter(head[:n])
	}
	if interpreter == "" {
		return ""
	}
	if _, err := os.Stat(path.Clean(interpreter)); err == nil {
		return ""
	}
	return interpreter
}

// scriptInterpreter is the first word after "#!".
func scriptInterpreter(head []byte) string {
	line, ok := strings.CutPrefix(string(head), "#!")
	if !ok {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	line = strings.TrimLeft(line, " \t")
	if i := strings.IndexAny(line, " \t\x00"); i >= 0 {
		line = line[:i]
	}
	return line
}

// elfInterpreter is the dynamic linker (PT_INTERP) of a 64-bit little-endian
// program, the only kind that this program runs beside (elf(5)).
func elfInterpreter(head []byte) string {
	const class64, little, typeInterp, headerSize, entrySize = 2, 1, 3, 64, 56
	if len(head) < headerSize || string(head[:4]) != "\x7fELF" || head[4] != class64 || head[5] != little {
		return ""
	}
	offset := binary.LittleEndian.Uint64(head[32:])
	for range binary.LittleEndian.Uint16(head[56:]) {
		if offset > uint64(len(head)-entrySize) {
			return ""
		}
		entry := head[offset : offset+entrySize]
		if binary.LittleEndian.Uint32(entry) == typeInterp {
			from, size := binary.LittleEndian.Uint64(entry[8:]), binary.LittleEndian.Uint64(entry[32:])
			if from > uint64(len(head)) || size > uint64(len(head))-from {
				return ""
			}
			return strings.TrimRight(string(head[from:from+size]), "\x00")
		}
		offset += entrySize
	}
	return ""
}

package githook

import (
	"bytes"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// memoryLimit is how many bytes of input are kept in memory; more goes to a file.
const memoryLimit = 1 << 20

// input is what git gives a hook on its standard input, kept so that each of
// several can read it from its beginning. Nil stands for standard input as it is.
type input struct{ file *os.File }

// input reads what git gives, for a hook that gets something.
func (c call) input() (*input, error) {
	if t, _ := traits(c.name); t&reads == 0 {
		return nil, nil
	}
	var head bytes.Buffer
	n, err := io.Copy(&head, io.LimitReader(os.Stdin, memoryLimit))
	if err != nil {
		return nil, err
	}
	file, err := store(n == memoryLimit)
	if err != nil {
		return nil, err
	}
	if _, err = file.Write(head.Bytes()); err == nil {
		_, err = io.Copy(file, os.Stdin)
	}
	return &input{file}, err
}

// store is a file without a name.
func store(large bool) (*os.File, error) {
	if !large {
		fd, err := unix.MemfdCreate("git hook input", unix.MFD_CLOEXEC)
		return os.NewFile(uintptr(fd), "input"), os.NewSyscallError("memfd_create", err)
	}
	file, err := os.CreateTemp("", "git-hook-input-")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// open gives each reader a place of its own in the file.
func (in *input) open() (*os.File, error) {
	if in == nil {
		return os.Stdin, nil
	}
	return os.Open("/proc/self/fd/" + strconv.Itoa(int(in.file.Fd())))
}

// toStdin makes the input that of this process.
func (in *input) toStdin() error {
	if in == nil {
		return nil
	}
	file, err := in.open()
	if err != nil {
		return err
	}
	return os.NewSyscallError("dup", unix.Dup3(int(file.Fd()), 0, 0))
}

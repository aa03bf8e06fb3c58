// Package privilege lets PID 1 work as another user and keep, for itself alone,
// the way back to root: to read secrets, to start processes that are that user's
// for good, and to end any process of the container.
package privilege

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lowered is set while the process works as another user than root.
var lowered atomic.Pointer[Identity]

// Lowered is the user that the process works as, if it has come from root.
func Lowered() (id Identity, ok bool) {
	if p := lowered.Load(); p != nil {
		return *p, true
	}
	return Identity{}, false
}

// Lower makes every thread work with the user's ids: files are read and written
// as that user. The real and the saved user id stay root's, so that no process of
// the user can signal or trace this one, and AsRoot can go back; of root's
// capabilities CAP_KILL stays in effect, for processes of other users that came
// into the container. It is for root, once.
func Lower(id Identity) error {
	own(id)
	if err := syscall.Setgroups(id.Groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := syscall.Setresgid(-1, id.GID, -1); err != nil {
		return fmt.Errorf("setresgid: %w", err)
	}
	if err := syscall.Setresuid(-1, id.UID, -1); err != nil {
		return fmt.Errorf("setresuid: %w", err)
	}
	header, data := capabilities()
	// Without the capability PID 1 cannot end what is not the user's; the kernel
	// does, when PID 1 ends.
	_, _, _ = syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(&data[0])), 0)
	lowered.Store(&id)
	return nil
}

// Drop makes the process the user's for good.
func Drop(id Identity) error {
	if _, ok := Lowered(); ok {
		if err := syscall.Setresuid(-1, 0, -1); err != nil {
			return fmt.Errorf("setresuid: %w", err)
		}
	}
	own(id)
	if err := syscall.Setgroups(id.Groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := syscall.Setresgid(id.GID, id.GID, id.GID); err != nil {
		return fmt.Errorf("setresgid: %w", err)
	}
	if err := syscall.Setresuid(id.UID, id.UID, id.UID); err != nil {
		return fmt.Errorf("setresuid: %w", err)
	}
	lowered.Store(nil)
	return nil
}

// AsRoot runs f as root, on a thread that nothing else runs on meanwhile; what f
// starts as goroutines is not root. Where the process has not come from root, f
// runs as it is.
func AsRoot(f func()) {
	id, ok := Lowered()
	if !ok {
		f()
		return
	}
	runtime.LockOSThread()
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 0, ^uintptr(0)); errno != 0 {
		runtime.UnlockOSThread()
		f()
		return
	}
	defer func() {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(id.UID), ^uintptr(0)); errno != 0 {
			// A locked thread ends with its goroutine instead of serving others.
			return
		}
		header, data := capabilities()
		_ = unix.Capset(header, &data[0])
		runtime.UnlockOSThread()
	}()
	f()
}

// capabilities are those that stay in effect, of the permitted ones that root has.
func capabilities() (*unix.CapUserHeader, *[2]unix.CapUserData) {
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := new([2]unix.CapUserData)
	_ = unix.Capget(header, &data[0])
	kill := uint32(1 << unix.CAP_KILL)
	data[0].Effective, data[1].Effective = data[0].Permitted&kill, 0
	return header, data
}

// own gives the user root's standard descriptors, where they are pipes or
// terminals: a program of that user could not open /dev/stdout otherwise.
func own(id Identity) {
	for fd := range 3 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Uid != uint32(os.Getuid()) {
			continue
		}
		_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil || st.Mode&unix.S_IFMT == unix.S_IFIFO {
			_ = unix.Fchown(fd, id.UID, -1)
		}
	}
}

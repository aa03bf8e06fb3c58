package supervise

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxProcs bounds how many threads run Go code at once. On a large host the
// runtime would want one for each processor, and the one it cannot make at the
// pids limit ends the process.
const maxProcs = 4

// spareThreads are for goroutines that block in the kernel: a write to a
// stalled stderr or log, a read of the process table, a fork.
const spareThreads = 3

func limitProcs() {
	if runtime.GOMAXPROCS(0) > maxProcs {
		runtime.GOMAXPROCS(maxProcs)
	}
}

// quiet are the signals that the kernel raises for a write of our own: PIPE
// when the reader is gone, TTOU when the terminal's foreground is another
// group. Blocked, they do not exist: the write fails or goes through, and what
// arrives at the runtime's signal thread, which does not block them, was sent by
// somebody.
var quiet = signalSet(unix.SIGPIPE, unix.SIGTTOU)

// parkThreads makes the threads that the runtime may need later, because at the
// pids limit it could not, and has them block the quiet signals. All are held
// until the last is there, so that each goroutine gets one of its own; then
// they are idle and the runtime takes them before it makes another.
func parkThreads() {
	n := runtime.GOMAXPROCS(0) + spareThreads
	arrived, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			_ = unix.PthreadSigmask(unix.SIG_BLOCK, &quiet, nil)
			arrived <- struct{}{}
			<-leave
			runtime.UnlockOSThread()
			left <- struct{}{}
		}()
	}
	for range n {
		<-arrived
	}
	close(leave)
	for range n {
		<-left
	}
}

// withMask runs f on a thread whose signal mask is set.
func withMask(set unix.Sigset_t, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old unix.Sigset_t
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &set, &old)
	f()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
}

func signalSet(signals ...unix.Signal) unix.Sigset_t {
	var set unix.Sigset_t
	bits := uint(unsafe.Sizeof(set.Val[0])) * 8
	for _, sig := range signals {
		n := uint(sig) - 1
		set.Val[n/bits] |= 1 << (n % bits)
	}
	return set
}

// sigaction is the kernel's struct on amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// resetUncaught gives the signals that the runtime does not touch their
// defaults, in case they came ignored; exec keeps an ignored signal ignored.
// Those that it catches need nothing: exec resets them.
func resetUncaught() {
	for _, sig := range []uintptr{32, 33, 34} {
		var action sigaction
		_, _, err := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&action)), unsafe.Sizeof(action.mask), 0, 0)
		const ignored = 1
		if err == 0 && action.handler == ignored {
			action = sigaction{}
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0)
		}
	}
}

package supervise

import (
	"runtime"
	"sync/atomic"
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

// quiet is the signal that the kernel raises for our own change of a terminal
// whose foreground is another group, TTOU. Blocked, the change goes through, and
// what arrives on a thread that does not block it was sent by somebody.
var quiet = signalSet(unix.SIGTTOU)

// parkThreads makes the threads that the runtime may need later, because at the
// pids limit it could not, and has them block the quiet signal. All are held
// until the last is there, so that each goroutine gets one of its own; then
// they are idle and the runtime takes them before it makes another. It calls
// parked when they are.
func parkThreads(parked func()) {
	n := int32(runtime.GOMAXPROCS(0) + spareThreads)
	var arrived, left atomic.Int32
	leave := make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			_ = unix.PthreadSigmask(unix.SIG_BLOCK, &quiet, nil)
			if arrived.Add(1) == n {
				close(leave)
			}
			<-leave
			runtime.UnlockOSThread()
			if left.Add(1) == n {
				parked()
			}
		}()
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

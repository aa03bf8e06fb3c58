package supervise

import (
	"encoding/binary"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxProcs bounds how many threads run Go code at once. A second one makes a
// start shorter; on a large host the runtime would want one for each processor,
// and the one it cannot make at the pids limit ends the process.
const maxProcs = 2

// spareThreads are for goroutines that are in the kernel at the same time: the
// loop, the signals' reader, the relay's two sides, the journal. On a busy
// machine even a short system call keeps its thread for long. Three parked
// threads were too few there at the pids limit; each more makes a start longer.
const spareThreads = 5

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
// pids limit it could not, and has them block the quiet signal. Each blocks in
// the kernel until the last is there, so that the runtime has to make one for
// the next; then they are idle and it takes them before it makes another.
// Goroutines locked to threads would do the same with twice the switches.
func parkThreads() error {
	// The thread that boots is there already and counts.
	n := runtime.GOMAXPROCS(0) + spareThreads - 1
	gate, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_SEMAPHORE)
	if err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	defer unix.Close(gate)
	var blocked, left sync.WaitGroup
	blocked.Add(n)
	left.Add(n)
	for range n {
		go func() {
			_ = unix.PthreadSigmask(unix.SIG_BLOCK, &quiet, nil)
			blocked.Done()
			var count [8]byte
			_, _ = unix.Read(gate, count[:])
			left.Done()
		}()
	}
	blocked.Wait()
	var open [8]byte
	binary.NativeEndian.PutUint64(open[:], uint64(n))
	_, err = unix.Write(gate, open[:])
	left.Wait()
	return err
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

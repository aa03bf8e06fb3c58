package supervise

import (
	"os"
	"os/signal"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The runtime's own way to subscribe, os/signal.Notify, costs two thread
// switches for each signal, more than all the rest of a start together, and
// tells neither who sent a signal nor why. So the handler is ours, in assembly
// because it must run on any thread at any moment: it sets the signal's bit in
// arrived and writes to an eventfd.
var (
	// arrived has bit N-1 set when signal N has come; equal ones merge, as
	// pending ones do in the kernel.
	arrived uint64
	// wakeFD is the eventfd that the handler writes to.
	//lint:ignore U1000 read in assembly
	wakeFD int32
	// ownPID tells a PIPE or XFSZ that a write of our own has raised from one that
	// somebody sent: both say SI_USER, see signal(7) and force_sig(9).
	//lint:ignore U1000 read in assembly
	ownPID int32
	// faultHandler is the runtime's handler, to which signals go that the
	// kernel raises for a fault in our own code.
	//lint:ignore U1000 read in assembly
	faultHandler uintptr
)

// onSignal is the handler. It is called by the kernel, never by Go.
//
//lint:ignore U1000 called by the kernel
func onSignal()

// handlerPC is the address of onSignal, restorerPC that of the code that ends a
// handler (0 where the kernel brings its own).
func handlerPC() uintptr
func restorerPC() uintptr

// sigaction is the kernel's struct on amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	sigDefault = 0
	sigIgnore  = 1

	saSiginfo  = 0x4
	saOnStack  = 0x08000000
	saRestart  = 0x10000000
	saRestorer = 0x04000000
)

// setAction is rt_sigaction(2); either pointer may be nil. It cannot fail for
// signals that can be caught.
func setAction(sig unix.Signal, action, old *sigaction) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(action)), uintptr(unsafe.Pointer(old)),
		unsafe.Sizeof(sigaction{}.mask), 0, 0)
}

// catchSignals takes over every signal that can be caught, and CHLD. The file
// becomes readable when some have come; takeArrived says which. HUP and INT are
// left alone where they came ignored, for us and for the agent: that is how
// nohup, and a shell that starts a background job, protect them.
func catchSignals() (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	wakeFD, ownPID = int32(fd), int32(os.Getpid())
	// The runtime ends a program whose os.File gets EPIPE from descriptor 1 or
	// 2, unless it believes the signal to be ignored.
	signal.Ignore(unix.SIGPIPE)
	var fault sigaction
	setAction(unix.SIGSEGV, nil, &fault)
	faultHandler = fault.handler
	ours := sigaction{handler: handlerPC(), flags: saSiginfo | saOnStack | saRestart, restorer: restorerPC(), mask: ^uint64(0)}
	if ours.restorer != 0 {
		ours.flags |= saRestorer
	}
	for sig := unix.Signal(1); sig <= sigRTMax; sig++ {
		if !Catchable(sig) && sig != unix.SIGCHLD {
			continue
		}
		if sig == unix.SIGHUP || sig == unix.SIGINT {
			var old sigaction
			if setAction(sig, nil, &old); old.handler == sigIgnore {
				continue
			}
		}
		setAction(sig, &ours, nil)
	}
	return os.NewFile(uintptr(fd), "signals"), nil
}

// takeArrived returns the signals that have come since it was last called, as
// bits N-1.
func takeArrived() uint64 { return atomic.SwapUint64(&arrived, 0) }

// resetUncaught gives the signals that nobody here touches their defaults, in
// case they came ignored: exec keeps an ignored signal ignored, and resets those
// that are caught.
func resetUncaught() {
	for _, sig := range []unix.Signal{32, 33} {
		var action sigaction
		if setAction(sig, nil, &action); action.handler == sigIgnore {
			setAction(sig, &sigaction{handler: sigDefault}, nil)
		}
	}
}

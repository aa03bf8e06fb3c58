package relay

import (
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// watch wakes followers when their files change. All share one inotify
// instance, of which a user may have few; it lives as long as there are any.
type watch struct {
	mu      sync.Mutex
	inotify *os.File
	files   map[int32][]*follower
}

// add begins to wake w. An error says that the kernel cannot.
func (a *watch) add(w *follower) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inotify == nil {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return err
		}
		a.inotify, a.files = os.NewFile(uintptr(fd), "inotify"), map[int32][]*follower{}
		go a.run(a.inotify)
	}
	wd, err := a.control(func(inotify int) (int, error) {
		return onDescriptor(w.file, func(fd int) (int, error) {
			return unix.InotifyAddWatch(inotify, "/proc/self/fd/"+strconv.Itoa(fd), unix.IN_MODIFY|unix.IN_CLOSE_WRITE)
		})
	})
	if err == nil {
		w.number = int32(wd)
		a.files[w.number] = append(a.files[w.number], w)
	}
	a.closeUnused()
	return err
}

// remove ends the waking of w.
func (a *watch) remove(w *follower) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.files[w.number], w)
	if i < 0 {
		return
	}
	a.files[w.number] = slices.Delete(a.files[w.number], i, i+1)
	if len(a.files[w.number]) == 0 {
		delete(a.files, w.number)
		a.control(func(inotify int) (int, error) { return unix.InotifyRmWatch(inotify, uint32(w.number)) })
	}
	a.closeUnused()
}

// closeUnused ends run when nobody is left to be woken.
func (a *watch) closeUnused() {
	if len(a.files) == 0 {
		a.inotify.Close()
		a.inotify = nil
	}
}

func (a *watch) control(call func(inotify int) (int, error)) (int, error) {
	return onDescriptor(a.inotify, call)
}

func (a *watch) run(inotify *os.File) {
	buf := make([]byte, 4<<10)
	for {
		n, err := inotify.Read(buf)
		if err != nil {
			return
		}
		a.mu.Lock()
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			a.wake(int32(binary.NativeEndian.Uint32(b)))
			b = b[min(len(b), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(b[12:]))):]
		}
		a.mu.Unlock()
	}
}

// wake wakes the followers of a file; of all where the kernel had too many
// events to tell, which it calls -1.
func (a *watch) wake(number int32) {
	if number < 0 {
		for n := range a.files {
			a.wake(n)
		}
	}
	for _, w := range a.files[number] {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// onDescriptor calls something with the descriptor of f.
func onDescriptor(f *os.File, call func(fd int) (int, error)) (n int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if bad := conn.Control(func(fd uintptr) { n, err = call(int(fd)) }); bad != nil {
		return 0, bad
	}
	return n, err
}

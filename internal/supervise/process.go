package supervise

import (
	"bytes"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// process is a line of the process table.
type process struct {
	pid, parent int
	name        string
	state       byte
	threads     int
	// start is in clock ticks since boot; with pid it names a process for good.
	start uint64
}

// dead tells that only the exit status is left. The leader of a process whose
// other threads go on is shown as a zombie too.
func (p process) dead() bool { return p.state == 'X' || p.state == 'Z' && p.threads <= 1 }

// halted tells that job control has stopped the process.
func (p process) halted() bool { return p.state == 'T' }

// readProcess reads /proc/PID/stat (proc_pid_stat(5)).
func readProcess(pid int) (process, bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return process{}, false
	}
	defer unix.Close(fd)
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil || n <= 0 {
		return process{}, false
	}
	return parseStat(buf[:n])
}

func parseStat(line []byte) (process, bool) {
	// The name may hold anything, parentheses and spaces included.
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return process{}, false
	}
	fields := bytes.Fields(line[end+1:])
	// Counted from the state, which proc_pid_stat(5) numbers 3.
	const state, parent, threads, start = 0, 1, 17, 19
	if len(fields) <= start || len(fields[state]) != 1 {
		return process{}, false
	}
	p := process{name: string(line[open+1 : end]), state: fields[state][0]}
	var errs [4]error
	p.pid, errs[0] = strconv.Atoi(string(bytes.TrimSpace(line[:open])))
	p.parent, errs[1] = strconv.Atoi(string(fields[parent]))
	p.threads, errs[2] = strconv.Atoi(string(fields[threads]))
	p.start, errs[3] = strconv.ParseUint(string(fields[start]), 10, 64)
	return p, !slices.ContainsFunc(errs[:], func(err error) bool { return err != nil })
}

// processes reads the process table; it is empty where /proc is not mounted.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b process) int { return a.pid - b.pid })
	return all
}

// descendants picks those of all whose line of parents leads to self.
func descendants(self int, all []process) []process {
	children := make(map[int][]process)
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	var found []process
	next := []int{self}
	for len(next) > 0 {
		parent := next[0]
		next = next[1:]
		for _, p := range children[parent] {
			found = append(found, p)
			next = append(next, p.pid)
		}
		delete(children, parent)
	}
	return found
}

// send signals p unless its process id has become another's since it was read.
func (p process) send(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == unix.ESRCH {
		return err
	}
	if err == nil {
		defer unix.Close(fd)
	}
	// The descriptor, if the kernel has such, holds on to whoever it is now.
	if now, ok := readProcess(p.pid); !ok || now.start != p.start {
		return unix.ESRCH
	}
	if err == nil {
		if err = unix.PidfdSendSignal(fd, sig, nil, 0); err != unix.ENOSYS && err != unix.EPERM {
			return err
		}
	}
	return unix.Kill(p.pid, sig)
}

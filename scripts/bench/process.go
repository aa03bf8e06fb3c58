package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program is a command that is run again and again.
type program struct {
	name string
	argv []string
	env  []string
	// pid1 runs it as the first process of a new PID namespace that has a /proc
	// of its own.
	pid1 bool
	// before is done ahead of every run and not measured.
	before func() error
}

// sample is what one run took.
type sample struct {
	// wall is from the start to the moment at which the process was reaped.
	wall time.Duration
	// cpu is user and system time of the process and the children it reaped.
	cpu time.Duration
}

// run measures one run, which must exit with 0. A start is a vfork and an
// exec, so that the size of this process is no part of it; for a pid1 program
// it is the exec inside the namespace that is ready by then.
func (p program) run() (sample, error) {
	if p.before != nil {
		if err := p.before(); err != nil {
			return sample{}, err
		}
	}
	if p.pid1 {
		return p.runPID1()
	}
	start := monotonic()
	pid, err := p.start(p.argv, []uintptr{null, null, null}, 0)
	if err != nil {
		return sample{}, fmt.Errorf("cannot start %s: %w", p.name, err)
	}
	used, err := p.wait(pid)
	return sample{wall: monotonic() - start, cpu: used}, err
}

func (p program) runPID1() (sample, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return sample{}, err
	}
	defer unix.Close(fds[0])
	argv := append([]string{"/proc/self/exe", pid1Command}, p.argv...)
	pid, err := p.start(argv, []uintptr{null, null, null, uintptr(fds[1])}, unix.CLONE_NEWPID|unix.CLONE_NEWNS)
	unix.Close(fds[1])
	if err != nil {
		return sample{}, fmt.Errorf("cannot make a PID namespace: %w", err)
	}
	used, err := p.wait(pid)
	end := monotonic()
	if err != nil {
		return sample{}, err
	}
	var before [16]byte
	if n, err := syscall.Read(fds[0], before[:]); err != nil || n != len(before) {
		return sample{}, errors.New("cannot tell when the namespace was ready")
	}
	started := time.Duration(binary.NativeEndian.Uint64(before[:8]))
	spent := time.Duration(binary.NativeEndian.Uint64(before[8:]))
	return sample{wall: end - started, cpu: used - spent}, nil
}

// pid1Command makes this program the one that becomes PID 1's program.
const pid1Command = "become-pid-1"

// becomePID1 mounts /proc, tells on descriptor 3 the time and what this process
// has used so far, and becomes the program. It returns only on an error.
func becomePID1(argv []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}
	unix.CloseOnExec(3)
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	var now [16]byte
	binary.NativeEndian.PutUint64(now[8:], uint64(usage.Utime.Nano()+usage.Stime.Nano()))
	binary.NativeEndian.PutUint64(now[:8], uint64(monotonic()))
	if _, err := syscall.Write(3, now[:]); err != nil {
		return err
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

// null is /dev/null, which every measured process has on all three streams.
var null uintptr

func openNull() error {
	fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	null = uintptr(fd)
	return err
}

func (p program) start(argv []string, files []uintptr, namespaces uintptr) (int, error) {
	return syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env: p.env, Files: files, Sys: &syscall.SysProcAttr{Cloneflags: namespaces},
	})
}

// wait reaps the process and returns the CPU time it has used.
func (p program) wait(pid int) (time.Duration, error) {
	var status syscall.WaitStatus
	var usage syscall.Rusage
	for {
		_, err := syscall.Wait4(pid, &status, 0, &usage)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("cannot wait for %s: %w", p.name, err)
		}
		break
	}
	switch {
	case status.Signaled():
		return 0, fmt.Errorf("%s was ended by signal %d", p.name, status.Signal())
	case status.ExitStatus() != 0:
		return 0, fmt.Errorf("%s exited with %d", p.name, status.ExitStatus())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// monotonic is the clock that processes of all namespaces share.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// interleave runs the programs in turns, A B C A B C, so that whatever else
// the machine does hits all of them alike, after warm-up rounds that do not
// count.
func interleave(warmUp, rounds int, programs ...program) ([][]sample, error) {
	samples := make([][]sample, len(programs))
	runtime.GC()
	for round := range warmUp + rounds {
		for i, p := range programs {
			s, err := p.run()
			if err != nil {
				return nil, err
			}
			if round >= warmUp {
				samples[i] = append(samples[i], s)
			}
		}
	}
	return samples, nil
}

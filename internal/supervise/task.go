package supervise

import (
	"time"

	"golang.org/x/sys/unix"
)

// taskGrace is how long a task that was asked to stop has before it is sent KILL,
// and how long its end is waited for after that.
const taskGrace = time.Second

// TaskOutcome is how a task ended.
type TaskOutcome struct {
	// Code is the exit code, 128+N when signal N ended the task.
	Code int
	// Signal ended the task; 0 if it exited.
	Signal unix.Signal
	// TimedOut tells that its limit was over, Stopped that stop was closed.
	TimedOut, Stopped bool
	Duration          time.Duration
}

// task is a process beside the agent.
type task struct {
	pid   int
	ended chan unix.WaitStatus
}

// Task runs a command that is not the agent to its end: a workspace hook, before
// the agent or after it. It is stopped, with its process group, when the limit
// (0 is none) is over or when stop is closed. What it leaves running goes on. The
// error is a *StartError.
func (s *Supervisor) Task(c Command, limit time.Duration, stop <-chan struct{}) (TaskOutcome, error) {
	started := time.Now()
	t := &task{ended: make(chan unix.WaitStatus, 1)}
	var err error
	s.do(func() {
		if t.pid, err = spawn(c, &terminal{fd: -1}); err != nil {
			err = explain(c, err)
			return
		}
		s.tasks[t.pid] = t
	})
	if err != nil {
		return TaskOutcome{}, err
	}
	var expired <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		expired = timer.C
	}
	var o TaskOutcome
	select {
	case status := <-t.ended:
		o.set(status)
	case <-expired:
		o.TimedOut = true
		o.set(s.endTask(t))
	case <-stop:
		o.Stopped = true
		o.set(s.endTask(t))
	}
	o.Duration = time.Since(started)
	return o, nil
}

func (o *TaskOutcome) set(status unix.WaitStatus) {
	o.Code = status.ExitStatus()
	if status.Signaled() {
		o.Signal = status.Signal()
		o.Code = 128 + int(o.Signal)
	}
}

// endTask asks the task's group to stop, and then kills it. A task that hangs in
// the kernel is given up.
func (s *Supervisor) endTask(t *task) unix.WaitStatus {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		s.do(func() {
			// Until it has been reaped the process id is nobody else's.
			if s.tasks[t.pid] == t {
				_ = unix.Kill(-t.pid, sig)
				_ = unix.Kill(-t.pid, unix.SIGCONT)
			}
		})
		timer := time.NewTimer(taskGrace)
		select {
		case status := <-t.ended:
			timer.Stop()
			return status
		case <-timer.C:
		}
	}
	return unix.WaitStatus(unix.SIGKILL)
}

// taskEnded tells a task that it was reaped; it is false for other processes.
func (s *Supervisor) taskEnded(pid int, status unix.WaitStatus) bool {
	t := s.tasks[pid]
	if t == nil {
		return false
	}
	delete(s.tasks, pid)
	t.ended <- status
	return true
}

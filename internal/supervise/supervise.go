// Package supervise starts the agent, passes signals on to it, reaps whatever
// ends, gives it the terminal, stops it in time and ends what it leaves behind.
// It is the only package that starts processes and waits for them.
//
// One goroutine owns all of it: every signal, every SIGCHLD, every timer and
// every request reaches it as an event, and it alone calls wait4, so that no
// exit status can be taken away by a second waiter and no process id can be
// signalled after it was reaped. It never writes a log line itself, because a
// stalled reader of stderr must not hold up a signal.
package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"agent-init/internal/privilege"
)

// Scope says who gets a signal that is passed on.
type Scope int

const (
	// Group is the agent's process group.
	Group Scope = iota
	// Child is the agent's process alone.
	Child
)

// Options are the settings of supervision.
type Options struct {
	Scope Scope
	// Rewrite maps a signal that arrives to the one that is passed on; 0 drops
	// it, and a dropped signal does not start the grace either.
	Rewrite map[unix.Signal]unix.Signal
	// StopSignals start the grace when they arrive, whatever they are rewritten to.
	StopSignals []unix.Signal
	// Grace runs from the first stop signal to the end of agent-init.
	Grace time.Duration
	// Timeout bounds the agent's run; 0 is no bound.
	Timeout time.Duration
	// Log is written to by a goroutine of its own; it may block.
	Log zerolog.Logger
}

// Command is what Start runs.
type Command struct {
	// Path is the program's file, as Lookup returns it.
	Path string
	// Argv begins with the name under which the program sees itself.
	Argv []string
	// Env is the environment; nil inherits ours.
	Env []string
	// Dir is the working directory; empty inherits ours.
	Dir string
	// Stderr is the descriptor that becomes the agent's standard error; -1
	// inherits ours.
	Stderr int
	// Stdin and Stdout are the descriptors that take the place of ours; 0 inherits.
	Stdin, Stdout int
	// Terminal is a terminal of the agent's own, which takes the place of all
	// three, but not of a Stdin that is set; nil leaves it on ours.
	Terminal *Terminal
	// Mark, an entry of Env, says that others go on when the agent has ended:
	// unless a stop signal has come, only what descends from the agent is swept.
	// Orphans are known by the mark; it should differ from agent to agent. Empty
	// sweeps all.
	Mark string
}

// Ended is a process that outlived the agent and had to be signalled.
type Ended struct {
	PID int
	// Name is the kernel's name of it (comm, at most 15 bytes).
	Name string
	// Signal ended it; 0 if it was still there when the sweep's time was over.
	Signal unix.Signal
}

// Usage is what the agent and the children it waited for have used.
type Usage struct {
	User, System time.Duration
	// MaxRSS is the peak resident memory of the largest of them, in bytes.
	MaxRSS int64
}

// Outcome is how the agent's run ended.
type Outcome struct {
	// Code is the exit code to end with: the agent's own, 128+N when signal N
	// ended it, 124 when it ran into Options.Timeout.
	Code int
	// Signal ended the agent; 0 if it exited.
	Signal unix.Signal
	// Stopped tells that a stop signal came before or during the run.
	Stopped bool
	// TimedOut tells that Options.Timeout was over.
	TimedOut bool
	// Killed tells that agent-init sent the agent KILL, because it did not stop.
	Killed bool
	Ended  []Ended
	Usage  Usage
	// Duration runs from the agent's start to its exit, without the sweep.
	Duration time.Duration
}

// codeTimedOut is what timeout(1) exits with.
const codeTimedOut = 124

// defaultGrace holds until Configure is called.
const defaultGrace = 8 * time.Second

// Supervisor watches over the process tree of agent-init.
type Supervisor struct {
	// signals wakes the loop: takeArrived has something. It is also how the
	// loop gives itself another turn.
	signals  chan struct{}
	requests chan func()
	outcomes chan Outcome
	stop     chan struct{}
	// ready is closed when the threads are made.
	ready chan struct{}
	notes notes

	// between is closed when a signal ends what is to come after a run.
	between chan struct{}

	// stopInfo guards what the loop writes and others ask for.
	stopInfo   sync.Mutex
	stopSignal unix.Signal
	stopAt     time.Time
	grace      time.Duration

	// What follows belongs to the loop.

	self    int
	state   state
	opt     Options
	pending []arrival
	// unreaped tells that a round of waiting was cut short.
	unreaped bool
	// configured tells that the stop signals are known.
	configured bool
	timer      *time.Timer
	run        run
	// ended tells that between is closed.
	ended bool
	// tasks are the processes beside the agent, by process id.
	tasks map[int]*task
}

// arrival is a signal that came before the agent.
type arrival struct {
	signal unix.Signal
	at     time.Time
}

// run is what belongs to one agent.
type run struct {
	pid      int
	terminal terminal
	// own is the agent's own terminal; nil without one.
	own     *Terminal
	started time.Time
	exited  time.Time
	// asked is when the agent was first asked to stop; the shares of the grace
	// count from there.
	asked time.Time
	// halted tells that the agent was seen stopped; suspending, that a signal
	// that suspends was passed on and none that continues since.
	halted, suspending bool
	// childless tells that wait4 knows of no child.
	childless bool
	outcome   Outcome
	sweep     sweep
	others    others
}

// Listen subscribes to every signal that can be caught, adopts orphans and
// makes this process undumpable. Call it first thing in main, and once: until
// then the Go runtime dies of a TERM, even as PID 1.
//
// What arrives before Start is kept and passed on after it.
//
// The error is that of eventfd(2), when descriptors or memory have run out.
func Listen() (*Supervisor, error) {
	limitProcs()
	wake, err := catchSignals()
	if err != nil {
		return nil, fmt.Errorf("cannot catch signals: %w", err)
	}
	s := &Supervisor{
		signals:  make(chan struct{}, 1),
		requests: make(chan func()),
		outcomes: make(chan Outcome, 1),
		stop:     make(chan struct{}),
		between:  make(chan struct{}),
		ready:    make(chan struct{}),
		notes:    newNotes(),
		tasks:    map[int]*task{},
		self:     os.Getpid(),
		opt:      Options{StopSignals: []unix.Signal{unix.SIGTERM}, Grace: defaultGrace},
		grace:    defaultGrace,
		timer:    time.NewTimer(time.Hour),
	}
	// The thread that main runs on; parkThreads does the same for the others.
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &quiet, nil)
	// Neither can fail: these options exist since Linux 3.4 and 2.4.
	if s.self != 1 {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	go s.watch(wake)
	go func() {
		// Without a descriptor to spare the threads come when they are needed.
		_ = parkThreads()
		close(s.ready)
	}()
	go s.loop()
	return s, nil
}

// watch tells the loop that signals have come.
func (s *Supervisor) watch(wake *os.File) {
	var count [8]byte
	for {
		if _, err := wake.Read(count[:]); err != nil {
			return // never, see eventfd(2)
		}
		s.again()
	}
}

// again has the loop look for signals and children.
func (s *Supervisor) again() {
	select {
	case s.signals <- struct{}{}:
	default:
	}
}

// do runs f in the loop and waits for it.
func (s *Supervisor) do(f func()) {
	done := make(chan struct{})
	s.requests <- func() {
		f()
		close(done)
	}
	<-done
}

// Configure sets the options; call it once, before Start. Only from here on is
// it known which signals stop, and those that came before are looked at again.
func (s *Supervisor) Configure(o Options) {
	s.do(func() {
		s.opt, s.configured = o, true
		s.stopInfo.Lock()
		s.grace = o.Grace
		s.stopInfo.Unlock()
		for _, a := range s.pending {
			s.noteStop(a.signal, a.at)
		}
	})
}

// StopRequested tells whether a stop signal has arrived, and which.
func (s *Supervisor) StopRequested() (sig unix.Signal, requested bool) {
	s.stopInfo.Lock()
	defer s.stopInfo.Unlock()
	return s.stopSignal, s.stopSignal != 0
}

// Stop is closed at the first stop signal, but not before Configure.
func (s *Supervisor) Stop() <-chan struct{} { return s.stop }

// Between is closed when a stop signal, INT, HUP or QUIT arrives after an agent
// has ended and before the next is started; none is started then.
func (s *Supervisor) Between() <-chan struct{} { return s.between }

// ErrEnded says that a signal has come between two agents.
var ErrEnded = errors.New("a signal has ended agent-init")

// Deadline is when the grace that a stop signal started is over and agent-init
// must be gone; zero without a stop signal. Finalizers have until an eighth of
// the grace before it.
func (s *Supervisor) Deadline() time.Time {
	s.stopInfo.Lock()
	defer s.stopInfo.Unlock()
	if s.stopSignal == 0 {
		return time.Time{}
	}
	return s.stopAt.Add(s.grace)
}

// Start starts the agent and passes on the signals that came before it. Its
// error is a *StartError, or ErrEnded. Another Start may follow when Wait has
// returned.
func (s *Supervisor) Start(c Command) (pid int, err error) {
	s.do(func() {
		if s.ended {
			err = ErrEnded
			return
		}
		if s.state != booting && s.state != done {
			err = startError(c.argv0(), CodeNotExecutable, "another agent is running", "")
			return
		}
		pid, err = s.start(c)
	})
	return pid, err
}

// argv0 is the name by which messages call the command.
func (c Command) argv0() string {
	if len(c.Argv) > 0 {
		return c.Argv[0]
	}
	return c.Path
}

func (s *Supervisor) start(c Command) (int, error) {
	r := run{terminal: findTerminal(), own: c.Terminal, started: time.Now()}
	if r.own != nil {
		// We read and write on ours, in the foreground.
		r.terminal = terminal{fd: -1}
	}
	if c.Mark != "" {
		r.others = s.findOthers(c.Mark)
	}
	pid, err := spawn(c, &r.terminal)
	// They were begun in Listen; the agent has not run an instruction yet, or
	// few, and it takes many to reach a limit.
	<-s.ready
	if err != nil {
		return 0, explain(c, err)
	}
	raiseOOMScore(pid)
	r.pid = pid
	s.run, s.state = r, running
	if s.stopSignal != 0 {
		s.askedToStop(s.stopAt)
	}
	kept := s.pending
	s.pending = nil
	for _, a := range kept {
		s.forward(a.signal)
	}
	return pid, nil
}

// spawn starts c in a process group of its own, in the foreground of the
// terminal if we are.
func spawn(c Command, t *terminal) (pid int, err error) {
	stderr := uintptr(2)
	if c.Stderr >= 0 {
		stderr = uintptr(c.Stderr)
	}
	attr := &syscall.ProcAttr{
		Dir:   c.Dir,
		Env:   c.Env,
		Files: []uintptr{uintptr(c.Stdin), uintptr(cmp.Or(c.Stdout, 1)), stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	if c.Terminal != nil {
		slave := uintptr(c.Terminal.Slave)
		attr.Files[1], attr.Files[2] = slave, slave
		if c.Stdin == 0 {
			attr.Files[0] = slave
		}
		attr.Sys = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	}
	if attr.Env == nil {
		attr.Env = syscall.Environ()
	}
	if id, ok := privilege.Lowered(); ok {
		attr.Sys.Credential = id.Credential()
	}
	resetUncaught()
	// The child starts with the mask and the user of the thread that forks; only
	// root's child can become another user's for good.
	asItself := func(f func()) { privilege.AsRoot(func() { withMask(unix.Sigset_t{}, f) }) }
	asItself(func() {
		if t.foreground() {
			attr.Sys.Foreground, attr.Sys.Ctty = true, t.fd
			if pid, err = syscall.ForkExec(c.Path, c.Argv, attr); err == nil {
				t.given = true
				return
			}
			// The terminal may have hung up in between; any other error
			// comes again.
			attr.Sys.Foreground, attr.Sys.Ctty = false, 0
		}
		pid, err = syscall.ForkExec(c.Path, c.Argv, attr)
	})
	return pid, err
}

// Sweep ends everything else, as after the last agent: as PID 1 the whole PID
// namespace. Call it when no agent runs.
func (s *Supervisor) Sweep() Outcome {
	s.do(func() {
		s.run = run{terminal: terminal{fd: -1}, exited: time.Now()}
		if s.stopSignal != 0 {
			s.run.asked = s.stopAt
		}
		s.state = sweeping
		s.onChildren()
	})
	return s.Wait()
}

// Wait returns when the agent has ended and what it left behind has been swept.
func (s *Supervisor) Wait() Outcome {
	o := <-s.outcomes
	s.notes.flush()
	return o
}

func (s *Supervisor) stops(sig unix.Signal) bool {
	if out, mapped := s.opt.Rewrite[sig]; mapped && out == 0 {
		return false
	}
	return slices.Contains(s.opt.StopSignals, sig)
}

// Package terminal gives the agent a terminal of its own, a PTY, and copies
// between it and what agent-init was started with: a terminal, pipes or files.
//
// What Ctrl-C, Ctrl-Z and line ends mean is the PTY's business alone: our own
// terminal is raw meanwhile, and hands everything on.
package terminal

import (
	"encoding/binary"
	"os"
	"sync"
	"time"

	"github.com/containerd/console"
	"golang.org/x/sys/unix"

	"agent-init/internal/asciicast"
	"agent-init/internal/relay"
	"agent-init/internal/secret"
)

// usual is the size of a terminal that nobody has given one, in cells.
var usual = console.WinSize{Width: 80, Height: 24}

// Options are what a Proxy may do besides.
type Options struct {
	// Masker hides secrets on our side; nil copies byte for byte.
	Masker *secret.Masker
	// Recorder records what is shown; may be nil. The Proxy does not close it.
	Recorder *asciicast.Recorder
	// Tee gets what is shown, unmasked, and keeps nothing of it; may be nil.
	Tee func([]byte)
	// Suspend is called when somebody has typed what suspends the agent itself.
	Suspend func()
}

// Proxy is the agent's terminal and our side of it.
type Proxy struct {
	opt    Options
	master file
	pty    console.Console
	// slave is ours until the agent has ended: an agent that closes it and opens
	// it again later does not end it.
	slave int
	agent int
	out   relay.Writer
	// wake is readable when the input is to look at state.
	wake int
	// sized has a token when the size has changed.
	sized chan struct{}
	// shown is closed when everything is shown, fed when no input is read any
	// more, ended when Close is called.
	shown, fed, ended chan struct{}

	mu    sync.Mutex
	state state
	// own is our terminal while it is raw; nil otherwise.
	own  console.Console
	size console.WinSize
	// hungUp says that the master is closed.
	hungUp bool
}

// lastWrites is how long after a Drain's deadline writing may go on.
const lastWrites = 100 * time.Millisecond

// state is where a Proxy stands.
type state int

const (
	// opened: nothing is copied yet.
	opened state = iota
	// active: both directions are copied.
	active
	// background: our terminal is somebody else's; output alone is copied.
	background
	// suspended: as background, until we are continued.
	suspended
	// closed: our terminal is as it was.
	closed
)

// file is an os.File whose descriptor can be asked for without a change of its
// mode.
type file struct {
	*os.File
	fd int
}

func (f file) Fd() uintptr { return uintptr(f.fd) }

// Open makes the agent's terminal, with the modes and the size of ours where
// there is one.
func Open() (*Proxy, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	p := &Proxy{master: file{os.NewFile(uintptr(fd), "/dev/ptmx"), fd}, slave: -1, wake: -1,
		out: relay.NewWriter(1), sized: make(chan struct{}, 1), shown: make(chan struct{}), fed: make(chan struct{}), ended: make(chan struct{})}
	if err := p.open(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Proxy) open() (err error) {
	var name string
	if p.pty, name, err = console.NewPtyFromFile(p.master); err != nil {
		return err
	}
	if p.slave, err = unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	if fd := ours(); fd >= 0 {
		if modes, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			unix.IoctlSetTermios(p.slave, unix.TCSETS, modes) // Those it has will do.
		}
	}
	p.size = measure()
	return p.pty.Resize(p.size)
}

// Slave is the descriptor for the agent; it is closed by Drain.
func (p *Proxy) Slave() int { return p.slave }

// Size is that of the agent's terminal, in cells.
func (p *Proxy) Size() (width, height int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.size.Width), int(p.size.Height)
}

// Start begins to copy, when the agent runs as the leader of the terminal's
// session. From now on our terminal is raw, until Close.
func (p *Proxy) Start(agent int, o Options) {
	p.agent, p.opt = agent, o
	p.mu.Lock()
	p.enter()
	p.mu.Unlock()
	go p.show()
	go p.feed()
	if o.Recorder != nil {
		go p.recordSizes()
	}
}

// Drain waits, when the agent has ended, until what it has shown is copied, at
// most until the deadline. It tells whether all of it was.
func (p *Proxy) Drain(deadline time.Time) bool {
	p.mu.Lock()
	p.closeSlave()
	p.mu.Unlock()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-p.shown:
		return true
	case <-timer.C:
	}
	p.out.SetDeadline(time.Now())
	p.master.SetReadDeadline(time.Unix(1, 0))
	// What is recorded may have ended, too, when it returns.
	select {
	case <-p.shown:
	case <-time.After(lastWrites):
	}
	return false
}

func (p *Proxy) closeSlave() {
	if p.slave >= 0 {
		unix.Close(p.slave)
		p.slave = -1
	}
}

// Close gives our terminal its modes back and closes the agent's. It may be
// called at any time, and again.
func (p *Proxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == closed {
		return
	}
	started := p.state != opened
	p.leave(closed)
	close(p.ended)
	p.closeSlave()
	p.hangUp()
	go func() {
		if started {
			<-p.fed
		}
		if p.wake >= 0 {
			unix.Close(p.wake)
		}
	}()
}

// Raw tells that our terminal does nothing to what is written to it.
func (p *Proxy) Raw() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own != nil
}

// Resize gives the agent's terminal the size of ours, and tells whether that has
// changed.
func (p *Proxy) Resize() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resize()
}

func (p *Proxy) resize() bool {
	size, known := ownSize()
	if !known || size == p.size || p.hungUp || p.pty.Resize(size) != nil {
		return false
	}
	p.size = size
	select {
	case p.sized <- struct{}{}:
	default:
	}
	return true
}

// Suspend gives our terminal to whoever resumes us.
func (p *Proxy) Suspend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == active {
		p.leave(suspended)
	}
}

// Resume takes our terminal again, if we are in its foreground.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == background || p.state == suspended {
		p.enter()
		p.resize()
	}
}

// enter makes our terminal raw, if it is there and ours to use.
func (p *Proxy) enter() {
	p.state = background
	if isTerminal(0) {
		if !inForeground() {
			return
		}
		if own, err := console.ConsoleFromFile(file{os.Stdin, 0}); err == nil && own.SetRaw() == nil {
			p.own = own
			clearOutputModes()
		}
	}
	p.state = active
	p.wakeInput()
}

// clearOutputModes completes what console.SetRaw does: the PTY has ended its
// lines as terminals want them.
func clearOutputModes() {
	if modes, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		modes.Oflag &^= unix.OPOST
		unix.IoctlSetTermios(0, unix.TCSETS, modes)
	}
}

func (p *Proxy) leave(to state) {
	if p.own != nil {
		p.own.Reset()
		p.own = nil
	}
	p.state = to
	p.wakeInput()
}

func (p *Proxy) wakeInput() {
	if p.wake < 0 {
		return
	}
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(p.wake, one[:])
}

// recordSizes keeps the goroutine that supervises from waiting for a disk.
func (p *Proxy) recordSizes() {
	for {
		select {
		case <-p.sized:
			width, height := p.Size()
			p.opt.Recorder.Resize(width, height)
		case <-p.ended:
			return
		}
	}
}

// hangUp closes the master: the agent gets HUP, and its terminal is of no use.
func (p *Proxy) hangUp() {
	p.hungUp = true
	p.master.Close()
}

// show copies what the agent writes. The master reports EIO when nobody has the
// terminal open any more, after all that was written.
func (p *Proxy) show() {
	defer close(p.shown)
	var mask secret.Stream
	buf, held := make([]byte, 64<<10), 0
	for {
		n, err := p.master.Read(buf[held:])
		if n > 0 && p.opt.Tee != nil {
			p.opt.Tee(buf[held : held+n])
		}
		if n > 0 && p.opt.Recorder != nil {
			p.opt.Recorder.Output(buf[held : held+n])
		}
		raw := buf[:held+max(n, 0)]
		var masked []byte
		masked, held = mask.Mask(raw[:0], p.opt.Masker, raw, err != nil)
		if _, failed := p.out.Write(masked); failed != nil {
			// Nobody looks: the agent is told by a hang-up.
			p.mu.Lock()
			p.hangUp()
			p.mu.Unlock()
			return
		}
		copy(buf, raw[len(raw)-held:])
		if held == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
		if err != nil {
			return
		}
	}
}

package terminal

import (
	"bytes"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// feed copies what is typed, or what standard input holds, to the agent's
// terminal. It polls instead of using Go's poller, because that needs
// O_NONBLOCK, which whoever shares our standard input would get too.
func (p *Proxy) feed() {
	defer close(p.fed)
	typed := isTerminal(0)
	buf := make([]byte, 16<<10)
	midline := false
	for p.awaitInput() {
		n, err := unix.Read(0, buf)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
		case n > 0:
			if _, err := p.master.Write(buf[:n]); err != nil {
				return
			}
			midline = buf[n-1] != '\n'
			if p.suspends(buf[:n]) {
				p.opt.Suspend()
			}
		case typed:
			return // It has hung up, and HUP says so.
		default:
			p.endInput(midline)
			return
		}
	}
}

// awaitInput waits until there is something to read that is ours to read; false
// after Close.
func (p *Proxy) awaitInput() bool {
	for {
		p.mu.Lock()
		state := p.state
		p.mu.Unlock()
		wait := -1
		fds := []unix.PollFd{{Fd: int32(p.wake), Events: unix.POLLIN}, {Fd: 0, Events: unix.POLLIN}}
		switch state {
		case closed:
			return false
		case active:
		case background:
			fds, wait = fds[:1], foregroundPause
		default:
			fds = fds[:1]
		}
		n, err := unix.Poll(fds, wait)
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return false
		}
		if n == 0 && inForeground() {
			p.Resume()
		}
		if fds[0].Revents != 0 {
			var count [8]byte
			unix.Read(p.wake, count[:])
			continue
		}
		if len(fds) > 1 && fds[1].Revents != 0 {
			return true
		}
	}
}

// foregroundPause, in milliseconds, is how often somebody in the background looks
// whether a shell has put it into the foreground, of which it is not told.
const foregroundPause = 100

// suspends tells whether keys hold the one that suspends, and that the agent
// itself is meant and not a job of its. An agent that takes keys as they are
// suspends itself, or not: it is watched for a while.
func (p *Proxy) suspends(keys []byte) bool {
	modes, group, err := p.modes()
	if err != nil || group != p.agent || modes.Cc[unix.VSUSP] == 0 || bytes.IndexByte(keys, modes.Cc[unix.VSUSP]) < 0 {
		return false
	}
	if modes.Lflag&unix.ISIG != 0 {
		return true
	}
	go func() {
		if p.makesWay() {
			p.opt.Suspend()
		}
	}()
	return false
}

// makesWay tells that the agent prepares its terminal for somebody else, as full
// screen programs do before they send themselves TSTP.
func (p *Proxy) makesWay() bool {
	pause := firstPause
	for end := time.Now().Add(suspendTime); time.Now().Before(end) && p.sleep(&pause); {
		modes, group, err := p.modes()
		if err != nil || group != p.agent {
			return false
		}
		if modes.Lflag&(unix.ISIG|unix.ICANON) == unix.ISIG|unix.ICANON {
			return p.sleep(&pause)
		}
	}
	return false
}

// suspendTime is how long a program may take from the key to its suspension.
const suspendTime = time.Second

// modes are those of the agent's terminal, and the process group in its
// foreground, 0 without one.
func (p *Proxy) modes() (modes *unix.Termios, group int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hungUp {
		return nil, 0, os.ErrClosed
	}
	if group, err = unix.IoctlGetInt(p.master.fd, unix.TIOCGPGRP); err != nil {
		group = 0
	}
	modes, err = unix.IoctlGetTermios(p.master.fd, unix.TCGETS)
	return modes, group, err
}

// endInput types the character that ends a terminal's input. It waits for what
// was typed before to be read, because a program that changes the modes makes
// another character of one that waits; if that happens all the same, it types it
// again.
func (p *Proxy) endInput(midline bool) {
	for pause := firstPause; p.unread(); {
		if !p.sleep(&pause) {
			return
		}
	}
	canonical, key := p.endKey()
	keys := []byte{key}
	if canonical && midline {
		// The first one ends the line.
		keys = append(keys, key)
	}
	if _, err := p.master.Write(keys); err != nil || !canonical {
		return
	}
	for pause := firstPause; p.sleep(&pause); {
		canonical, now := p.endKey()
		if !canonical {
			p.master.Write([]byte{now})
			return
		}
		if now != key {
			// It may have become another before it was typed: it begins a line then.
			key = now
			p.master.Write([]byte{key, key})
			continue
		}
		if !p.unread() {
			return
		}
	}
}

// Nothing tells when a terminal's input has been read.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 200 * time.Millisecond
)

// sleep pauses, each time a little longer; false after Close.
func (p *Proxy) sleep(pause *time.Duration) bool {
	timer := time.NewTimer(*pause)
	defer timer.Stop()
	*pause = min(2**pause, lastPause)
	select {
	case <-timer.C:
		return true
	case <-p.ended:
		return false
	}
}

// endKey is the character, and tells whether it means the end to the terminal
// itself; else it is up to the agent.
func (p *Proxy) endKey() (canonical bool, key byte) {
	const ctrlD = 4
	modes, _, err := p.modes()
	if err != nil || modes.Cc[unix.VEOF] == 0 {
		return false, ctrlD
	}
	return modes.Lflag&unix.ICANON != 0, modes.Cc[unix.VEOF]
}

// unread tells that the agent has not read all of its input.
func (p *Proxy) unread() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slave < 0 {
		return false
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.slave), Events: unix.POLLIN}}, 0)
	return n > 0 && err == nil
}

package supervise

import "golang.org/x/sys/unix"

// terminal is our controlling terminal, if a standard descriptor is one.
type terminal struct {
	// fd is that descriptor; -1 without one.
	fd int
	// group is our own process group.
	group int
	modes unix.Termios
	// given tells that the agent's group has the foreground from us, so that it
	// is ours to take back. A shell takes it itself when the job stops.
	given bool
}

// findTerminal also saves the modes.
func findTerminal() terminal {
	for fd := range 3 {
		// Only a controlling terminal has a foreground group for us.
		if _, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil {
			continue
		}
		modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			continue
		}
		return terminal{fd: fd, group: unix.Getpgrp(), modes: *modes}
	}
	return terminal{fd: -1}
}

// foreground tells whether our group has the terminal.
func (t *terminal) foreground() bool {
	if t.fd < 0 {
		return false
	}
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == t.group
}

// giveAgain gives the terminal to the agent's group when a shell has put our
// job into the foreground.
func (t *terminal) giveAgain(agent int) {
	if t.fd < 0 || t.given {
		return
	}
	group, err := unix.Getpgid(agent)
	if err != nil {
		return
	}
	if t.foreground() {
		t.given = t.setForeground(group)
		return
	}
	// Whoever continued us did not touch the terminal.
	current, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	t.given = err == nil && current == group
}

// takeBack restores modes and foreground as they were before the agent.
func (t *terminal) takeBack() {
	if !t.given {
		return
	}
	t.given = false
	withMask(quiet, func() {
		// TCSETS and not TCSETSW: output that Ctrl-S holds back would hold us too.
		_ = unix.IoctlSetTermios(t.fd, unix.TCSETS, &t.modes)
	})
	// 0 is a group outside of our PID namespace, whose shell takes the terminal itself.
	if t.group > 0 {
		t.setForeground(t.group)
	}
}

// setForeground blocks TTOU, which the kernel would raise for a change that
// comes from a background group.
func (t *terminal) setForeground(group int) bool {
	var err error
	withMask(quiet, func() { err = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) })
	return err == nil
}

package main

import (
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/textfile"
)

// collect takes what the taps hand over from now on.
func (s *session) collect() {
	if s.listener == nil || s.collected != nil {
		return
	}
	s.collected = make(chan struct{})
	go func() {
		defer close(s.collected)
		limit := maxTapped()
		warned := false
		warn := func(why string) {
			if !warned {
				s.log.Warn().Msgf("a command of the agent runs without its events being collected: %s", why)
			}
			warned = true
		}
		for {
			// Taps wait meanwhile, and with them the hooks.
			for s.stderr.Streams() >= limit && !s.listener.Stopped() {
				time.Sleep(tappedPause)
			}
			m, err := s.listener.Receive()
			switch {
			case err != nil:
				return
			case m.Pipe != nil:
				s.stderr.Tap(m.Pipe, m.Stderr)
			case m.File != nil:
				if err := s.stderr.Follow(m.File, m.From, m.Process); err != nil {
					warn(textfile.Reason(err))
				}
			default:
				warn(m.Failure)
			}
		}
	}()
}

// stopCollecting returns when everything that was handed over is being read.
func (s *session) stopCollecting() {
	if s.collected == nil {
		return
	}
	s.listener.Stop()
	<-s.collected
	s.collected = nil
}

// resumeCollecting takes back stopCollecting.
func (s *session) resumeCollecting() {
	if s.listener != nil {
		s.listener.Resume()
		s.collect()
	}
}

// closeTap has commands from now on run as without a tap.
func (s *session) closeTap() {
	if s.listener != nil {
		s.listener.Close()
	}
}

const (
	// tappedFiles is how many descriptors a tapped command takes here.
	tappedFiles = 4
	// tappedPause is how long agent-init waits where too many are taken.
	tappedPause = 20 * time.Millisecond
)

// maxTapped is how many commands can be tapped at once: half of the descriptors
// are theirs.
func maxTapped() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		limit.Cur = 1024
	}
	return max(1, int(min(limit.Cur, 1<<20))/2/tappedFiles)
}

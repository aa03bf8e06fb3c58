package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/asciicast"
	"agent-init/internal/config"
	"agent-init/internal/problem"
	"agent-init/internal/relay"
	"agent-init/internal/supervise"
	"agent-init/internal/terminal"
	"agent-init/internal/textfile"
)

// proxies tells whether the agent gets a terminal of its own. Its output can be
// masked and go to a terminal all the same in no other way.
func proxies(cfg *config.Config) bool {
	return cfg.TTY == "proxy" || cfg.Record != "" || cfg.MaskStdout.On && isTerminal(1)
}

// checkRecord finds a recording that cannot be made. It makes none.
func checkRecord(cfg *config.Config) (found problem.List) {
	if cfg.Record == "" {
		return nil
	}
	if err := asciicast.Check(absolute(cfg.Record)); err != nil {
		p := recordProblem(cfg.Record, err)
		p.Severity = problem.Error
		found.Add(p)
	}
	return found
}

func recordProblem(path string, err error) problem.Problem {
	p := problem.Problem{Severity: problem.Warning, What: "cannot record the session", File: path, Why: textfile.Reason(err), Hint: "name a file in a directory that agent-init may write to"}
	if os.IsExist(err) {
		p.Why, p.Hint = "the file exists", "remove it, or name another in AGENTIC_RECORD"
	}
	return p
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// withoutRecord leaves a recording that the workspace's environment asks for to
// the session that booted it; only a flag asks for one of our own.
func withoutRecord(cfg *config.Config) {
	if cfg.Record == os.Getenv(config.Prefix+"RECORD") {
		cfg.Record = ""
	}
}

// streams are what stands between the agent and our standard streams.
type streams struct {
	*session
	proxy *terminal.Proxy
	// stdout is nil where the agent writes to ours.
	stdout *relay.Stdout
	stderr *os.File
	// ends are the agent's, to be closed when it has been started.
	ends []int
}

// openStreams makes what the settings want, and has c use it.
func (s *session) openStreams(c *supervise.Command) (*streams, error) {
	c.Stderr = -1
	a := &streams{session: s}
	if proxies(s.cfg) {
		return a, a.openTerminal(c)
	}
	if s.cfg.MaskStdout.On || s.runLog != nil {
		r, w, err := pipe("agent stdout")
		if err != nil {
			return a, err
		}
		c.Stdout, a.ends = w, append(a.ends, w)
		if a.stdout, err = relay.NewStdout(r, 1); err != nil {
			return a, err
		}
	}
	if !s.terminal || s.runLog != nil {
		r, w, err := pipe("agent stderr")
		if err != nil {
			return a, err
		}
		a.stderr, c.Stderr, a.ends = r, w, append(a.ends, w)
		c.Env = markRelayed(c.Env, w)
	}
	return a, nil
}

func (a *streams) openTerminal(c *supervise.Command) (err error) {
	if a.proxy, err = terminal.Open(); err != nil {
		return err
	}
	width, height := a.proxy.Size()
	if a.recorder != nil {
		a.recorder.Resize(width, height)
	} else if a.cfg.Record != "" {
		path := absolute(a.cfg.Record)
		a.recorder, err = asciicast.Create(path, asciicast.Options{Width: width, Height: height, Masker: a.masker, Failed: func(err error) {
			p := recordProblem(path, err)
			p.What, p.Hint = "cannot write the recording", "make room; the session goes on, and what is shown meanwhile is missing there"
			go logProblems(a.log, problem.List{p})
		}})
		if err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(c.Env, func(entry string) bool { return strings.HasPrefix(entry, "TERM=") }) {
		// What Docker sets for a terminal.
		c.Env = append(slices.Clone(c.Env), "TERM=xterm")
	}
	c.Terminal = &supervise.Terminal{Slave: a.proxy.Slave(), Resize: a.proxy.Resize, Suspend: a.proxy.Suspend, Resume: a.proxy.Resume}
	return nil
}

// start begins to copy, when the agent has been started.
func (a *streams) start(agent int) {
	for _, fd := range a.ends {
		unix.Close(fd)
	}
	if a.stderr != nil {
		a.session.stderr.CopyTee(a.stderr, a.runLog.stderr())
	}
	if a.stdout != nil {
		a.stdout.Tee(a.runLog.stdout())
		masker := a.masker
		if !a.cfg.MaskStdout.On {
			masker = nil
		}
		a.stdout.Copy(masker)
	}
	if a.proxy == nil {
		return
	}
	o := terminal.Options{Recorder: a.recorder, Tee: a.runLog.stdout(), Suspend: a.super.Suspend}
	if a.cfg.MaskStdout.On {
		o.Masker = a.masker
	}
	// Shells restore a terminal's modes after a death by signal: ABRT, then.
	debug.SetTraceback("crash")
	a.proxy.Start(agent, o)
	a.screen.Store(a.proxy)
}

// abandon closes everything when there is no agent.
func (a *streams) abandon() {
	for _, fd := range a.ends {
		unix.Close(fd)
	}
	if a.stderr != nil {
		a.stderr.Close()
	}
	a.close()
}

// drain delivers what the agent has written, when it has ended.
func (a *streams) drain(deadline time.Time) {
	whole := a.stdout == nil || a.stdout.Drain(deadline)
	if a.proxy != nil && !a.proxy.Drain(deadline) {
		whole = false
	}
	a.close()
	if !whole {
		a.log.Warn().Msg("nobody read what the agent has written last; it is lost")
	}
}

// close gives our terminal its modes back.
func (a *streams) close() {
	if a.proxy != nil {
		a.screen.Store(nil)
		a.proxy.Close()
	}
}

// closeRecord ends the recording.
func (s *session) closeRecord() {
	if s.recorder == nil {
		return
	}
	if lost := s.recorder.Close(); lost > 0 {
		s.log.Warn().Str("file", s.cfg.Record).Int64("bytes", lost).Msg("the recording lacks a part of what was shown")
	}
	s.recorder = nil
}

// lineEnds writes lines as a terminal wants them that is raw at the moment.
type lineEnds struct{ *session }

func (l lineEnds) Write(lines []byte) (int, error) {
	if p := l.screen.Load(); p == nil || !p.Raw() {
		return l.stderr.Write(lines)
	}
	if _, err := l.stderr.Write(bytes.ReplaceAll(lines, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(lines), nil
}

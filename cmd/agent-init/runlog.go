package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/boot"
	"agent-init/internal/problem"
	"agent-init/internal/runlog"
	"agent-init/internal/textfile"
)

// runLog is the log of one run with its streams; nil logs nothing.
type runLog struct {
	log      *runlog.Log
	out, err *runlog.Stream
}

// stdout is what takes the agent's stdout.
func (l *runLog) stdout() func([]byte) {
	if l == nil {
		return nil
	}
	return l.out.Add
}

// stderr is what takes the agent's stderr.
func (l *runLog) stderr() func([]byte) {
	if l == nil {
		return nil
	}
	return l.err.Add
}

// openRunLog begins the log of a run, if one is wanted. The agent can do without.
func (s *session) openRunLog(plan *boot.Plan) {
	if s.cfg.ResultsDir == "" {
		return
	}
	dir, now := absolute(s.cfg.ResultsDir), time.Now()
	log, err := runlog.Create(dir, now, plan.LogHeader(max(s.cycle, 1), now), plan.Masker, func(err error) {
		// It is called while the agent's output waits.
		go s.logFailed("cannot write the log of the run", dir, err)
	})
	if err != nil {
		s.logFailed("cannot make the log of the run", dir, err)
		return
	}
	s.runLog = &runLog{log, log.Stream(), log.Stream()}
}

func (s *session) logFailed(what, path string, err error) {
	logProblems(s.log, problem.List{{Severity: problem.Warning, What: what, File: path, Why: textfile.Reason(err), Hint: "make room; the agent goes on, and what it says meanwhile is missing there"}})
}

// closeRunLog ends the log of the run.
func (s *session) closeRunLog() {
	if s.runLog == nil {
		return
	}
	s.runLog.out.Finish()
	s.runLog.err.Finish()
	if lost := s.runLog.log.Close(); lost > 0 {
		s.log.Warn().Str("file", s.runLog.log.Path).Int64("bytes", lost).Msg("the log of the run lacks a part of what the agent has said")
	}
	s.runLog = nil
}

// memoryFile returns a file in memory that holds data and that nobody can change.
func memoryFile(name string, data []byte) (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL {
		// Before Linux 6.3.
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	for done := 0; done < len(data); {
		n, err := unix.Pwrite(fd, data[done:], int64(done))
		if err != nil && err != unix.EINTR {
			unix.Close(fd)
			return -1, os.NewSyscallError("write", err)
		}
		done += max(n, 0)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("fcntl", err)
	}
	return fd, nil
}

package main

import (
	"agent-init/internal/boot"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/supervise"
)

// execCommand runs a command in a workspace that has booted.
func execCommand(args []string) int {
	s, code := newSession(args)
	if s == nil {
		return code
	}
	dir, holder := s.live()
	if holder == 0 {
		return s.refuse(problem.List{{What: "cannot join the workspace", File: dir.Path, Why: "no agent-init runs here",
			Hint: "start the container with agent-init as its ENTRYPOINT, or name its AGENTIC_RUNTIME_DIR"}})
	}
	return s.join(dir)
}

// join runs the command as the agent of the live workspace runs.
func (s *session) join(dir rundir.Dir) int {
	if s.found.Refuses() {
		return s.refuse(s.found)
	}
	launch, bad := boot.ReadLaunch(dir)
	if bad != nil {
		return s.refuse(problem.List{*bad})
	}
	p := launch.Prepare(s.command, environment(), s.cfg.Agent)
	s.stderr.SetMasker(p.Masker)
	logProblems(s.log, append(s.found, p.Problems...))
	path, err := supervise.Lookup(p.Argv[0], pathOf(p.Env))
	if err != nil {
		s.log.Error().Msg(err.Error())
		return s.finish(supervise.StartErrorCode(err))
	}
	return s.supervise(supervise.Command{Path: path, Argv: p.Argv, Env: p.Env})
}

package main

import (
	"os"

	"agent-init/internal/boot"
	"agent-init/internal/problem"
	"agent-init/internal/supervise"
)

// execCommand runs a command in a workspace that has booted.
func execCommand(args []string) int {
	s, code := newSession(args)
	if s == nil {
		return code
	}
	if s.holder() == 0 {
		return s.refuse(problem.List{{What: "cannot join the workspace", File: s.runtime.Path, Why: "no agent-init runs here",
			Hint: "start the container with agent-init as its ENTRYPOINT, or name its AGENTIC_RUNTIME_DIR"}})
	}
	return s.join()
}

// join runs the command as the agent of the live workspace runs.
func (s *session) join() int {
	if s.found.Refuses() {
		return s.refuse(s.found)
	}
	launch, bad := boot.ReadLaunch(s.runtime)
	if bad != nil {
		return s.refuse(problem.List{*bad})
	}
	p := launch.Prepare(s.command, os.Environ(), s.cfg.Agent)
	s.stderr.SetMasker(p.Masker)
	if !relayed() {
		s.openJournal()
	}
	logProblems(s.log, append(s.found, p.Problems...))
	path, err := supervise.Lookup(p.Argv[0], pathOf(p.Env))
	if err != nil {
		s.log.Error().Msg(err.Error())
		return s.finish(supervise.StartErrorCode(err))
	}
	return s.supervise(supervise.Command{Path: path, Argv: p.Argv, Env: p.Env})
}

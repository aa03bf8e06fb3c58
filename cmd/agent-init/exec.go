package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"agent-init/internal/boot"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/supervise"
	"agent-init/internal/tap"
	"agent-init/internal/textfile"
)

// execCommand runs a command in a workspace that has booted.
func execCommand(args []string) int {
	s, code := newSession(args)
	if s == nil {
		return code
	}
	if !awaitBoot(s.runtime) {
		return s.refuse(problem.List{noWorkspace(s.runtime)})
	}
	return s.join()
}

// A command that comes while the workspace boots waits for so long, and looks so
// often.
const (
	bootPatience = 10 * time.Second
	bootPause    = 5 * time.Millisecond
)

// awaitBoot tells whether a workspace lives here. A container is there for docker
// exec before its boot has begun, and a moment before it is over.
func awaitBoot(dir rundir.Dir) bool {
	if dir.Path == "" {
		return false
	}
	for end := time.Now().Add(bootPatience); ; time.Sleep(bootPause) {
		_, live := dir.Live()
		booted := live && boot.Launchable(dir)
		elsewhere := !live && (!firstIs("agent-init") || rundir.HasChild(1))
		if booted || elsewhere || time.Now().After(end) {
			return live
		}
	}
}

// noWorkspace says why there is none to join.
func noWorkspace(dir rundir.Dir) problem.Problem {
	p := problem.Problem{What: "cannot join the workspace", File: dir.Path, Why: "no agent-init runs here",
		Hint: "start the container with agent-init as its ENTRYPOINT, or name its AGENTIC_RUNTIME_DIR"}
	if other, uid, found := rundir.Foreign(); found && !dir.Explicit {
		p.File, p.Why = other.Path, fmt.Sprintf("it is the workspace of uid %d, and this is uid %d", uid, os.Geteuid())
		p.Hint = fmt.Sprintf("run the command as that user, as with docker exec -u %d", uid)
	}
	return p
}

// join runs the command as the agent of the live workspace runs.
func (s *session) join() int {
	withoutRecord(s.cfg)
	s.found.Add(checkRecord(s.cfg)...)
	if s.found.Refuses() {
		return s.refuse(s.found)
	}
	launch, bad := boot.ReadLaunch(s.runtime)
	if bad != nil {
		return s.refuse(problem.List{*bad})
	}
	s.found.Add(fetchValues(s.runtime, &launch)...)
	tapDir := s.openOwnTap(launch)
	p := launch.Prepare(s.command, os.Environ(), s.cfg.Agent, s.runtime, tapDir)
	s.setMasker(p.Masker)
	s.openSinks()
	logProblems(s.log, append(s.found, p.Problems...))
	if p.File != nil {
		if _, err := p.File.Write(); err != nil {
			return s.refuse(problem.List{{What: "cannot write", File: p.File.Path, Why: textfile.Reason(err), Hint: "make room for it"}})
		}
	}
	path, err := s.lookup(p.Argv[0], p.Env)
	if err != nil {
		s.log.Error().Msg(err.Error())
		return s.finish(supervise.StartErrorCode(err))
	}
	code, _, _ := s.supervise(supervise.Command{Path: path, Argv: p.Argv, Env: p.Env})
	return s.finish(code)
}

// openOwnTap brings the events of this session's hooks here instead of to the
// agent-init that booted the workspace. Without it they go there.
func (s *session) openOwnTap(launch boot.Launch) string {
	if launch.Tap == "" {
		return ""
	}
	dir := tap.Dir(s.runtime.Path, strconv.Itoa(os.Getpid()))
	listener, err := boot.OpenTap(dir)
	if err != nil {
		s.log.Warn().Str("file", dir).Msgf("cannot collect the events of this session's hooks here; they go to the workspace's agent-init: %s", textfile.Reason(err))
		return ""
	}
	s.listener = listener
	return dir
}

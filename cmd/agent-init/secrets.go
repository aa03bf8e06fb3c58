package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/boot"
	"agent-init/internal/config"
	"agent-init/internal/control"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/secret"
	"agent-init/internal/textfile"
)

// exitNotTaken is the exit code where secrets were not handed over.
const exitNotTaken = 1

// awaitSecrets waits for "agent-init secrets put", if the configuration says so,
// before anything is looked up. Where boot does not start it returns the exit code.
func (s *session) awaitSecrets() (code int, ended bool) {
	limit := s.cfg.SecretsWait.Duration
	if limit == 0 {
		return 0, false
	}
	if s.runtime.Path == "" && !s.found.Refuses() {
		s.found.Add(problem.Problem{What: "cannot wait for secrets", Why: "there is no runtime directory for the socket",
			Hint: "let AGENTIC_RUNTIME_DIR name a directory that can be written"})
	}
	if s.found.Refuses() {
		return s.refuse(s.found), true
	}
	lock, err := s.runtime.Claim()
	if err != nil {
		return s.refuse(append(s.found, boot.NotClaimed(s.runtime, err))), true
	}
	s.lock = lock
	if err := s.newKeeper(waiting); err != nil {
		var p problem.Problem
		errors.As(err, &p)
		return s.refuse(append(s.found, p)), true
	}
	s.log.Info().Str("limit", limit.String()).Msg("waiting for agent-init secrets put")
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.keeper.handed:
	case <-s.super.Stop():
	case <-timer.C:
	}
	s.put = s.keeper.giveUp()
	switch {
	case s.stopRequested():
		return s.bootFailed(&boot.Plan{Problems: s.found}, boot.ErrInterrupted), true
	case s.put == nil:
		return s.refuse(s.notHanded(limit)), true
	}
	s.log.Info().Strs("names", slices.Sorted(maps.Keys(s.put))).Msg("secrets were handed over")
	return 0, false
}

// notHanded is what is wrong where the time is over, the required variables that
// are missing among it.
func (s *session) notHanded(limit time.Duration) problem.List {
	plan := boot.New(s.cfg, s.runtime, s.found, s.command, nil)
	why := fmt.Sprintf("nobody handed them over within %v", limit)
	if names := plan.Missing(); len(names) > 0 {
		why += "; required are " + strings.Join(names, ", ")
	}
	return append(plan.Problems, problem.Problem{What: "cannot start without secrets", Why: why,
		Hint: "run agent-init secrets put in the container, or give it more time with AGENTIC_SECRETS_WAIT"})
}

// secretsCommand hands secrets to an agent-init that waits for them.
func secretsCommand(args []string) int {
	if len(args) == 0 || args[0] != "put" {
		return usageError("write 'secrets put', with a JSON object of names and values on stdin")
	}
	cfg, _ := config.Environment()
	rest, err := cfg.ParseFlags(args[1:])
	if err != nil {
		return usageError("%v", err)
	}
	if len(rest) > 0 {
		// It may be a secret.
		return usageError("secrets put takes no argument: names and values come on stdin")
	}
	// Others of the same user must not read them here either.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	data, err := io.ReadAll(io.LimitReader(os.Stdin, secret.PutLimit+1))
	if err != nil {
		return notTaken(problem.Problem{What: "cannot read stdin", Why: textfile.Reason(err)})
	}
	values, bad := secret.ParsePut(data)
	if bad != nil {
		return notTaken(*bad)
	}
	if bad := handOver(cfg, values); bad != nil {
		return notTaken(*bad)
	}
	return exitOK
}

func notTaken(p problem.Problem) int {
	fmt.Fprintf(os.Stderr, "agent-init: %s\n", p.Error())
	return exitNotTaken
}

// handOver waits for somebody who waits for secrets: the container may just have
// been started.
func handOver(cfg *config.Config, values map[string]string) *problem.Problem {
	request := []string{askPut}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		request = append(request, name, values[name])
	}
	paths := controlPaths(cfg.RuntimeDir)
	for end := time.Now().Add(bootPatience); ; time.Sleep(bootPause) {
		booted := false
		for _, path := range paths {
			_, err := ask(path, request...)
			if err == nil {
				return nil
			}
			if !errors.Is(err, control.ErrAbsent) {
				return &problem.Problem{What: "cannot hand secrets to agent-init at", File: path, Why: textfile.Reason(err)}
			}
			dir := rundir.Dir{Path: filepath.Dir(path)}
			_, live := dir.Live()
			booted = booted || live && boot.Launchable(dir)
		}
		if booted || time.Now().After(end) {
			return &problem.Problem{What: "cannot hand over secrets", Why: "no agent-init waits for them here",
				Hint: "start the container with AGENTIC_SECRETS_WAIT, and run this as its user or as root"}
		}
	}
}

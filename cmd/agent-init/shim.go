package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"agent-init/internal/boot"
	"agent-init/internal/config"
	"agent-init/internal/privilege"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/supervise"
	"agent-init/internal/tap"
	"agent-init/internal/textfile"
)

// shim stands before the agent CLI and becomes it, with the flags and the
// environment of the workspace if it is in one.
func shim(argv []string) int {
	env, first := tap.Enter(os.Environ())
	cfg, _ := config.Environment()
	var found problem.List
	if workAs(cfg, &found); len(found) > 0 {
		fmt.Fprintf(os.Stderr, "agent-init: %s\n", found[0].Error())
		return exitRefused
	}
	env = withHome(env)
	dir, _ := rundir.Choose(cfg.RuntimeDir)
	cli := tap.FindCLI(os.Getenv("PATH"), dir.Join(rundir.Bin))
	if !first || cli.Path == "" {
		fmt.Fprintf(os.Stderr, "%s: cannot find the agent CLI: agent-init stands in its place, and there is none at %s or further on PATH\n", argv[0], tap.Hidden)
		return supervise.CodeNotFound
	}
	if awaitBoot(dir) {
		p, bad := joinWorkspace(dir, argv, env)
		if bad != nil {
			warnBare(*bad)
		} else {
			argv, env = p.Argv, p.Env
		}
	} else if _, _, found := rundir.Foreign(); found && !dir.Explicit {
		warnBare(noWorkspace(dir))
	}
	if id, ok := privilege.Lowered(); ok {
		if err := privilege.Drop(id); err != nil {
			fmt.Fprintf(os.Stderr, "agent-init: cannot start %s as uid %d: %v\n", problem.Path(cli.Path), id.UID, err)
			return exitRefused
		}
	}
	err := tap.Become(cli.Path, argv, env)
	fmt.Fprintf(os.Stderr, "agent-init: %v\n", err)
	return supervise.StartErrorCode(err)
}

// withHome gives an environment the home of the user that this process works as.
func withHome(env []string) []string {
	id, ok := privilege.Lowered()
	if !ok {
		return env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, "HOME=") })
	return append(env, "HOME="+id.Home)
}

// warnBare says that the CLI gets nothing of the workspace, and why.
func warnBare(p problem.Problem) {
	fmt.Fprintf(os.Stderr, "agent-init: %s; %s starts without plugins, MCP servers and events of the workspace\n", p.Error(), tap.ShimName)
}

// joinWorkspace prepares the CLI as the agent of a live workspace.
func joinWorkspace(dir rundir.Dir, argv, env []string) (boot.Prepared, *problem.Problem) {
	launch, bad := boot.ReadLaunch(dir)
	if bad != nil {
		return boot.Prepared{}, bad
	}
	found := fetchValues(dir, &launch)
	p := launch.Prepare(argv, env, "claude", dir, "")
	for _, w := range append(found, p.Problems...) {
		fmt.Fprintf(os.Stderr, "agent-init: %s\n", w.Error())
	}
	if p.File != nil {
		if _, err := p.File.Write(); err != nil {
			return p, &problem.Problem{What: "cannot write", File: p.File.Path, Why: textfile.Reason(err)}
		}
	}
	return p, nil
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"agent-init/internal/config"
	"agent-init/internal/control"
	"agent-init/internal/gitsetup"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// exitNoCredential is the exit code where a question of git's cannot be answered;
// git goes on to whatever else it has.
const exitNoCredential = 1

// gitCredentialCommand is a credential helper of git's (gitcredentials(7), CUSTOM
// HELPERS): it asks the agent-init of the workspace.
func gitCredentialCommand(args []string) int {
	set := flag.NewFlagSet("agent-init", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	socket := set.String("control", "", "")
	if err := set.Parse(args); err != nil {
		return usageError("%v", err)
	}
	if set.NArg() != 1 {
		return usageError("git-credential takes one argument: get, store or erase")
	}
	if set.Arg(0) != "get" {
		// What agent-init knows comes from elsewhere; and git may add operations.
		return exitOK
	}
	data, err := io.ReadAll(io.LimitReader(os.Stdin, gitsetup.QueryLimit+1))
	if err != nil {
		return noCredential("", err)
	}
	q, err := gitsetup.ParseQuery(data)
	if err != nil {
		return noCredential("", err)
	}
	if q.Protocol != "https" || q.Host == "" {
		return exitOK
	}
	answer, err := askForCredential(*socket, q)
	if err != nil {
		return noCredential(q.Host, err)
	}
	if len(answer) != 2 {
		return exitOK
	}
	return printed("username=" + answer[0] + "\npassword=" + answer[1] + "\n")
}

// askForCredential asks at the given socket, or wherever one is.
func askForCredential(socket string, q gitsetup.Query) (answer []string, err error) {
	paths := []string{socket}
	if socket == "" {
		cfg, _ := config.Environment()
		paths = controlPaths(cfg.RuntimeDir)
	}
	for _, path := range paths {
		answer, err = ask(path, askCredential, q.Protocol, q.Host, q.User)
		if !errors.Is(err, control.ErrAbsent) {
			break
		}
	}
	return answer, err
}

func noCredential(host string, err error) int {
	what := "cannot read git's question"
	if host != "" {
		what = "no git credential for " + host
	}
	fmt.Fprintf(os.Stderr, "agent-init: %s\n", problem.Problem{What: what, Why: textfile.Reason(err)}.Text())
	return exitNoCredential
}

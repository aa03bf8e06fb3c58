package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/hook"
)

// emitCommand is a hook handler: the hook's input on stdin, one event on stderr.
// It observes and never decides: nothing goes to stdout, and the exit code is 0
// whatever happens.
func emitCommand(args []string) int {
	if len(args) > 0 {
		return usageError("emit takes no arguments, not %q", strings.Join(args, " "))
	}
	// The code of a panic, 2, would make the agent CLI block the tool call.
	defer func() {
		if fault := recover(); fault != nil {
			fmt.Fprintf(os.Stderr, "agent-init: cannot emit an event: %v\n", fault)
			os.Exit(exitOK)
		}
	}()
	// The runtime would end the process when nobody reads stderr.
	signal.Ignore(unix.SIGPIPE)
	input, bad := hook.Read(os.Stdin)
	if bad != nil {
		fmt.Fprintf(os.Stderr, "agent-init: %s\n", bad.Error())
		return exitOK
	}
	if e := input.Event(time.Now()); e != nil {
		// One write, so that lines of several processes do not mix.
		os.Stderr.Write(hook.AppendLine(nil, e))
	}
	return exitOK
}

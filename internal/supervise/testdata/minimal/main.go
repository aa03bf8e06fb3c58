// Command minimal supervises its arguments and nothing else, to measure what
// supervision costs.
package main

import (
	"os"

	"agent-init/internal/supervise"

	"golang.org/x/sys/unix"
)

func main() {
	s, err := supervise.Listen()
	if err != nil {
		os.Exit(70)
	}
	s.Configure(supervise.Options{StopSignals: []unix.Signal{unix.SIGTERM}, Grace: 8e9})
	file, err := supervise.Lookup(os.Args[1], os.Getenv("PATH"))
	if err == nil {
		_, err = s.Start(supervise.Command{Path: file, Argv: os.Args[1:], Stderr: -1})
	}
	if err != nil {
		os.Exit(supervise.StartErrorCode(err))
	}
	os.Exit(s.Wait().Code)
}

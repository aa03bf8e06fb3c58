package main

import (
	"flag"
	"io"
	"os"

	"agent-init/internal/boot"
	"agent-init/internal/config"
	"agent-init/internal/problem"
	"agent-init/internal/supervise"
)

// planCommand prints what run would do, and exits as it would where it
// refuses.
func planCommand(args []string) int {
	cfg, found := config.Environment()
	format, rest, err := parseFormat(cfg, args)
	if err != nil {
		return usageError("%v", err)
	}
	_, bad := supervision(cfg, newLogger(io.Discard, cfg.LogLevel, false))
	found.Add(bad...)
	found.Add(checkSinks(cfg)...)
	workAs(cfg, &found)
	dir := chooseRuntime(cfg, &found)
	if _, live := dir.Live(); live {
		withoutRecord(cfg)
	}
	found.Add(checkRecord(cfg)...)
	found.Add(checkCycles(cfg)...)
	p := boot.New(cfg, dir, found, rest, nil)
	code := exitOK
	if len(rest) > 0 {
		if _, err := supervise.Lookup(p.Argv[0], pathOf(p.Env)); err != nil {
			p.Problems.Add(problem.Problem{What: err.Error()})
			code = supervise.StartErrorCode(err)
		}
	}
	if code == exitOK && p.Problems.Refuses() || len(p.Problems.Only(problem.Error)) > 1 {
		code = exitRefused
	}
	text := p.Text()
	if format == "json" {
		text = string(p.JSON())
	}
	if written := printed(text); written != exitOK {
		return written
	}
	return code
}

// reposCommand prints the repo map, and what is wrong with it on stderr.
func reposCommand(args []string) int {
	cfg, found := config.Environment()
	format, rest, err := parseFormat(cfg, args)
	if err == nil && len(rest) > 0 {
		return usageError("repos takes no argument, but got %q", rest[0])
	}
	if err != nil {
		return usageError("%v", err)
	}
	workAs(cfg, &found)
	p := boot.New(cfg, chooseRuntime(cfg, &found), found, nil, nil)
	logProblems(newLogger(os.Stderr, cfg.LogLevel, isTerminal(2)), p.RepoProblems())
	text := p.Repos.Text()
	if format == "json" {
		text = string(p.Repos.AppendJSON(nil))
	}
	if written := printed(text); written != exitOK {
		return written
	}
	if p.RepoProblems().Refuses() {
		return exitRefused
	}
	return exitOK
}

// parseFormat parses the settings' flags and --format.
func parseFormat(cfg *config.Config, args []string) (format string, rest []string, err error) {
	set := flag.NewFlagSet("agent-init", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	cfg.Register(set)
	set.Func("format", "text or json", func(s string) error {
		if s != "text" && s != "json" {
			return errFormat
		}
		format = s
		return nil
	})
	err = set.Parse(args)
	return format, set.Args(), err
}

type formatError struct{}

func (formatError) Error() string { return "use text or json" }

var errFormat = formatError{}

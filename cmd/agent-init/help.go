package main

import (
	"fmt"
	"strings"

	"agent-init/internal/config"
)

const usage = `agent-init prepares a workspace, starts a coding agent in it and supervises it.

Usage:
  agent-init [run] [FLAGS] [--] CMD [ARG...]   boot, then run CMD as its init
  agent-init exec [FLAGS] [--] CMD [ARG...]    run CMD in a workspace that has booted
  agent-init plan [--format text|json] [FLAGS] [--] [CMD [ARG...]]
                                               show what run would do; touch nothing
  agent-init repos [--format text|json]        show the mounted repos
  agent-init emit                              hook handler: a hook's input on stdin, its event on stderr
  agent-init status [--format text|json]       show the state of agent-init and the agent
  agent-init health                            exit 0 while the agent runs, else 1
  agent-init events [--follow] [--type T]... [--since D] [--format text|json]
                                               show the workspace's events
  agent-init secrets put                       hand over secrets, a JSON object on stdin, to a
                                               boot that waits for them
  agent-init git-credential get|store|erase    git's credential helper
  agent-init version                           print the version
  agent-init help [config]                     print this, or every setting

As the ENTRYPOINT of an image, 'run' is left out: docker run IMAGE claude -p hi.
Flags end at CMD. A command with the name of a subcommand goes after '--'.

Exit codes:
  the agent's own; 128+N when signal N ended it
  64   the command line is wrong
  70   a fault of agent-init itself
  78   boot refused; each reason is on a line of its own on stderr
  124  TIMEOUT is over
  126  CMD cannot be executed
  127  CMD was not found
  --success-code CODE reports CODE as 0.

Variables used most (agent-init help config prints all of them):
  AGENTIC_PLUGINS_DIR     baked-in plugins, /opt/agentic/plugins
  AGENTIC_PLUGINS         names of those to load, separated by colons; all
  AGENTIC_REPOS_DIR       mounted repos, /repos
  AGENTIC_MCP_BASELINE    baseline MCP config, /opt/agentic/mcp.json
  AGENTIC_WORKSPACE_DIR   the workspace, /workspace
  AGENTIC_SECRETS_DIR     files named after variables, /run/secrets
  AGENTIC_GIT_CREDENTIALS store, helper or none
  AGENTIC_WITHHOLD_ENV    variables that the agent does not get
  AGENTIC_STOP_GRACE      time from the stop signal to the end, 8s
  AGENTIC_LOG_LEVEL       debug, info, warn or error
`

func helpCommand(args []string) int {
	switch {
	case len(args) == 0:
		return printed(usage)
	case len(args) == 1 && args[0] == "config":
		return printed(configHelp())
	}
	return usageError("there is no help on %q; 'help config' prints all settings", strings.Join(args, " "))
}

func configHelp() string {
	var b strings.Builder
	b.WriteString("Every setting is a variable; a flag of 'run' overrides it. An empty variable counts as unset.\n")
	for _, r := range config.Rows() {
		fmt.Fprintf(&b, "\n%s", r.Variable)
		if r.Flag != "" {
			fmt.Fprintf(&b, "  (%s)", r.Flag)
		}
		fmt.Fprintf(&b, "\n    %s\n    type: %s", r.Meaning, r.Type)
		if r.Default != "" {
			fmt.Fprintf(&b, "; default: %s", r.Default)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Package config holds every setting of agent-init, once: its variable, its
// flag, its default and its meaning. Help texts and the configuration document
// are made from this struct.
package config

import (
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/kelseyhightower/envconfig"

	"agent-init/internal/problem"
)

// DefaultSecretsDir is where container engines mount secrets.
const DefaultSecretsDir = "/run/secrets"

// Prefix begins the name of every variable that is a setting.
const Prefix = "AGENTIC_"

// Config is the settings of one run. An empty variable counts as unset. Tags:
// envconfig, the variable (whole, because envconfig would fall back to the bare
// name of one with a prefix); default; flag, the
// name of the flag that overrides the variable; legacy, a variable honoured
// while ours is unset; oneof, the values allowed; sep, the separators of a
// list; desc, the meaning.
type Config struct {
	PluginsDir              string   `envconfig:"AGENTIC_PLUGINS_DIR" default:"/opt/agentic/plugins" flag:"plugins-dir" desc:"directory of baked-in plugins"`
	Plugins                 List     `envconfig:"AGENTIC_PLUGINS" sep:":" flag:"plugins" desc:"names of the plugins to load; all when unset"`
	PluginErrors            string   `envconfig:"AGENTIC_PLUGIN_ERRORS" default:"fail" oneof:"fail skip" flag:"plugin-errors" desc:"refuse to start on a plugin or repo that cannot be read, or leave it out and say so"`
	ReposDir                string   `envconfig:"AGENTIC_REPOS_DIR" default:"/repos" flag:"repos-dir" legacy:"CLAUDEOPS_REPOS_DIR" desc:"directory of mounted repos"`
	MCPBaseline             string   `envconfig:"AGENTIC_MCP_BASELINE" default:"/opt/agentic/mcp.json" flag:"mcp-baseline" desc:"baseline MCP config; may be absent"`
	MCPConfig               string   `envconfig:"AGENTIC_MCP_CONFIG" flag:"mcp-config" desc:"where the merged MCP config is written; mcp.json in the runtime directory when unset"`
	MCPCollision            string   `envconfig:"AGENTIC_MCP_COLLISION" default:"override" oneof:"override namespace error" flag:"mcp-collision" desc:"what happens when two files define one MCP server: the later overrides, repo servers are renamed REPO_NAME, or boot refuses"`
	MCPAllow                List     `envconfig:"AGENTIC_MCP_ALLOW" sep:"," flag:"mcp-allow" desc:"globs of the repo MCP servers to take; all when unset"`
	MCPDeny                 List     `envconfig:"AGENTIC_MCP_DENY" sep:"," flag:"mcp-deny" desc:"globs of the repo MCP servers to leave out"`
	MCPStrict               Bool     `envconfig:"AGENTIC_MCP_STRICT" default:"0" flag:"mcp-strict" desc:"give the agent the merged MCP servers and no others"`
	Agent                   string   `envconfig:"AGENTIC_AGENT" default:"auto" oneof:"auto claude none" flag:"agent" desc:"how CMD takes plugins and MCP files; auto goes by its base name"`
	WorkspaceDir            string   `envconfig:"AGENTIC_WORKSPACE_DIR" default:"/workspace" flag:"workspace-dir" desc:"gets artifacts/input, artifacts/output and repos"`
	WorkspaceID             string   `envconfig:"AGENTIC_WORKSPACE_ID" legacy:"WORKSPACE_ID" desc:"name of the workspace; the session id unless that is set"`
	WorkspaceContext        string   `envconfig:"AGENTIC_WORKSPACE_CONTEXT" flag:"workspace-context" desc:"file in /etc/agentic/workspace that is copied to CLAUDE.md in the workspace; CLAUDE.md, which may be absent, when unset"`
	WorkspaceContextReplace Bool     `envconfig:"AGENTIC_WORKSPACE_CONTEXT_REPLACE" default:"0" flag:"workspace-context-replace" desc:"let what is copied from /etc/agentic/workspace replace a different CLAUDE.md or agent that is there already"`
	WorkspacePlugins        List     `envconfig:"AGENTIC_WORKSPACE_PLUGINS" sep:":" flag:"workspace-plugins" desc:"directories in /etc/agentic/workspace/plugins to load; all when unset"`
	WorkspaceAgents         List     `envconfig:"AGENTIC_WORKSPACE_AGENTS" sep:":" flag:"workspace-agents" desc:"agents in /etc/agentic/workspace/agents to copy, without .md; all when unset"`
	ClaudeSetup             Bool     `envconfig:"AGENTIC_CLAUDE_SETUP" default:"0" flag:"claude-setup" desc:"create .claude.json and settings.json of Claude Code where they are absent, so that an interactive first run asks nothing"`
	SecretsDir              string   `envconfig:"AGENTIC_SECRETS_DIR" default:"/run/secrets" flag:"secrets-dir" desc:"directory of secret files named after variables"`
	SecretsWait             Duration `envconfig:"AGENTIC_SECRETS_WAIT" default:"0" flag:"secrets-wait" desc:"wait so long for 'agent-init secrets put' before boot; 0 waits for nothing"`
	GitCredentials          string   `envconfig:"AGENTIC_GIT_CREDENTIALS" default:"store" oneof:"store helper none" flag:"git-credentials" desc:"write tokens to git's credential store, have git ask agent-init each time, or leave credentials alone"`
	GitHosts                string   `envconfig:"AGENTIC_GIT_HOSTS" flag:"git-hosts" desc:"more hosts with credentials, as HOST=USER:VARIABLE, comma-separated"`
	GitHooksDir             string   `envconfig:"AGENTIC_GIT_HOOKS_DIR" default:"/opt/agentic/git-hooks" flag:"git-hooks-dir" desc:"directory of git hooks that run in every repo, before the plugins' and the repo's own"`
	WithholdEnv             List     `envconfig:"AGENTIC_WITHHOLD_ENV" sep:",: " flag:"withhold-env" desc:"names of variables to remove from the agent's environment"`
	SessionID               string   `envconfig:"AGENTIC_SESSION_ID" flag:"session-id" desc:"session id in agent-init's own events; WORKSPACE_ID or a UUID when unset"`
	AgentWorkspaceDir       string   `envconfig:"AGENTIC_AGENT_WORKSPACE_DIR" legacy:"AGENT_WORKSPACE_DIR" desc:"agentWorkspaceDir for workspace hooks; WORKSPACE_DIR when unset"`
	AgentID                 string   `envconfig:"AGENTIC_AGENT_ID" legacy:"AGENT_ID" desc:"agentId for workspace hooks; CMD's base name when unset"`
	SessionKey              string   `envconfig:"AGENTIC_SESSION_KEY" legacy:"SESSION_KEY" desc:"sessionKey for workspace hooks; the session id when unset"`
	ScopeKey                string   `envconfig:"AGENTIC_SCOPE_KEY" legacy:"SCOPE_KEY" desc:"scopeKey for workspace hooks; SESSION_KEY when unset"`
	SignalScope             string   `envconfig:"AGENTIC_SIGNAL_SCOPE" default:"group" oneof:"group child" flag:"signal-scope" desc:"pass signals on to the agent's process group or to the agent alone"`
	Rewrite                 List     `envconfig:"AGENTIC_REWRITE" sep:", " flag:"rewrite" desc:"signals to replace when they are passed on, as 15:2 or TERM:INT; 15:0 drops"`
	StopSignals             List     `envconfig:"AGENTIC_STOP_SIGNALS" sep:",: " default:"TERM" flag:"stop-signals" desc:"signals that start the grace"`
	StopGrace               Duration `envconfig:"AGENTIC_STOP_GRACE" default:"8s" flag:"stop-grace" desc:"time from the first stop signal to agent-init's own exit"`
	FinalizeBudget          Duration `envconfig:"AGENTIC_FINALIZE_BUDGET" default:"2s" flag:"finalize-budget" desc:"time of the finalizers after a stop signal"`
	FinalizeBudgetExit      Duration `envconfig:"AGENTIC_FINALIZE_BUDGET_EXIT" default:"120s" flag:"finalize-budget-exit" desc:"time of the finalizers after an exit of the agent's own"`
	SuccessCodes            Codes    `envconfig:"AGENTIC_SUCCESS_CODES" flag:"success-code" desc:"exit codes of the agent to report as 0"`
	Timeout                 Duration `envconfig:"AGENTIC_TIMEOUT" default:"0" flag:"timeout" desc:"bounds a run of the agent (exit 124); 0 is no bound"`
	Interval                Duration `envconfig:"AGENTIC_INTERVAL" default:"0" flag:"interval" legacy:"CLAUDEOPS_INTERVAL" desc:"cycle mode: time from the end of a run of the agent to the next boot and run, with up to 10 % more; 0 runs it once"`
	MaxRuns                 Count    `envconfig:"AGENTIC_MAX_RUNS" default:"0" flag:"max-runs" desc:"number of runs after which cycle mode ends, with the last run's exit code; 0 is no bound"`
	PromptFile              string   `envconfig:"AGENTIC_PROMPT_FILE" flag:"prompt-file" legacy:"CLAUDEOPS_PROMPT" desc:"file that the agent gets on stdin, read afresh for each run"`
	ResultsDir              string   `envconfig:"AGENTIC_RESULTS_DIR" flag:"results-dir" legacy:"CLAUDEOPS_RESULTS_DIR" desc:"gets a log of each run: the agent's stdout and stderr, masked"`
	User                    string   `envconfig:"AGENTIC_USER" flag:"user" desc:"user to work and to run everything as, by name or uid, optionally with a group after a colon; PID 1 itself stays root"`
	TTY                     string   `envconfig:"AGENTIC_TTY" default:"inherit" oneof:"inherit proxy" flag:"tty" desc:"the agent inherits agent-init's terminal, or gets one of its own between which and agent-init's own streams everything is copied"`
	Record                  string   `envconfig:"AGENTIC_RECORD" flag:"record" desc:"file, not there yet, to which what the agent's terminal shows is recorded, masked (asciicast v2); implies --tty proxy. A session within the workspace heeds the flag alone"`
	MaskStdout              Bool     `envconfig:"AGENTIC_MASK_STDOUT" default:"0" flag:"mask-stdout" desc:"mask secrets in the agent's stdout too; where that is a terminal, implies --tty proxy"`
	RuntimeDir              string   `envconfig:"AGENTIC_RUNTIME_DIR" flag:"runtime-dir" desc:"where boot keeps its own files; /run/agentic, else /tmp/.agentic-UID when unset"`
	Events                  Sinks    `envconfig:"AGENTIC_EVENTS" default:"auto" flag:"events" desc:"where events go besides the journal: auto (stderr unless that is a terminal), stderr, file:PATH (appended to), unix:PATH (a stream socket on which somebody listens), or none; separated by commas"`
	EventsOverflow          string   `envconfig:"AGENTIC_EVENTS_OVERFLOW" default:"block" oneof:"block drop" flag:"events-overflow" desc:"what happens to events of a slow sink when memory and disk are full: their writers wait, or they are dropped and counted"`
	LogLevel                string   `envconfig:"AGENTIC_LOG_LEVEL" default:"info" oneof:"trace debug info warn error" flag:"log-level" desc:"level of agent-init's own log on stderr"`

	explicit map[string]bool
}

// exported are variables that agent-init itself sets for the agent.
var exported = []string{"PLUGIN_FLAGS", "REPO_MAP", "RELAY", "SHELL_PREFIX", "SHIM", "FINALIZE_BUDGET_S", "CYCLE"}

// Explicit tells whether a setting, named as in "REPOS_DIR", was given by a
// variable or a flag.
func (c *Config) Explicit(name string) bool { return c.explicit[name] }

// field is one setting with its place in a Config.
type field struct {
	name  string // REPOS_DIR
	value reflect.Value
	tag   reflect.StructTag
}

func (c *Config) fields() []field {
	v := reflect.ValueOf(c).Elem()
	var out []field
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if name, ok := strings.CutPrefix(f.Tag.Get("envconfig"), Prefix); ok {
			out = append(out, field{name: name, value: v.Field(i), tag: f.Tag})
		}
	}
	return out
}

// Environment reads the settings from the process's environment. It never
// stops at the first finding.
func Environment() (*Config, problem.List) {
	c := &Config{explicit: map[string]bool{}}
	var found problem.List
	if err := envconfig.Process("", c); err != nil {
		// Every field is text or a decoder that keeps its error for check.
		found.Add(problem.Problem{What: "cannot read the configuration", Why: err.Error()})
	}
	fields := c.fields()
	for _, f := range fields {
		key := Prefix + f.name
		legacy := f.tag.Get("legacy")
		switch {
		case os.Getenv(key) != "":
			c.explicit[f.name] = true
			f.split()
		case legacy != "" && os.Getenv(legacy) != "":
			key = legacy
			c.explicit[f.name] = true
			f.set(os.Getenv(legacy))
		default:
			f.set(f.tag.Get("default"))
		}
		if why, allowed := f.check(); why != "" {
			found.Add(problem.Problem{What: "cannot use " + key, Why: why, Hint: allowed})
		}
	}
	found.Add(unknown(fields, os.Environ())...)
	return c, found
}

// unknown warns about variables that look like a mistyped setting.
func unknown(fields []field, environ []string) (found problem.List) {
	known := slices.Clone(exported)
	for _, f := range fields {
		known = append(known, f.name)
	}
	for _, entry := range environ {
		key, _, _ := strings.Cut(entry, "=")
		name, ours := strings.CutPrefix(key, Prefix)
		if !ours {
			continue
		}
		if slices.Contains(known, name) {
			continue
		}
		slices.Sort(known)
		for _, k := range known {
			if oneEdit(name, k) {
				found.Add(problem.Problem{Severity: problem.Warning, What: "unknown variable " + key, Why: "it has no effect", Hint: "did you mean " + Prefix + k + "?"})
				break
			}
		}
	}
	return found
}

// oneEdit tells whether a becomes b by one insertion, deletion, substitution
// or exchange of neighbours.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return i < len(a) && (a[i+1:] == b[i+1:] ||
			i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:])
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}

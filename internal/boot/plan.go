// Package boot turns settings, environment and files into a Plan, and a Plan
// into a prepared workspace. A Plan is a value: it holds everything that boot
// will write and run and every problem found. Nothing but Apply touches the
// disk.
package boot

import (
	"maps"
	"os"
	"path/filepath"
	"time"

	"agent-init/internal/agent"
	"agent-init/internal/atomicfile"
	"agent-init/internal/config"
	"agent-init/internal/githook"
	"agent-init/internal/gitsetup"
	"agent-init/internal/injection"
	"agent-init/internal/mcp"
	"agent-init/internal/plugin"
	"agent-init/internal/problem"
	"agent-init/internal/repo"
	"agent-init/internal/rundir"
	"agent-init/internal/secret"
	"agent-init/internal/tap"
)

// Plan is what boot found and decided.
type Plan struct {
	Config *config.Config
	// Command is the command as it was given, Argv as the agent gets it.
	Command, Argv []string
	Agent         agent.Kind
	// Flags hand plugins and MCP servers to Claude Code, whatever Agent is.
	Flags   []string
	Plugins []plugin.Plugin
	// Views are what Claude Code loads in place of some of Plugins.
	Views []plugin.View
	// Injection is what the operator has mounted.
	Injection injection.Injection
	// Copies are the files that boot puts among those of the user.
	Copies []Copy
	// Requirements are the variables that plugins declare, in their order.
	Requirements []Requirement
	Repos        repo.Map
	MCP          mcp.Result
	// MCPPath is where the merged config goes; empty when it goes nowhere.
	MCPPath string
	Git     gitsetup.Plan
	// GitHooks run in every repository, in this order, before its own.
	GitHooks []githook.Hook
	Runtime  rundir.Dir
	// CLI is the agent CLI that the shim starts.
	CLI tap.CLI
	// Tap is the directory of the tap that collects the events of the agent's
	// hooks; empty where there is none. NoTap says why they are not collected.
	Tap, NoTap string
	// Directories are to be made below the workspace.
	Directories []string
	// Files are to be written, in this order, those of Git before them.
	Files []atomicfile.File
	// Env is the agent's whole environment.
	Env []string
	// Masker hides every secret that the plan knows.
	Masker   *secret.Masker
	Steps    []Step
	Problems problem.List
	// Session is the session id in agent-init's own events.
	Session string
	// NewWorkspace tells that the workspace was absent or empty.
	NewWorkspace bool
	// HookRuns are the workspace hooks that have run.
	HookRuns []HookRun
	// Prompt is what the agent gets on stdin; nil where it gets ours.
	Prompt []byte

	// put are the secrets that were handed over.
	put      map[string]string
	environ  *environ
	secrets  *secrets
	lock     *rundir.Lock
	listener *tap.Listener
	// tapFile is a settings file of the user's with the tap in it; may be nil.
	tapFile *atomicfile.File
	// shim tells that boot makes the shim.
	shim bool
	// again tells that the agent has run before.
	again bool
	// copied is what boot has put at the places of Copies.
	copied map[string][]byte
}

// Requirement is a variable that a plugin declares, and whether it is set.
type Requirement struct {
	plugin.Requirement
	Plugin string
	Set    bool
	// Origin says where the value comes from: environment, file, default.
	Origin string
}

// Step is one part of boot and how long it took.
type Step struct {
	Name     string
	Duration time.Duration
	// Found are the problems that the step found.
	Found problem.List
}

// New gathers everything, in the order of the contract, and goes on after
// every problem. The runtime directory, what was found before and the secrets that
// were handed over are given; nil where none have been yet.
func New(cfg *config.Config, dir rundir.Dir, found problem.List, command []string, put map[string]string) *Plan {
	p := &Plan{Config: cfg, Runtime: dir, Command: command, Problems: found, put: put}
	p.gather()
	return p
}

// Again is the plan for the agent's next run: everything is read afresh. What is
// wrong with a plugin, a repo or an MCP config leaves that out and is a warning;
// other errors refuse the run.
func (p *Plan) Again() *Plan {
	next := &Plan{Config: p.Config, Runtime: p.Runtime, Command: p.Command, Session: p.Session, put: p.put,
		again: true, copied: maps.Clone(p.copied), Masker: p.Masker, lock: p.lock, listener: p.listener}
	next.gather()
	return next
}

func (p *Plan) gather() {
	if p.copied == nil {
		p.copied = map[string][]byte{}
	}
	p.environ = newEnviron(os.Environ())
	p.step("injection", p.readInjection)
	p.step("plugins", p.scanPlugins)
	p.step("secrets", p.findSecrets)
	p.step("directories", p.planDirectories)
	p.step("copies", p.planCopies)
	p.step("repos", p.scanRepos)
	p.step("mcp", p.mergeMCP)
	p.step("git hooks", p.findGitHooks)
	p.step("git", p.planGit)
	p.step("agent home", p.planHome)
	p.step("agent", p.planAgent)
	p.step("prompt", p.readPrompt)
	p.step("results", p.checkResults)
}

func (p *Plan) step(name string, do func()) {
	start, before := time.Now(), len(p.Problems)
	do()
	if p.again && spared[name] {
		for i := before; i < len(p.Problems); i++ {
			p.Problems[i].Severity = problem.Warning
		}
	}
	p.Steps = append(p.Steps, Step{name, time.Since(start), p.Problems[before:]})
}

// spared are the steps whose bad inputs cost no later run of the agent.
var spared = map[string]bool{"injection": true, "plugins": true, "copies": true, "repos": true, "mcp": true, "git hooks": true, "agent home": true}

func (p *Plan) scanPlugins() {
	dir := absolute(p.Config.PluginsDir)
	var found problem.List
	p.Plugins, found = plugin.Scan(dir, plugin.Options{Only: p.Config.Plugins, Skip: p.skips(), Injected: p.Injection.Plugins})
	p.Problems.Add(found...)
	p.warnAbsent("PLUGINS_DIR", dir, "no plugin is loaded")
}

func (p *Plan) skips() bool { return p.again || p.Config.PluginErrors == "skip" }

// warnAbsent speaks up when a directory that the user named is not there; the
// defaults may be absent.
func (p *Plan) warnAbsent(setting, dir, effect string) {
	if !p.Config.Explicit(setting) {
		return
	}
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		p.Problems.Add(problem.Problem{Severity: problem.Warning, What: config.Prefix + setting, File: dir, Why: "it does not exist; " + effect})
	}
}

func (p *Plan) planDirectories() {
	ws := absolute(p.Config.WorkspaceDir)
	p.NewWorkspace = !p.again && isNew(ws)
	for _, name := range []string{"artifacts/input", "artifacts/output", "repos"} {
		p.Directories = append(p.Directories, filepath.Join(ws, name))
	}
	if info, err := os.Stat(ws); err == nil && !info.IsDir() {
		p.Problems.Add(problem.Problem{What: "cannot use workspace", File: ws, Why: "it is a file, not a directory", Hint: "let AGENTIC_WORKSPACE_DIR name a directory"})
	}
}

func (p *Plan) scanRepos() {
	dir := absolute(p.Config.ReposDir)
	var found problem.List
	p.Repos, found = repo.Scan(dir, repo.Options{Skip: p.skips()})
	p.Problems.Add(found...)
	p.warnAbsent("REPOS_DIR", dir, "there are no repos")
}

// absolute makes a path that the agent can use from any directory.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}

// RepoProblems are the findings about repos and their MCP configs.
func (p *Plan) RepoProblems() (found problem.List) {
	for _, s := range p.Steps {
		if s.Name == "repos" || s.Name == "mcp" {
			found.Add(s.Found...)
		}
	}
	return found
}

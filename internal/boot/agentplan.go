package boot

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent-init/internal/agent"
	"agent-init/internal/atomicfile"
	"agent-init/internal/gitsetup"
	"agent-init/internal/mcp"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/tap"
	"agent-init/internal/textfile"
)

// planGit puts together what git needs: the repos whose owner may be another,
// and the credentials in the order in which git is to try them.
func (p *Plan) planGit() {
	mode, helper := gitsetup.Store, ""
	switch p.Config.GitCredentials {
	case "none":
		mode = gitsetup.None
	case "helper":
		mode, helper = gitsetup.Helper, p.gitHelper()
	}
	p.Git = gitsetup.New(gitsetup.Input{
		Env:         p.environ.lookup,
		Home:        p.environ.get("HOME"),
		RuntimeDir:  p.Runtime.Path,
		SafeDirs:    p.safeDirectories(),
		HooksPath:   p.hooksPath(),
		Credentials: mode,
		Helper:      helper,
		Hosts:       p.GitHosts(),
	})
	p.Problems.Add(p.Git.Problems...)
	p.reportOtherHooks()
	p.setAll(p.Git.Env)
}

// gitHelper is what git starts to ask this agent-init.
func (p *Plan) gitHelper() string {
	self, err := os.Executable()
	switch {
	case err != nil:
		p.Problems.Add(problem.Problem{What: "cannot be git's credential helper", Why: textfile.Reason(err), Hint: "set AGENTIC_GIT_CREDENTIALS=store or none"})
	case p.Runtime.Path == "":
		p.Problems.Add(problem.Problem{What: "cannot be git's credential helper", Why: "there is no runtime directory for the socket",
			Hint: "let AGENTIC_RUNTIME_DIR name a directory that can be written, or set AGENTIC_GIT_CREDENTIALS=none"})
	}
	return gitsetup.HelperCommand(self, "git-credential", "--control="+p.Runtime.Join(rundir.Control))
}

// GitHosts are github.com and those that the configuration names, with their
// tokens.
func (p *Plan) GitHosts() []gitsetup.Host {
	github := gitsetup.Host{Name: "github.com", User: "x-access-token", Variable: "GITHUB_TOKEN"}
	if p.environ.get("GITHUB_TOKEN") == "" {
		github.Variable = "GH_TOKEN"
	}
	hosts := []gitsetup.Host{github}
	for _, h := range p.secrets.hosts {
		// A host that the user configures replaces the one built in.
		hosts = slices.DeleteFunc(hosts, func(b gitsetup.Host) bool { return b.Name == h.Name && b == github })
		hosts = append(hosts, h)
	}
	for i := range hosts {
		hosts[i].Token = p.environ.get(hosts[i].Variable)
	}
	return hosts
}

// safeDirectories are the mounted repos, the workspace and the repos in it.
func (p *Plan) safeDirectories() (dirs []string) {
	for _, r := range p.Repos.Repos {
		dirs = append(dirs, r.Path)
	}
	ws := absolute(p.Config.WorkspaceDir)
	dirs = append(dirs, ws)
	entries, _ := os.ReadDir(filepath.Join(ws, "repos"))
	for _, e := range entries {
		if path := filepath.Join(ws, "repos", e.Name()); isDir(path) {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// planAgent decides the agent's arguments and environment.
func (p *Plan) planAgent() {
	if len(p.Command) > 0 {
		p.Agent = agent.Choose(p.Config.Agent, p.Command[0])
	}
	p.planShim()
	p.planTap()
	p.Problems.Add(p.planViews(p.tapExec())...)
	p.offer()
	if p.Runtime.Path != "" {
		p.environ.set("AGENTIC_REPO_MAP", p.Runtime.Join(rundir.Repos))
		p.Files = append(p.Files, p.runtimeFile(rundir.Repos, p.Repos.AppendJSON(nil)))
	}
	if p.Agent == agent.None {
		// An agent that knows no plugins can still run their programs.
		p.environ.appendPath(p.binDirs())
	}
	if p.Agent == agent.Claude {
		p.Problems.Add(mcp.Managed("/", p.Config.MCPStrict.On)...)
	}
	p.Env = p.environ.without(p.Config.WithholdEnv)
}

// offer makes the arguments and variables that hand the CLI what boot has for
// it. Apply calls it again where there is less than was planned.
func (p *Plan) offer() {
	offer := agent.Offer{MCPStrict: p.Config.MCPStrict.On}
	for _, pl := range p.Plugins {
		offer.PluginDirs = append(offer.PluginDirs, p.loadedFrom(pl))
	}
	if len(p.MCP.Servers) > 0 {
		offer.MCPConfig = p.MCPPath
	}
	p.Flags = agent.Claude.Flags(offer)
	p.environ.set("AGENTIC_PLUGIN_FLAGS", agent.Quote(p.Flags))
	if p.Tap != "" {
		p.environ.setTap(p.Runtime.Path, p.Tap, p.sessionEnd())
	} else {
		p.environ.unsetTap(p.Runtime.Path)
	}
	p.Argv = p.Command
	if p.Agent == agent.Claude {
		p.Argv = agent.Insert(p.Command, p.Flags)
		p.planSettings()
	}
	p.Env = p.environ.without(p.Config.WithholdEnv)
}

// planSettings has the CLI's settings name the tap.
func (p *Plan) planSettings() {
	var settings agent.Settings
	var found problem.List
	p.Argv, p.tapFile, settings, found = p.environ.tapSettings(p.Argv, p.Runtime.Path)
	p.Problems.Add(found...)
	switch {
	case settings.Managed:
		p.NoTap = "managed settings set " + tap.PrefixVariable
	case settings.HooksOff:
		p.NoTap = "settings switch hooks off"
	}
}

// binDirs are the directories of programs that plugins bring.
func (p *Plan) binDirs() (dirs []string) {
	for _, pl := range p.Plugins {
		if len(pl.Components.Bin) > 0 {
			dirs = append(dirs, filepath.Join(pl.Path, "bin"))
		}
	}
	return dirs
}

func (p *Plan) setAll(env []string) {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		p.environ.set(name, value)
	}
}

// runtimeFile is a file that lives as long as the container.
func (p *Plan) runtimeFile(name string, data []byte) atomicfile.File {
	return atomicfile.File{Path: p.Runtime.Join(name), Data: data, Mode: 0o600, DirMode: 0o700}
}

package boot

import (
	"os"
	"path/filepath"

	"agent-init/internal/event"
	"agent-init/internal/githook"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/textfile"
)

// findGitHooks collects the git hooks of the image and of its plugins.
func (p *Plan) findGitHooks() {
	dir := absolute(p.Config.GitHooksDir)
	p.addGitHooks(dir, "")
	p.warnAbsent("GIT_HOOKS_DIR", dir, "only plugins bring git hooks")
	for _, pl := range p.Plugins {
		p.addGitHooks(filepath.Join(pl.Path, "hooks", "git"), pl.Name)
	}
	if len(p.GitHooks) > 0 && p.Runtime.Path == "" {
		p.Problems.Add(problem.Problem{Severity: problem.Warning, What: "git hooks of the image and its plugins do not run", Why: "there is no runtime directory to put them together in",
			Hint: "mount a tmpfs on /tmp or /run, or set AGENTIC_RUNTIME_DIR"})
	}
}

func (p *Plan) addGitHooks(dir, plugin string) {
	hooks, found := githook.Find(dir, plugin)
	if p.skips() {
		found = found.Downgraded()
	}
	p.Problems.Add(found...)
	p.GitHooks = append(p.GitHooks, hooks...)
}

// hooksPath is where the hooks are put together; empty where there are none.
func (p *Plan) hooksPath() string {
	if len(p.GitHooks) == 0 || p.Runtime.Path == "" {
		return ""
	}
	return p.Runtime.Join(rundir.GitHooks)
}

// reportOtherHooks names the repositories that run other hooks than ours. Where
// git is configured through the environment there are none: that wins, and the
// composed hooks go on to the repository's.
func (p *Plan) reportOtherHooks() {
	if p.hooksPath() == "" || p.Git.ConfigFile == "" {
		return
	}
	for _, dir := range p.safeDirectories() {
		r, ok := githook.At(dir)
		if !ok {
			continue
		}
		if path, file := r.HooksPath(); file != "" {
			p.Problems.Add(problem.Problem{Severity: problem.Warning, What: "git hooks of the image and its plugins do not run in this repo", File: file,
				Why: "it sets core.hooksPath to " + problem.Path(path), Hint: "hooks in its .git/hooks instead run after those of the image"})
		}
	}
}

func (p *Plan) makeGitHooks() error {
	dir := p.hooksPath()
	if dir == "" {
		return nil
	}
	self, err := os.Executable()
	if err == nil {
		err = githook.Compose(dir, self, p.GitHooks)
	}
	if err != nil {
		return problem.Problem{What: "cannot put the git hooks together", File: dir, Why: textfile.Reason(err), Hint: "make room for them"}
	}
	return nil
}

func reportGitHook(h githook.Hook) []event.Member {
	return []event.Member{event.String("name", h.Name), event.String("path", h.Path), event.String("plugin", h.Plugin)}
}

package gitsetup

import (
	"path/filepath"

	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

const hooksKey = "core.hookspath"

// hooks has git run the composed hooks, unless the user has it run others.
func (p *planner) hooks() {
	if p.in.HooksPath == "" {
		return
	}
	p.set("core.hooksPath", p.in.HooksPath, "")
	p.reportHooksOfSystem()
	value, set := Last(p.environment.entries, hooksKey)
	source := "GIT_CONFIG_COUNT"
	if !set {
		value, set = Last(p.user, hooksKey)
		source = "the user's git configuration"
	}
	if set && value != p.in.HooksPath {
		p.warn("git hooks of the image and its plugins do not run", "", source+" sets core.hooksPath to "+problem.Path(value),
			"unset it; a repository's own hooks run after those of the image")
	}
}

// reportHooksOfSystem says that ours take the place of those that the system's
// configuration names.
func (p *planner) reportHooksOfSystem() {
	path := p.env("GIT_CONFIG_SYSTEM")
	if path == "" {
		path = "/etc/gitconfig"
	}
	if no := p.env("GIT_CONFIG_NOSYSTEM"); no != "" && no != "0" && no != "false" || !filepath.IsAbs(path) {
		return
	}
	data, err := textfile.Read(path)
	if err != nil {
		return
	}
	entries, _ := ParseConfig(path, data)
	if value, set := Last(entries, hooksKey); set {
		p.warn("git hooks in "+problem.Path(value)+" do not run", path, "those of the image and its plugins take their place", "move them to AGENTIC_GIT_HOOKS_DIR")
	}
}

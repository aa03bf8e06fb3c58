package boot

import (
	"errors"
	"io/fs"
	"os"

	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/tap"
	"agent-init/internal/textfile"
)

// planShim sees to it that whoever types the agent CLI's name gets plugins, MCP
// servers and events: where the image has no shim, one in the runtime directory
// comes first on PATH.
func (p *Plan) planShim() {
	path := p.environ.get("PATH")
	p.CLI = tap.FindCLI(path, p.shimDir())
	if p.CLI.Path == "" || p.CLI.Shimmed || p.Runtime.Path == "" {
		return
	}
	p.shim = true
	p.environ.prependPath(p.shimDir())
	p.Problems.Add(problem.Problem{Severity: problem.Warning, What: "agent CLI", File: p.CLI.Path,
		Why:  "a login shell, which sets PATH anew, starts it without plugins, MCP servers and events",
		Hint: "make " + tap.Hidden + " a link to its file and let a link to agent-init take its place"})
}

// shimDir is where the shim is made.
func (p *Plan) shimDir() string {
	if p.Runtime.Path == "" {
		return ""
	}
	return p.Runtime.Join(rundir.Bin)
}

func (p *Plan) makeShim() error {
	if !p.shim {
		return nil
	}
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(p.shimDir(), 0o700)
	}
	if err == nil {
		err = os.Symlink(self, p.shimDir()+"/"+tap.ShimName)
	}
	if err != nil && !(p.again && errors.Is(err, fs.ErrExist)) {
		// PATH then has a directory with nothing in it.
		p.Problems.Add(problem.Problem{Severity: problem.Warning, What: "cannot stand before the agent CLI", File: p.shimDir(), Why: textfile.Reason(err),
			Hint: "whoever types its name gets no plugins, MCP servers and events"})
	}
	return nil
}

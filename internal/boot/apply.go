package boot

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agent-init/internal/atomicfile"
	"agent-init/internal/event"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/textfile"
)

// Apply writes what the plan holds. Interrupted asks between any two steps
// whether to stop; Apply then returns ErrInterrupted. Another error refuses
// the start; what can be done without is added to Problems as a warning.
func (p *Plan) Apply(interrupted func() bool) error {
	steps := []struct {
		name string
		do   func() error
	}{
		{"write runtime directory", p.claimRuntime},
		{"make shim", p.makeShim},
		{"make tap", p.openTap},
		{"write workspace", p.makeDirectories},
		{"make git hooks", p.makeGitHooks},
		{"write git", p.writeGit},
		{"write files", p.writeFiles},
	}
	for _, s := range steps {
		if interrupted() {
			return ErrInterrupted
		}
		var err error
		p.step(s.name, func() { err = s.do() })
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrInterrupted says that a stop signal ended boot.
var ErrInterrupted = errors.New("interrupted by a stop signal")

// claimRuntime locks the runtime directory. The lock is held until the process
// ends.
func (p *Plan) claimRuntime() error {
	if p.Runtime.Path == "" || p.lock != nil {
		return nil
	}
	lock, err := p.Runtime.Claim()
	if err != nil {
		return NotClaimed(p.Runtime, err)
	}
	p.lock = lock
	return nil
}

// NotClaimed says why the runtime directory cannot be claimed.
func NotClaimed(dir rundir.Dir, err error) problem.Problem {
	return problem.Problem{What: "cannot use runtime directory", File: dir.Path, Why: textfile.Reason(err),
		Hint: "let AGENTIC_RUNTIME_DIR name a directory of this container alone"}
}

// Hold gives the plan a claim that was made before; nil where there is none.
func (p *Plan) Hold(lock *rundir.Lock) { p.lock = lock }

// Lock is the claim to the runtime directory once Apply has made it; nil where
// there is none.
func (p *Plan) Lock() *rundir.Lock { return p.lock }

// makeDirectories makes what it can: a workspace on a read-only mount is still
// of use to an agent that only reads.
func (p *Plan) makeDirectories() error {
	workspace := absolute(p.Config.WorkspaceDir)
	var missing []string
	var first error
	for _, dir := range p.Directories {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			name, _ := filepath.Rel(workspace, dir)
			missing = append(missing, name)
			first = cmp.Or(first, err)
		}
	}
	if first != nil {
		p.Problems.Add(problem.Problem{Severity: problem.Warning, What: "cannot make " + strings.Join(missing, ", ") + " in workspace", File: workspace,
			Why: textfile.Reason(first), Hint: "mount it writable for uid " + fmt.Sprint(os.Geteuid())})
	}
	return nil
}

func (p *Plan) writeGit() error {
	for _, f := range p.Git.Files {
		_, err := f.Write()
		switch {
		case err == nil:
		case f.Path == p.Git.ConfigFile && unwritable(err):
			p.setAll(p.Git.EnvironFallback())
			p.Env = p.environ.without(p.Config.WithholdEnv)
			p.Problems.Add(problem.Problem{Severity: problem.Warning, What: "cannot write git configuration", File: f.Path, Why: textfile.Reason(err),
				Hint: "it reaches git through GIT_CONFIG_COUNT instead"})
		default:
			return problem.Problem{What: "cannot write git configuration", File: f.Path, Why: textfile.Reason(err), Hint: "make the home directory writable, or set AGENTIC_GIT_CREDENTIALS=none"}
		}
	}
	return nil
}

// unwritable tells whether the place cannot be written, as opposed to a fault
// such as a full disk.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EBUSY) ||
		errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.ENOTDIR)
}

func (p *Plan) writeFiles() error {
	if err := p.removeOld(); err != nil {
		return err
	}
	for _, v := range p.Views {
		if err := v.Write(); err != nil {
			return notWritten(v.Path, err)
		}
	}
	for _, f := range p.Files {
		if err := write(f); err != nil {
			return err
		}
	}
	if p.Runtime.Path == "" {
		return nil
	}
	return write(p.runtimeFile(rundir.Launch, p.launchJSON()))
}

// removeOld removes what an earlier boot has made and this one makes anew or not
// at all.
func (p *Plan) removeOld() error {
	if !p.again || p.Runtime.Path == "" {
		return nil
	}
	views := p.Runtime.Join(rundir.Views)
	if err := os.RemoveAll(views); err != nil {
		return notWritten(views, err)
	}
	own := p.Runtime.Join(rundir.MCP)
	if p.MCPPath == own && !slices.ContainsFunc(p.Files, func(f atomicfile.File) bool { return f.Path == own }) {
		if err := os.Remove(own); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return notWritten(own, err)
		}
	}
	return nil
}

// WriteReport writes the boot report; it is the last step, so that it can say
// how long the others took.
func (p *Plan) WriteReport(report []event.Member) error {
	if p.Runtime.Path == "" {
		return nil
	}
	return write(p.runtimeFile(rundir.Report, document(report)))
}

func write(f atomicfile.File) error {
	if _, err := f.Write(); err != nil {
		return notWritten(f.Path, err)
	}
	return nil
}

func notWritten(path string, err error) error {
	return problem.Problem{What: "cannot write", File: path, Why: textfile.Reason(err), Hint: "make room for it, or make its directory writable"}
}

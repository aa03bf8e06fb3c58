package boot

import (
	"os"
	"path/filepath"
	"strconv"

	"agent-init/internal/agent"
	"agent-init/internal/atomicfile"
	"agent-init/internal/problem"
	"agent-init/internal/supervise"
	"agent-init/internal/tap"
	"agent-init/internal/textfile"
)

// tapName is the tap's name in a booted workspace; others are named after the
// process that supervises.
const tapName = "run"

// sessionEndTimeout is where the CLI reads how many milliseconds the hooks of a
// session's end have; 1500 without it (seen).
const sessionEndTimeout = "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"

// planTap decides whether the events of the agent's hooks are collected: where
// there is an agent CLI whose hooks there could be.
func (p *Plan) planTap() {
	if p.Runtime.Path == "" {
		p.NoTap = "there is no runtime directory"
		return
	}
	if p.Agent != agent.Claude && p.CLI.Path == "" {
		p.NoTap = "there is no agent CLI"
		return
	}
	dir := tap.Dir(p.Runtime.Path, tapName)
	if p.NoTap = tap.Usable(dir); p.NoTap != "" {
		p.Problems.Add(notCollected(p.Runtime.Path, p.NoTap, "let AGENTIC_RUNTIME_DIR name another directory"))
		return
	}
	p.Tap = dir
}

func notCollected(path, why, hint string) problem.Problem {
	return problem.Problem{Severity: problem.Warning, What: "cannot collect the events of the agent's hooks", File: path, Why: why, Hint: hint}
}

// openTap makes the tap, without which the agent works too.
func (p *Plan) openTap() error {
	if p.Tap == "" {
		return nil
	}
	listener, err := p.listener, error(nil)
	if listener == nil {
		listener, err = OpenTap(p.Tap)
	}
	if err != nil {
		p.Problems.Add(notCollected(p.Tap, textfile.Reason(err), "make room for it, or let AGENTIC_RUNTIME_DIR name a directory that can hold a socket"))
		p.Tap, p.NoTap = "", "the tap cannot be made"
		p.planViews("") // found no more than it did with a tap
		p.offer()
		return nil
	}
	p.listener = listener
	if p.tapFile != nil {
		return write(*p.tapFile)
	}
	return nil
}

// OpenTap makes a tap in a directory, for this program.
func OpenTap(dir string) (*tap.Listener, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return tap.Listen(dir, self)
}

// Listener receives from the tap once Apply has made it; nil where there is none.
func (p *Plan) Listener() *tap.Listener { return p.listener }

// setTap has the agent CLI call the tap in dir, and the tap call the prefix that
// the user has set.
func (e *environ) setTap(runtimeDir, dir, sessionEnd string) {
	e.keepPrefix(e.get(tap.PrefixVariable), runtimeDir)
	e.set(tap.PrefixVariable, tap.Prefix(dir))
	if e.get(sessionEndTimeout) == "" {
		e.set(sessionEndTimeout, sessionEnd)
	}
}

// keepPrefix has the tap call the user's prefix; one that is a tap is none.
func (e *environ) keepPrefix(user, runtimeDir string) {
	if user != "" && !tap.Ours(user, runtimeDir) {
		e.set(tap.KeptVariable, user)
	}
}

// tapSettings puts the tap, which the environment names, into the CLI's settings
// too, because those of a project override the environment. The file, if there is
// one, is to be written before the CLI starts.
func (e *environ) tapSettings(argv []string, runtimeDir string) (out []string, file *atomicfile.File, settings agent.Settings, found problem.List) {
	prefix := e.get(tap.PrefixVariable)
	dir, err := os.Getwd()
	if err != nil || !tap.Ours(prefix, runtimeDir) {
		return argv, nil, settings, nil
	}
	settings, found = agent.ReadSettings(agent.Session{Env: e.get, Root: "/", Dir: dir, Args: argv[1:]})
	if settings.Prefix == "" {
		e.unset(tap.KeptVariable)
	}
	e.keepPrefix(settings.Prefix, runtimeDir)
	path := filepath.Join(filepath.Dir(prefix), "settings-"+strconv.Itoa(os.Getpid())+".json")
	tapped, bad := settings.WithTap(argv, prefix, path)
	found.Add(bad...)
	if tapped.Document != nil {
		file = &atomicfile.File{Path: path, Data: tapped.Document, Mode: 0o600, DirMode: 0o700}
	}
	return tapped.Argv, file, settings, found
}

// unsetTap takes back what setTap has set.
func (e *environ) unsetTap(runtimeDir string) {
	if !tap.Ours(e.get(tap.PrefixVariable), runtimeDir) {
		return
	}
	e.unset(tap.PrefixVariable)
	if kept := e.get(tap.KeptVariable); kept != "" {
		e.set(tap.PrefixVariable, kept)
		e.unset(tap.KeptVariable)
	}
}

// sessionEnd is how many milliseconds the hooks of a session's end have: as long
// as the agent has when it is stopped.
func (p *Plan) sessionEnd() string {
	return strconv.FormatInt(supervise.AgentShare(p.Config.StopGrace.Duration).Milliseconds(), 10)
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"agent-init/internal/asciicast"
	"agent-init/internal/boot"
	"agent-init/internal/cgroup"
	"agent-init/internal/config"
	"agent-init/internal/event"
	"agent-init/internal/problem"
	"agent-init/internal/relay"
	"agent-init/internal/rundir"
	"agent-init/internal/secret"
	"agent-init/internal/supervise"
	"agent-init/internal/tap"
	"agent-init/internal/terminal"
	"agent-init/internal/textfile"
)

// drainTime bounds the delivery of what is in flight after the agent's exit.
const drainTime = 2 * time.Second

// provider names agent-init in its own events.
const provider = "agent-init"

// session is one run of agent-init as a supervisor.
type session struct {
	super    *supervise.Supervisor
	stderr   *relay.Output
	terminal bool
	cfg      *config.Config
	found    problem.List
	log      zerolog.Logger
	command  []string
	runtime  rundir.Dir
	// lock is nil where no runtime directory is ours.
	lock *rundir.Lock
	// memory is the control group that the agent will run in.
	memory cgroup.Memory
	// listener receives from the tap; nil where there is none.
	listener *tap.Listener
	// collected is closed when nothing more comes from the tap; nil where nothing
	// is being taken from it.
	collected chan struct{}
	masker    *secret.Masker
	// recorder is that of all runs of the agent; nil without one.
	recorder *asciicast.Recorder
	// screen is the agent's terminal while it runs on one of its own.
	screen atomic.Pointer[terminal.Proxy]
	// put are the secrets that were handed over; nil where none were.
	put map[string]string
	// keeper answers on the control socket; nil where there is none.
	keeper *keeper
	// id is the session id in agent-init's own events.
	id string
	// cycle is the number of the run in cycle mode; 0 where there is one run.
	cycle int
	// goesOn tells that another run may follow.
	goesOn bool
	// runLog is the log of the run; nil without one.
	runLog *runLog
	// said are the problems that have been told of.
	said problem.List
}

// runCommand boots the workspace and supervises the agent. In a workspace that
// lives already there is nothing to boot: it acts as exec.
func runCommand(args []string) int {
	s, code := newSession(args)
	if s == nil {
		return code
	}
	if holder := s.holder(); holder != 0 {
		if !rundir.Inside(holder) {
			return s.refuse(problem.List{{What: "cannot use runtime directory", File: s.runtime.Path,
				Why: fmt.Sprintf("another agent-init, process %d, uses it", holder), Hint: "give this one its own with AGENTIC_RUNTIME_DIR"}})
		}
		return s.join()
	}
	s.found.Add(checkSinks(s.cfg)...)
	s.found.Add(checkRecord(s.cfg)...)
	s.found.Add(checkCycles(s.cfg)...)
	if code, ended := s.awaitSecrets(); ended {
		return code
	}
	plan := boot.New(s.cfg, s.runtime, s.found, s.command, s.put)
	plan.Hold(s.lock)
	plan.Session = s.id
	s.setMasker(plan.Masker)
	path, notFound := s.lookup(plan.Argv[0], plan.Env)
	if plan.Problems.Refuses() {
		return s.refuse(plan.Problems)
	}
	if notFound != nil {
		logProblems(s.log, plan.Problems)
		s.log.Error().Msg(notFound.Error())
		return s.finish(supervise.StartErrorCode(notFound))
	}
	if err := plan.Apply(s.stopRequested); err != nil {
		return s.bootFailed(plan, err)
	}
	s.lock, s.listener = plan.Lock(), plan.Listener()
	if err := s.openControl(plan); err != nil {
		return s.bootFailed(plan, err)
	}
	s.openSinks()
	if s.cfg.Interval.Duration > 0 {
		return s.runCycles(plan, path)
	}
	code, err := s.runAgent(plan, path)
	if err != nil {
		return s.bootFailed(plan, err)
	}
	return s.finish(code)
}

// runAgent is one run of the agent in a workspace that is prepared for it: its
// hooks, the agent, and finalizers. The error refuses the run.
func (s *session) runAgent(plan *boot.Plan, path string) (code int, err error) {
	if err := s.ready(plan); err != nil {
		return 0, err
	}
	if err := s.announce(plan); err != nil {
		return 0, err
	}
	if s.interrupted() {
		return 0, boot.ErrInterrupted
	}
	c := supervise.Command{Path: path, Argv: plan.Argv, Env: plan.Env}
	if s.cycle > 0 {
		mark := "AGENTIC_CYCLE=" + strconv.Itoa(s.cycle)
		c.Env = append(slices.Clone(c.Env), mark)
		if s.goesOn {
			c.Mark = mark
		}
	}
	if plan.Prompt != nil {
		prompt, err := memoryFile("prompt", plan.Prompt)
		if err != nil {
			return 0, problem.Problem{What: "cannot hand over the prompt", Why: textfile.Reason(err)}
		}
		defer unix.Close(prompt)
		c.Stdin = prompt
	}
	s.openRunLog(plan)
	defer s.closeRunLog()
	code, ran, err := s.supervise(c)
	if ran {
		s.finalize(plan)
	}
	return code, err
}

// newSession reads the configuration; a nil session has ended with the code.
func newSession(args []string) (*session, int) {
	super, err := supervise.Listen()
	if err != nil {
		fmt.Fprintf(os.Stderr, "agent-init: %v\n", err)
		return nil, exitFault
	}
	s := &session{super: super, stderr: relay.NewOutput(2), terminal: isTerminal(2)}
	s.cfg, s.found = config.Environment()
	rest, err := s.cfg.ParseFlags(args)
	if err != nil {
		return nil, usageError("%v", err)
	}
	if len(rest) == 0 {
		return nil, usageError("no command to run")
	}
	workAs(s.cfg, &s.found)
	s.command, s.id, s.memory = rest, sessionID(s.cfg), cgroup.Own()
	var lines io.Writer = s.stderr
	if s.terminal {
		lines = lineEnds{s}
	}
	s.log = newLogger(lines, s.cfg.LogLevel, s.terminal)
	options, bad := supervision(s.cfg, s.log)
	s.found.Add(bad...)
	s.super.Configure(options)
	s.runtime = chooseRuntime(s.cfg, &s.found)
	return s, 0
}

// sessionID is the configured one, the workspace's, or a random UUID (RFC 9562,
// version 4).
func sessionID(cfg *config.Config) string {
	if id := cmp.Or(cfg.SessionID, cfg.WorkspaceID); id != "" {
		return id
	}
	var b [16]byte
	if _, err := unix.Getrandom(b[:], 0); err != nil {
		return fmt.Sprintf("process-%d-%d", os.Getpid(), time.Now().UnixNano())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// supervision turns settings into options.
func supervision(cfg *config.Config, log zerolog.Logger) (supervise.Options, problem.List) {
	var bad problem.List
	o := supervise.Options{Grace: cfg.StopGrace.Duration, Timeout: cfg.Timeout.Duration, Log: log, Rewrite: map[unix.Signal]unix.Signal{}}
	if cfg.SignalScope == "child" {
		o.Scope = supervise.Child
	}
	for _, text := range cfg.StopSignals {
		sig, err := supervise.ParseSignal(text)
		if err != nil {
			bad.Add(problem.Problem{What: "cannot use AGENTIC_STOP_SIGNALS", Why: err.Error(), Hint: "use names or numbers such as TERM, INT or 15"})
		}
		o.StopSignals = append(o.StopSignals, sig)
	}
	for _, text := range cfg.Rewrite {
		from, to, err := supervise.ParseRewrite(text)
		if err != nil {
			bad.Add(problem.Problem{What: "cannot use AGENTIC_REWRITE", Why: err.Error(), Hint: "write FROM:TO, as in 15:2 or TERM:INT; 15:0 drops the signal"})
		}
		o.Rewrite[from] = to
	}
	return o, bad
}

func chooseRuntime(cfg *config.Config, found *problem.List) rundir.Dir {
	dir, bad := rundir.Choose(cfg.RuntimeDir)
	if bad != nil {
		found.Add(*bad)
	}
	return dir
}

// holder is the process id of the agent-init that holds the runtime directory:
// 0 where none does, -1 where it lives in another PID namespace.
func (s *session) holder() int {
	pid, live := s.runtime.Live()
	if live && pid == 0 {
		return -1
	}
	return pid
}

// lookup finds the command on the PATH that the agent will have. The agent CLI
// needs no shim here.
func (s *session) lookup(name string, env []string) (string, error) {
	path, err := supervise.Lookup(name, pathOf(env))
	if err == nil && filepath.Base(path) == tap.ShimName && tap.IsSelf(path) {
		if cli := tap.FindCLI(pathOf(env), s.runtime.Join(rundir.Bin)); cli.Path != "" {
			return cli.Path, nil
		}
	}
	return path, err
}

func pathOf(env []string) string {
	for _, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			return path
		}
	}
	return ""
}

// setMasker hides secrets from now on.
func (s *session) setMasker(m *secret.Masker) {
	s.masker = m
	s.stderr.SetMasker(m)
}

// interrupted tells whether no agent is to be started any more.
func (s *session) interrupted() bool {
	select {
	case <-s.super.Between():
		return true
	default:
		return s.stopRequested()
	}
}

func (s *session) stopRequested() bool {
	_, stop := s.super.StopRequested()
	return stop
}

// refuse says why boot does not start and that nothing was written.
func (s *session) refuse(found problem.List) int {
	logProblems(s.log, found)
	return s.finish(exitRefused)
}

func (s *session) bootFailed(plan *boot.Plan, err error) int {
	logProblems(s.log, plan.Problems)
	if errors.Is(err, boot.ErrInterrupted) {
		sig, _ := s.super.StopRequested()
		s.log.Warn().Str("signal", supervise.SignalName(sig)).Msg("boot was interrupted; the agent was not started")
		return s.finish(128 + int(sig))
	}
	var p problem.Problem
	if errors.As(err, &p) {
		logProblems(s.log, problem.List{p})
	} else {
		s.log.Error().Msg(err.Error())
	}
	return s.finish(exitRefused)
}

// announce writes the boot report, says what boot found, and sends the event
// workspace_ready.
func (s *session) announce(plan *boot.Plan) error {
	if s.memory.KilledAsOne() {
		plan.Problems.Add(problem.Problem{Severity: problem.Warning, What: "memory.oom.group is set",
			Why: "when memory runs out the kernel ends agent-init together with the agent, so that nothing can be reported", Hint: "unset it for this container"})
	}
	report := plan.Report()
	if err := plan.WriteReport(report); err != nil {
		return err
	}
	s.tell(plan.Problems)
	s.log.Info().Int("plugins", len(plan.Plugins)).Int("mcp_servers", len(plan.MCP.Servers)).Int("repos", len(plan.Repos.Repos)).
		Int("warnings", len(plan.Problems.Only(problem.Warning))).Str("agent", plan.Agent.String()).Msg("workspace is ready")
	s.emit(event.New("workspace_ready", s.id, provider, time.Now()).Add(report...))
	return nil
}

// tell logs problems, those aside that the last boot had too.
func (s *session) tell(found problem.List) {
	logProblems(s.log, slices.DeleteFunc(slices.Clone(found), func(p problem.Problem) bool { return slices.Contains(s.said, p) }))
	s.said = found
}

// emit sends an event of agent-init's own to the sinks.
func (s *session) emit(e *event.Event) {
	s.stderr.Event(e.AppendJSON(nil))
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

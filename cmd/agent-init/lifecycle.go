package main

import (
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/event"
	"agent-init/internal/rundir"
	"agent-init/internal/supervise"
)

// agentRun is one run of the agent, as events and status tell of it. Arguments
// are left out: they hold prompts, and secrets that nobody declared.
type agentRun struct {
	*session
	// command is the program as it was asked for, path its file.
	command, path string
	pid           int
	// killsBefore is how many processes of the group the OOM killer had ended.
	killsBefore int64
}

// reportStarted sends the event agent_started and writes the status.
func (a *agentRun) reportStarted() {
	now := time.Now()
	a.record(now)
	a.emit(event.New("agent_started", a.id, provider, now).Add(
		event.Int("pid", int64(a.pid)), event.String("command", a.command), event.String("path", a.path)))
}

// reportExited sends the event agent_exited, dated when the sweep is over and what
// the agent has written is delivered. The status needs no writing: it sees that
// the agent is gone.
func (a *agentRun) reportExited(o supervise.Outcome) {
	kills, counted := a.memory.OOMKills()
	kills -= a.killsBefore
	// The kernel counts per group and names nobody: a KILL of our own is not
	// taken for the OOM killer's.
	oomKilled := counted && kills > 0 && o.Signal == unix.SIGKILL && !o.Killed
	peak, measured := a.memory.Peak()

	e := event.New("agent_exited", a.id, provider, time.Now()).Add(event.Int("pid", int64(a.pid)), event.Int("code", int64(o.Code)))
	if o.Signal != 0 {
		e.Add(event.String("signal", supervise.SignalName(o.Signal)))
	}
	e.Add(event.Bool("stopped", o.Stopped), event.Bool("timed_out", o.TimedOut),
		seconds("duration_s", o.Duration), seconds("cpu_user_s", o.Usage.User), seconds("cpu_system_s", o.Usage.System),
		event.Int("max_rss_bytes", o.Usage.MaxRSS))
	if measured {
		e.Add(event.Int("memory_peak_bytes", peak))
	}
	e.Add(event.Bool("oom_killed", oomKilled))
	if counted {
		e.Add(event.Int("oom_kills", kills))
	}
	a.emit(e)
	if oomKilled {
		line := a.log.Error().Int64("max_rss_bytes", o.Usage.MaxRSS)
		if measured {
			line.Int64("memory_peak_bytes", peak)
		}
		line.Msg("the kernel's OOM killer ended the agent: its memory limit is too low")
	}
}

// record is for status and health, which an agent can do without.
func (a *agentRun) record(started time.Time) {
	if a.lock == nil {
		return
	}
	if err := a.lock.Record(rundir.Status{State: rundir.Running, Agent: a.pid, Command: a.command, Started: started, Cycle: a.cycle}); err != nil {
		a.log.Warn().Str("file", a.runtime.Path).Msgf("cannot record the agent's state for status and health: %v", err)
	}
}

func seconds(name string, d time.Duration) event.Member {
	return event.Float(name, d.Round(time.Microsecond).Seconds())
}

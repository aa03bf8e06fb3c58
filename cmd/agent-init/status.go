package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"agent-init/internal/config"
	"agent-init/internal/event"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
)

// exitUnhealthy is what HEALTHCHECK takes for unhealthy.
const exitUnhealthy = 1

// statusCommand prints the state of agent-init and its agent.
func statusCommand(args []string) int {
	cfg, _ := config.Environment()
	format, rest, err := parseFormat(cfg, args)
	if err != nil {
		return usageError("%v", err)
	}
	if len(rest) > 0 {
		return usageError("status takes no argument, but got %q", rest[0])
	}
	dir, st, p := workspaceStatus(cfg)
	if p != nil {
		fmt.Fprintf(os.Stderr, "agent-init: %s\n", p.Text())
		return exitUnhealthy
	}
	if format == "json" {
		return printed(statusJSON(dir, st))
	}
	return printed(statusText(dir, st))
}

// healthCommand exits 0 while the agent runs and 1 otherwise, saying why in the
// line that 'docker inspect' shows.
func healthCommand(args []string) int {
	cfg, _ := config.Environment()
	rest, err := cfg.ParseFlags(args)
	if err != nil {
		return usageError("%v", err)
	}
	if len(rest) > 0 {
		return usageError("health takes no argument, but got %q", rest[0])
	}
	dir, st, p := workspaceStatus(cfg)
	code, text := exitUnhealthy, ""
	switch {
	case p != nil && dir.Path == "" && !dir.Explicit && firstIsAgentInit():
		code, text = exitOK, "agent-init runs; "+p.Why
	case p != nil:
		text = p.Text()
	case st.State == rundir.Running:
		code, text = exitOK, fmt.Sprintf("the agent %s runs", problem.Path(st.Command))
	case st.State == rundir.Waiting:
		code, text = exitOK, fmt.Sprintf("the agent %s runs again%s", problem.Path(st.Command), nextText(st))
	case st.State == rundir.Exited:
		text = fmt.Sprintf("the agent %s has exited", problem.Path(st.Command))
	default:
		text = "the agent has not been started yet"
	}
	if written := printed(text + "\n"); written != exitOK {
		return written
	}
	return code
}

// workspaceStatus finds the live workspace that this process is part of.
func workspaceStatus(cfg *config.Config) (rundir.Dir, rundir.Status, *problem.Problem) {
	var found problem.List
	if workAs(cfg, &found); len(found) > 0 {
		return rundir.Dir{}, rundir.Status{}, &found[0]
	}
	dir, bad := rundir.Choose(cfg.RuntimeDir)
	if bad != nil {
		return dir, rundir.Status{}, bad
	}
	if dir.Path == "" {
		return dir, rundir.Status{}, &problem.Problem{What: "cannot tell the state of the workspace", Why: "no runtime directory can be written here, so agent-init records none",
			Hint: "mount a tmpfs on " + rundir.Preferred}
	}
	st, live := dir.Status()
	if other, uid, found := rundir.Foreign(); !live && found && !dir.Explicit {
		return dir, st, &problem.Problem{What: "cannot tell the state of the workspace", File: other.Path, Why: fmt.Sprintf("it is uid %d's, and this is uid %d", uid, os.Geteuid()),
			Hint: fmt.Sprintf("ask as that user, as with docker exec -u %d", uid)}
	}
	if !live {
		return dir, st, &problem.Problem{What: "no workspace lives here", File: dir.Path, Why: "no agent-init of this user holds it",
			Hint: "ask as the user that agent-init runs as, with its AGENTIC_RUNTIME_DIR"}
	}
	return dir, st, nil
}

// firstIsAgentInit tells whether PID 1 bears the name of this program. It ends
// with its agent, so that one that lives without a record is taken for healthy.
func firstIsAgentInit() bool {
	own, err := os.ReadFile("/proc/self/comm")
	return err == nil && firstIs(strings.TrimSpace(string(own)))
}

// firstIs tells whether PID 1 is another process, of the given name.
func firstIs(name string) bool {
	first, err := os.ReadFile("/proc/1/comm")
	return err == nil && os.Getpid() != 1 && strings.TrimSpace(string(first)) == name
}

// nextText is when the next run begins, as far as that is known.
func nextText(st rundir.Status) string {
	if st.Next.IsZero() {
		return ""
	}
	return " at " + st.Next.UTC().Format(time.RFC3339)
}

func statusText(dir rundir.Dir, st rundir.Status) string {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%-10s %s\n", name, value) }
	line("state", st.State.String())
	if st.PID != 0 {
		line("agent-init", fmt.Sprint("process ", st.PID))
	}
	if st.Cycle > 0 {
		line("cycle", fmt.Sprint(st.Cycle))
	}
	if st.State == rundir.Waiting {
		line("agent", problem.Path(st.Command))
		if !st.Next.IsZero() {
			line("next run", st.Next.UTC().Format(time.RFC3339))
		}
	} else if st.State != rundir.Booting {
		line("agent", fmt.Sprintf("process %d, %s", st.Agent, problem.Path(st.Command)))
		line("started", fmt.Sprintf("%s, %s ago", st.Started.UTC().Format(time.RFC3339), time.Since(st.Started).Round(time.Second)))
	}
	line("runtime", problem.Path(dir.Path))
	return b.String()
}

func statusJSON(dir rundir.Dir, st rundir.Status) string {
	members := []event.Member{event.String("state", st.State.String())}
	if st.PID != 0 {
		members = append(members, event.Int("pid", int64(st.PID)))
	}
	if st.Cycle > 0 {
		members = append(members, event.Int("cycle", int64(st.Cycle)))
	}
	if st.State == rundir.Waiting {
		members = append(members, event.Object("agent", event.String("command", st.Command)))
		if !st.Next.IsZero() {
			members = append(members, event.String("next", st.Next.UTC().Format(time.RFC3339Nano)))
		}
	} else if st.State != rundir.Booting {
		members = append(members, event.Object("agent", event.Int("pid", int64(st.Agent)), event.String("command", st.Command),
			event.String("started", st.Started.UTC().Format(time.RFC3339Nano))))
	}
	members = append(members, event.String("runtime_dir", dir.Path))
	// A document has no other parts than an object has.
	return string(event.Object("", members...).Value) + "\n"
}

package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// WorkspaceEvent is when a plugin's handler for the workspace runs.
type WorkspaceEvent string

const (
	// Ready is before the agent starts, when all else is prepared.
	Ready WorkspaceEvent = "sandbox_workspace_ready"
	// Finalize is after the agent has ended.
	Finalize WorkspaceEvent = "workspace_finalize"
)

// handlerTimeout is how long a handler has that says nothing else.
const handlerTimeout = 30 * time.Second

// Handler is a command of a plugin for the workspace.
type Handler struct {
	Event WorkspaceEvent
	// Command is a command line for a shell.
	Command string
	// Priority orders handlers, the highest first; those of one priority run in
	// the order of plugins and files.
	Priority int
	Timeout  time.Duration
	// Required refuses the start of the agent where a Ready handler fails.
	Required bool
	// File, Line and Column are its place.
	File         string
	Line, Column int
}

// readWorkspace reads the plugin's hooks/workspace.json, if there is one.
func (p *Plugin) readWorkspace() problem.List {
	path := filepath.Join(p.Path, "hooks", "workspace.json")
	data, err := textfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return problem.List{unreadable("workspace hooks", path, err)}
	}
	doc, bad := jsondoc.Parse("workspace hooks", path, data)
	if bad != nil {
		return problem.List{*bad}
	}
	hooks, ok := doc.Root.Get("hooks")
	switch {
	case doc.Root.Kind != '{':
		return problem.List{doc.Error(doc.Root.Start, "it holds "+doc.Root.KindName()+", not an object", "")}
	case !ok:
		return problem.List{doc.Warning(doc.Root.Start, `it has no "hooks"`, "")}
	case hooks.Kind != '{':
		return problem.List{doc.Error(hooks.Start, `"hooks" is `+hooks.KindName()+", not an object", "")}
	}
	var found problem.List
	for _, m := range hooks.Members {
		event := WorkspaceEvent(m.Name)
		if event != Ready && event != Finalize {
			found.Add(doc.Warning(m.NameStart, fmt.Sprintf("nothing ever calls %q", m.Name), fmt.Sprintf("use %q or %q", Ready, Finalize)))
			continue
		}
		if m.Value.Kind != '[' {
			found.Add(doc.Error(m.Value.Start, fmt.Sprintf("%q is %s, not a list of handlers", m.Name, m.Value.KindName()), ""))
			continue
		}
		for _, e := range m.Value.Elements {
			h, bad := parseHandler(doc, event, e)
			if found.Add(bad...); !bad.Refuses() {
				p.Handlers = append(p.Handlers, h)
			}
		}
	}
	return found
}

var handlerMembers = []string{"command", "priority", "timeout", "required", "description"}

func parseHandler(doc *jsondoc.Document, event WorkspaceEvent, v jsondoc.Value) (h Handler, found problem.List) {
	h = Handler{Event: event, Timeout: handlerTimeout, File: doc.Path}
	h.Line, h.Column = doc.Position(v.Start)
	if v.Kind != '{' {
		return h, problem.List{doc.Error(v.Start, "a handler is "+v.KindName()+", not an object", `write {"command": "..."}`)}
	}
	command, ok := v.Get("command")
	if h.Command = command.Text; !ok || command.Kind != '"' || h.Command == "" {
		found.Add(doc.Error(v.Start, `a handler has no "command", which is a text`, ""))
	}
	if strings.ContainsRune(h.Command, 0) {
		found.Add(doc.Error(command.Start, `"command" has a NUL, which no program can be given`, ""))
	}
	if p, ok := v.Get("priority"); ok {
		n, err := strconv.Atoi(string(doc.Raw(p)))
		if h.Priority = n; err != nil {
			found.Add(doc.Error(p.Start, `"priority" is no whole number`, ""))
		}
	}
	if t, ok := v.Get("timeout"); ok {
		d, err := time.ParseDuration(t.Text)
		if h.Timeout = d; err != nil || d <= 0 {
			found.Add(doc.Error(t.Start, `"timeout" is no duration`, `write a text such as "30s" or "5m"`))
		}
	}
	if r, ok := v.Get("required"); ok {
		if h.Required = r.Kind == 't'; !r.IsBool() {
			found.Add(doc.Error(r.Start, `"required" is `+r.KindName()+", not true or false", ""))
		}
	}
	for _, m := range v.Members {
		if !slices.Contains(handlerMembers, m.Name) {
			found.Add(doc.Warning(m.NameStart, fmt.Sprintf("handlers have no %q", m.Name), ""))
		}
	}
	return h, found
}

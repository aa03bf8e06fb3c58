package hook

import (
	"github.com/go-json-experiment/json/jsontext"

	"agent-init/internal/event"
)

// vocabulary gives each hook event of the agent CLI its event type and context.
// Hook events that are not here have no event.
var vocabulary = map[string]func(Payload) (kind string, context []event.Member){
	"SessionStart": func(p Payload) (string, []event.Member) {
		return "session_started", []event.Member{p.string("source", "source", "startup")}
	},
	"SessionEnd": func(p Payload) (string, []event.Member) {
		return "session_completed", p.duration([]event.Member{p.string("reason", "reason", "normal")})
	},
	"UserPromptSubmit": func(p Payload) (string, []event.Member) {
		return "user_prompt_submitted", []event.Member{p.string("prompt_preview", "prompt", "")}
	},
	"PreToolUse": func(p Payload) (string, []event.Member) {
		return "tool_execution_started", append(p.tool(), p.string("input_preview", "tool_input", ""))
	},
	"PostToolUse": func(p Payload) (string, []event.Member) {
		context := p.duration(append(p.tool(), event.Bool("success", true)))
		if output := p.text("tool_response", ""); output != "" {
			context = append(context, event.String("output_preview", output))
		}
		return "tool_execution_completed", context
	},
	"PostToolUseFailure": func(p Payload) (string, []event.Member) {
		return "tool_execution_failed", append(p.tool(), p.string("error", "error", ""))
	},
	"PermissionRequest": func(p Payload) (string, []event.Member) {
		return "permission_requested", []event.Member{p.string("tool_name", "tool_name", ""), event.String("permission_type", "tool_use")}
	},
	"PermissionDenied": func(p Payload) (string, []event.Member) {
		context := []event.Member{p.string("tool_name", "tool_name", ""), event.String("decision", "block")}
		for _, name := range []string{"reason", "tool_use_id"} {
			if text := p.text(name, ""); text != "" {
				context = append(context, event.String(name, text))
			}
		}
		return "security_decision", context
	},
	"Notification": func(p Payload) (string, []event.Member) {
		return "system_notification", []event.Member{p.string("message", "message", ""), event.String("level", "info")}
	},
	"SubagentStart": func(p Payload) (string, []event.Member) {
		return "subagent_started", []event.Member{p.string("subagent_id", "agent_id", ""), p.string("agent_type", "agent_type", "subagent")}
	},
	"SubagentStop": func(p Payload) (string, []event.Member) {
		return "subagent_stopped", []event.Member{p.string("subagent_id", "agent_id", ""), p.string("reason", "reason", "normal")}
	},
	"Stop": func(p Payload) (string, []event.Member) {
		return "agent_stopped", []event.Member{p.string("reason", "reason", "normal")}
	},
	// A turn that an error of the API ended; error is that error's name.
	"StopFailure": func(p Payload) (string, []event.Member) {
		return "agent_stopped", []event.Member{p.string("reason", "error", "error")}
	},
	// The hook runs before compaction and knows no token counts.
	"PreCompact": func(p Payload) (string, []event.Member) {
		return "context_compacted", []event.Member{p.string("trigger", "trigger", "")}
	},
	"TeammateIdle": func(p Payload) (string, []event.Member) {
		return "teammate_idle", []event.Member{p.string("teammate_id", "teammate_name", "")}
	},
	"TaskCompleted": func(p Payload) (string, []event.Member) {
		return "task_completed", []event.Member{p.string("task_id", "task_id", "")}
	},
}

// text is a member of the input as text.
func (p Payload) text(name, absent string) string {
	if m, ok := p.members[name]; ok {
		return m.text
	}
	return absent
}

// string is the event's member name, from the input's member of another name.
func (p Payload) string(name, from, absent string) event.Member {
	return event.String(name, p.text(from, absent))
}

func (p Payload) tool() []event.Member {
	return []event.Member{p.string("tool_name", "tool_name", ""), p.string("tool_use_id", "tool_use_id", "")}
}

// duration adds duration_ms, in milliseconds, where the CLI gives it.
func (p Payload) duration(context []event.Member) []event.Member {
	if m := p.members["duration_ms"]; m.kind == '0' {
		context = append(context, event.Member{Name: "duration_ms", Value: jsontext.Value(m.text)})
	}
	return context
}

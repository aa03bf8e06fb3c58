#!/usr/bin/env python3
"""Turns one hook payload on stdin into one event on stderr.

It observes and never decides: whatever goes wrong is a line on stderr, and the
exit code is 0.
"""

import json
import sys


def text(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tool(hook):
    return hook.get("tool_name", ""), hook.get("tool_use_id", "")


def tool_completed(emitter, hook):
    name, use_id = tool(hook)
    emitter.tool_completed(name, use_id, success=True, output_preview=text(hook.get("tool_response", "")))


HANDLERS = {
    "SessionStart": lambda e, h: e.session_started(h.get("source", "startup")),
    "SessionEnd": lambda e, h: e.session_completed(h.get("reason", "normal")),
    "UserPromptSubmit": lambda e, h: e.prompt_submitted(text(h.get("prompt", ""))),
    "PreToolUse": lambda e, h: e.tool_started(*tool(h), text(h.get("tool_input", {}))),
    "PostToolUse": tool_completed,
    "PostToolUseFailure": lambda e, h: e.tool_failed(*tool(h), text(h.get("error", ""))),
    "PermissionRequest": lambda e, h: e.permission_requested(h.get("tool_name", ""), "tool_use"),
    "Notification": lambda e, h: e.notification(text(h.get("message", ""))),
    "SubagentStart": lambda e, h: e.subagent_started(h.get("agent_id", ""), h.get("agent_type", "subagent")),
    "SubagentStop": lambda e, h: e.subagent_stopped(h.get("agent_id", "")),
    "Stop": lambda e, h: e.agent_stopped(),
    # The hook runs before compaction and knows no token counts.
    "PreCompact": lambda e, h: e.emit("context_compacted", {"trigger": h.get("trigger", "")}),
    "TeammateIdle": lambda e, h: e.teammate_idle(h.get("teammate_name", "")),
    "TaskCompleted": lambda e, h: e.task_completed(h.get("task_id", "")),
}


def main():
    hook = json.load(sys.stdin)
    from agentic_events import EventEmitter

    handler = HANDLERS.get(hook["hook_event_name"])
    if handler:
        handler(EventEmitter(session_id=hook.get("session_id", ""), provider="claude", output=sys.stderr), hook)


if __name__ == "__main__":
    try:
        main()
    except Exception as err:  # noqa: BLE001
        print(f"workspace: no event for this hook: {err!r}", file=sys.stderr)

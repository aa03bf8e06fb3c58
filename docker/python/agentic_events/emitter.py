"""The emitter: one method an event."""

import json
import sys
import time
from datetime import datetime, timezone

from agentic_events.types import EventType

PREVIEW = 500  # characters of a tool's input or output
PROMPT_PREVIEW = 200  # characters of a prompt


def _present(**fields):
    """The fields that have a value, in the order given."""
    return {k: v for k, v in fields.items() if v not in (None, "", [])}


class EventEmitter:
    """Writes events of one session to output, a text stream (default: stderr)."""

    def __init__(self, session_id, provider="claude", output=None):
        self.session_id = session_id
        self.provider = provider
        self._output = output
        self._started = {}

    def emit(self, event_type, context=None, **fields):
        """Write one event and return it; fields follow context at the top level."""
        event = {
            "event_type": str(event_type),
            "timestamp": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
            "session_id": self.session_id,
            "provider": self.provider,
            "context": context or {},
            **fields,
        }
        output = self._output or sys.stderr
        # One write, so that lines of several processes do not mix.
        output.write(json.dumps(event, default=str) + "\n")
        output.flush()
        return event

    def _emit(self, event_type, context, metadata):
        return self.emit(event_type, context, metadata=metadata or None)

    def session_started(self, source="startup", **metadata):
        return self._emit(EventType.SESSION_STARTED, {"source": source}, metadata)

    def session_completed(self, reason="normal", duration_ms=None, **metadata):
        context = {"reason": reason, **_present(duration_ms=duration_ms)}
        return self._emit(EventType.SESSION_COMPLETED, context, metadata)

    def prompt_submitted(self, prompt_preview="", max_preview_length=PROMPT_PREVIEW):
        return self.emit(EventType.PROMPT_SUBMITTED, {"prompt_preview": prompt_preview[:max_preview_length]})

    def tool_started(self, tool_name, tool_use_id, input_preview="", max_preview_length=PREVIEW):
        self._started[tool_use_id] = time.monotonic()
        return self.emit(
            EventType.TOOL_STARTED,
            {"tool_name": tool_name, "tool_use_id": tool_use_id, "input_preview": input_preview[:max_preview_length]},
        )

    def tool_completed(
        self,
        tool_name,
        tool_use_id,
        success,
        duration_ms=None,
        output_preview="",
        error=None,
        max_preview_length=PREVIEW,
    ):
        """duration_ms is measured if tool_started was called on this emitter."""
        started = self._started.pop(tool_use_id, None)
        if duration_ms is None and started is not None:
            duration_ms = int((time.monotonic() - started) * 1000)
        context = {"tool_name": tool_name, "tool_use_id": tool_use_id, "success": success}
        context.update(_present(duration_ms=duration_ms, output_preview=output_preview[:max_preview_length], error=error))
        return self.emit(EventType.TOOL_COMPLETED, context)

    def tool_failed(self, tool_name, tool_use_id, error="", **metadata):
        context = {"tool_name": tool_name, "tool_use_id": tool_use_id, "error": error}
        return self._emit(EventType.TOOL_FAILED, context, metadata)

    def security_decision(self, tool_name, decision, reason="", validators=None, tool_use_id=None):
        context = {"tool_name": tool_name, "decision": str(decision)}
        context.update(_present(reason=reason, validators=validators, tool_use_id=tool_use_id))
        return self.emit(EventType.SECURITY_DECISION, context)

    def permission_requested(self, tool_name, permission_type, **metadata):
        context = {"tool_name": tool_name, "permission_type": permission_type}
        return self._emit(EventType.PERMISSION_REQUESTED, context, metadata)

    def notification(self, message, level="info"):
        return self.emit(EventType.NOTIFICATION, {"message": message, "level": level})

    def subagent_started(self, subagent_id, agent_type="subagent", **metadata):
        context = {"subagent_id": subagent_id, "agent_type": agent_type}
        return self._emit(EventType.SUBAGENT_STARTED, context, metadata)

    def subagent_stopped(self, subagent_id, reason="normal", **metadata):
        return self._emit(EventType.SUBAGENT_STOPPED, {"subagent_id": subagent_id, "reason": reason}, metadata)

    def agent_stopped(self, reason="normal", **metadata):
        return self._emit(EventType.AGENT_STOPPED, {"reason": reason}, metadata)

    def context_compacted(self, before_tokens, after_tokens, **metadata):
        reduction = round((1 - after_tokens / before_tokens) * 100, 1) if before_tokens > 0 else 0
        context = {"before_tokens": before_tokens, "after_tokens": after_tokens, "reduction_percent": reduction}
        return self._emit(EventType.CONTEXT_COMPACTED, context, metadata)

    def teammate_idle(self, teammate_id, **metadata):
        return self._emit(EventType.TEAMMATE_IDLE, {"teammate_id": teammate_id}, metadata)

    def task_completed(self, task_id, **metadata):
        return self._emit(EventType.TASK_COMPLETED, {"task_id": task_id}, metadata)

    def _git(self, event_type, operation, fields):
        return self.emit(event_type, {"git": {"operation": operation, **_present(**fields)}})

    def git_commit(self, **fields):
        return self._git(EventType.GIT_COMMIT, "commit", fields)

    def git_push(self, **fields):
        return self._git(EventType.GIT_PUSH, "push", fields)

    def git_merge(self, **fields):
        return self._git(EventType.GIT_MERGE, "merge", fields)

    def git_rewrite(self, **fields):
        return self._git(EventType.GIT_REWRITE, "rewrite", fields)

    def git_checkout(self, **fields):
        return self._git(EventType.GIT_CHECKOUT, "checkout", fields)

    def git_branch_changed(self, **fields):
        return self._git(EventType.GIT_BRANCH_CHANGED, "branch_change", fields)

    def git_operation(self, operation, **fields):
        return self._git(EventType.GIT_OPERATION, operation, fields)

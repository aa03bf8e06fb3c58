"""The vocabulary of events."""

from enum import Enum


class _Name(str, Enum):
    """A string with a name; str() is the string itself."""

    def __str__(self):
        return self.value


class EventType(_Name):
    SESSION_STARTED = "session_started"
    SESSION_COMPLETED = "session_completed"
    PROMPT_SUBMITTED = "user_prompt_submitted"
    TOOL_STARTED = "tool_execution_started"
    TOOL_COMPLETED = "tool_execution_completed"
    TOOL_FAILED = "tool_execution_failed"
    SECURITY_DECISION = "security_decision"
    PERMISSION_REQUESTED = "permission_requested"
    NOTIFICATION = "system_notification"
    SUBAGENT_STARTED = "subagent_started"
    SUBAGENT_STOPPED = "subagent_stopped"
    AGENT_STOPPED = "agent_stopped"
    CONTEXT_COMPACTED = "context_compacted"
    TEAMMATE_IDLE = "teammate_idle"
    TASK_COMPLETED = "task_completed"
    GIT_COMMIT = "git_commit"
    GIT_PUSH = "git_push"
    GIT_MERGE = "git_merge"
    GIT_REWRITE = "git_rewrite"
    GIT_CHECKOUT = "git_checkout"
    GIT_BRANCH_CHANGED = "git_branch_changed"
    GIT_OPERATION = "git_operation"


class SecurityDecision(_Name):
    ALLOW = "allow"
    BLOCK = "block"
    WARN = "warn"

"""Events of agent sessions as lines of JSON, for hook handlers.

An event goes to stderr unless the emitter is told otherwise: a hook's stdout
belongs to its decision. Nothing but the standard library is needed.
"""

from agentic_events.emitter import EventEmitter
from agentic_events.types import EventType, SecurityDecision

__all__ = ["EventEmitter", "EventType", "SecurityDecision"]

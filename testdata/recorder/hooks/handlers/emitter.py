"""emitter.py NAME: events by way of agentic_events, as plugins write them."""

import json
import os
import sys

NAME = sys.argv[1]
PID = os.getpid()


class Recorded:
    """stderr, with everything appended to a record of this process first."""

    def __init__(self, stream):
        self.stream = stream
        self.record = open(f"/recorded/{os.environ.get('CLAUDE_CODE_SESSION_ID', 'none')}.{NAME}.{PID}", "a")

    def write(self, text):
        self.record.write(text)
        self.record.flush()
        return self.stream.write(text)

    def flush(self):
        self.stream.flush()


sys.stderr = Recorded(sys.stderr)
from agentic_events import EventEmitter  # noqa: E402

hook = json.load(sys.stdin)
emitter = EventEmitter(session_id=f"rec:{NAME}:{PID}")
emitter.prompt_submitted(hook.get("prompt", ""))
emitter.tool_started(hook.get("tool_name", ""), hook.get("tool_use_id", ""), json.dumps(hook.get("tool_input")))
print(f"noise of {NAME}", file=sys.stderr)
emitter.notification('Grüße: "✓" \u2028 \U0001f511', level="warning")
emitter.context_compacted(1000, 10, cost=float("nan"))

"""A hook that records what it was given; it blocks a command that asks for it."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from observe import observe  # noqa: E402

text = sys.stdin.read()
hook = json.loads(text)
observe(f"{hook['hook_event_name']}", stdin=text)
if "blocked" in str(hook.get("tool_input")):
    print("not this one: 'quotes', $HOME\n  and a second line", file=sys.stderr)
    print('{"event_type": "security_decision", "decision": "block"}', file=sys.stderr)
    sys.exit(2)
if hook["hook_event_name"] == "PostToolUse":
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "seen after it"}}))

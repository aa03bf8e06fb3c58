"""An MCP server over stdio with one tool, which records what the server was given."""

import json
import sys

from observe import observe

observe("server")
print("a word on stderr", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {
        "initialize": {
            "protocolVersion": message.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "probe", "version": "1.0.0"},
        },
        "tools/list": {"tools": [{"name": "ask", "description": "Answers.", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "answered to " + json.dumps(message.get("params", {}).get("arguments"))}]},
    }.get(message["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)

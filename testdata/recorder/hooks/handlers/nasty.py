"""nasty.py NAME: lines and writes that are hard to relay, byte for byte."""

import itertools
import os
import sys
import time

NAME = sys.argv[1]
PID = os.getpid()
RECORD = os.open(f"/recorded/{os.environ.get('CLAUDE_CODE_SESSION_ID', 'none')}.{NAME}.{PID}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
NUMBERS = itertools.count(1)


def event(more=b""):
    return b'{"event_type": "recorded", "session_id": "rec:%s:%d:%d"%s}' % (NAME.encode(), PID, next(NUMBERS), more)


def say(data):
    for fd in (RECORD, 2):
        rest = data
        while rest:
            rest = rest[os.write(fd, rest):]


sys.stdin.buffer.read()
say(event(b', "metadata": null, "cost": NaN, "range": [-Infinity, Infinity]') + b"\n")
say(event(b', "raw": "\xff\xfe \xc3", "nul": "\\u0000"') + b"\n")
say(event(b', "text": "' + b"0123456789abcdef" * 6400 + b'"') + b"\n")
say(event() + b"\n" + b"noise between events\n" + event() + b"\n" + b'{"noise": true}\n\n' + event() + b"\n")
whole = event(b', "split": "in two writes"') + b"\n"
say(whole[:40])
time.sleep(0.15)
say(whole[40:])
say(b"noise without end, then one in pieces: ")
say(b'{"event_type": ""}\n')
say(event() + b"\r\n")
say(b"  " + event() + b" \n")
say(event(b', "last": "without a newline"'))

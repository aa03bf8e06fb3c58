#!/bin/sh
# plain.sh NAME: two events and a line that is none. Everything that goes to
# stderr is appended to a record of this process first.
record=/recorded/${CLAUDE_CODE_SESSION_ID:-none}.$1.$$
number=0

say() {
	printf '%s\n' "$1" >>"$record"
	printf '%s\n' "$1" >&2
}

event() {
	number=$((number + 1))
	say "{\"event_type\": \"recorded\", \"session_id\": \"rec:$1:$$:$number\", \"metadata\": null}"
}

cat >/dev/null
event "$1"
say "noise of $1: {\"event_type\": \"none\"}"
[ "$1" != SessionEnd ] || sleep "${RECORDER_LINGER:-0}"
event "$1"

#!/usr/bin/env python3
"""Blocks tool calls that destroy what cannot be got back, or read private keys.

A blocked call is a deny decision on stdout, with its reason, and a
security_decision event on stderr. It is a safety net against mistakes, not a
boundary: a command can be written so that no rule here knows it. A failure of
the guard's own blocks nothing.
"""

import json
import os
import re
import shlex
import sys

EVERYTHING = re.compile(r"(?:/|~|\$HOME|\$\{HOME\}|\.)?/?\*?")
DISK = re.compile(r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk)")
PRIVATE = re.compile(r"(?:^|/)\.ssh/id_[^/]*(?<!\.pub)$|^/etc/shadow$")
ACCOUNTS = re.compile(r"^/etc/(?:passwd|shadow|sudoers)(?:$|\.d/)")
# Programs that run the command that follows them.
WRAPPERS = {"sudo", "env", "exec", "command", "nohup", "time", "xargs"}
SHELLS = {"sh", "bash", "dash", "zsh"}

WHOLE = [
    (re.compile(r"\b(?:curl|wget)\b[^;\n]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"), "runs a download unseen"),
    (re.compile(r":\s*\(\s*\)\s*\{.*:\s*\|\s*:"), "is a fork bomb"),
    (re.compile(r">\s*[\"']?/dev/(?:sd|hd|vd|xvd|nvme|mmcblk)"), "writes to a disk"),
    (re.compile(r">\s*[\"']?/etc/(?:passwd|shadow|sudoers)"), "writes to the accounts of the system"),
]


def options(args):
    """The letters of short options, and the long options."""
    short = "".join(a[1:] for a in args if re.fullmatch(r"-[A-Za-z]+", a))
    return short, [a for a in args if a.startswith("--")]


def rm(args):
    short, long = options(args)
    recursive = "r" in short.lower() or "--recursive" in long
    if recursive and any(a and EVERYTHING.fullmatch(a) for a in args):
        return "deletes everything below a root, a home or the current directory"
    return None


def chmod(args):
    if "/" in args and any(re.fullmatch(r"0?777|(?:a|ugo)?\+rwx", a) for a in args):
        return "opens the whole file system to everybody"
    return None


def dd(args):
    return "writes to a disk" if any(a.startswith("of=") and DISK.match(a[3:]) for a in args) else None


def tee(args):
    return "writes to the accounts of the system" if any(ACCOUNTS.match(a) for a in args) else None


def git(args):
    short, long = options(args)
    if "add" in args and ("A" in short or "--all" in long):
        return "stages every file; name the files to add"
    if "push" in args:
        force = "f" in short or "--force" in long
        for ref in args:
            if re.search(r"(?:^|[+:/])(?:main|master)$", ref) and (force or ref.startswith("+")):
                return "overwrites the main branch"
    return None


PROGRAMS = {"rm": rm, "chmod": chmod, "dd": dd, "tee": tee, "git": git}


def words(command):
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def simple_command_danger(command):
    args = words(command)
    while args and (args[0] in WRAPPERS or re.match(r"\w+=", args[0]) or args[0] in {"{", "(", "!"}):
        args = args[1:]
        while args and args[0].startswith("-"):
            args = args[1:]
    if not args:
        return None
    program, args = os.path.basename(args[0]), args[1:]
    if any(PRIVATE.search(a) for a in args):
        return "reads a private key or the password file"
    if program.startswith("mkfs"):
        return "makes a file system"
    if program in SHELLS and "-c" in args[:-1]:
        return command_danger(args[args.index("-c") + 1])
    return PROGRAMS[program](args) if program in PROGRAMS else None


def command_danger(command):
    for pattern, reason in WHOLE:
        if pattern.search(command):
            return reason
    for part in re.split(r"[;&|\n]+|\$\(|`", command):
        reason = simple_command_danger(part)
        if reason:
            return reason
    return None


def danger(tool, tool_input):
    """Why this call is dangerous, or None."""
    if tool == "Bash":
        reason = command_danger(str(tool_input.get("command", "")))
        return reason and f"this command {reason}"
    path = os.path.normpath(str(tool_input.get("file_path") or tool_input.get("notebook_path") or ""))
    if PRIVATE.search(path):
        return "this file is a private key or the password file"
    if tool != "Read" and ACCOUNTS.match(path):
        return "this file holds the accounts of the system"
    return None


def report(hook, decision, reason):
    """An event is worth having, but no reason to let the call through."""
    try:
        from agentic_events import EventEmitter

        EventEmitter(session_id=hook.get("session_id", ""), provider="claude", output=sys.stderr).security_decision(
            hook.get("tool_name", ""), decision, reason, validators=["sdlc"], tool_use_id=hook.get("tool_use_id")
        )
    except Exception as err:  # noqa: BLE001
        print(f"sdlc: no event for this decision: {err!r}", file=sys.stderr)


def main():
    hook = json.load(sys.stdin)
    reason = danger(hook.get("tool_name", ""), hook.get("tool_input") or {})
    if reason is None:
        return
    block = os.environ.get("SDLC_GUARD", "block") != "warn"
    report(hook, "block" if block else "warn", reason)
    if block:
        decision = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": f"sdlc guard: {reason}",
        }
        json.dump({"hookSpecificOutput": decision}, sys.stdout)


if __name__ == "__main__":
    try:
        main()
    except Exception as err:  # noqa: BLE001
        print(f"sdlc: the guard did not run: {err!r}", file=sys.stderr)

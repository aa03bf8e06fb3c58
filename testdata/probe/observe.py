"""What a process was given, as lines of text in a record."""

import os
import resource
import stat
import sys


def status(*names):
    with open("/proc/self/status") as lines:
        return [line.strip() for line in lines if line.split(":")[0] in names]


def descriptor(fd):
    """The kind of what is open, its access and flags, without what names it."""
    try:
        mode, flags = os.fstat(fd).st_mode, int(open(f"/proc/self/fdinfo/{fd}").read().split()[3], 8)
    except OSError:
        return None
    kinds = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFREG: "file", stat.S_IFDIR: "directory"}
    return f"{kinds.get(stat.S_IFMT(mode), 'other')} {flags & os.O_ACCMODE} {'append' if flags & os.O_APPEND else ''}"


def parents():
    """The processes above this one up to the agent CLI: their names and its ID."""
    pid, names = os.getppid(), []
    while pid > 0:
        with open(f"/proc/{pid}/stat") as line:
            name, rest = line.read().rsplit(")", 1)
        names.append(name.split("(", 1)[1])
        if names[-1] == "claude":
            break
        pid = int(rest.split()[1])
    return names, pid


def observe(name, **more):
    names, cli = parents()
    pid, pgid, sid = os.getpid(), os.getpgid(0), os.getsid(0)
    umask = os.umask(0)
    os.umask(umask)
    seen = {
        "arguments": sys.argv[1:],
        "directory": os.getcwd(),
        "signals": status("SigBlk", "SigIgn", "SigCgt", "ShdPnd"),
        "ids": status("Uid", "Gid", "Groups", "NoNewPrivs", "CapEff", "Seccomp"),
        "limits": [resource.getrlimit(n) for n in range(16)],
        "umask": oct(umask),
        "leads": {"group": pid == pgid, "session": pid == sid},
        "with the CLI": {"group": pgid == os.getpgid(cli), "session": sid == os.getsid(cli)},
        "parents": names,
        "descriptors": {fd: d for fd in range(64) if (d := descriptor(fd))},
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        **more,
    }
    lines = [f"{key}: {value}" for key, value in seen.items()]
    lines += sorted(f"env {key}={value}" for key, value in os.environ.items())
    with open(f"/recorded/{name}", "a") as record:
        record.write("\n".join(lines) + "\n")

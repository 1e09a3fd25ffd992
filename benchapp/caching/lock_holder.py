"""The process that holds a render lock, as a short text, and whether that process has ended.

A killed worker releases nothing. The text has the host, the process id, and the time when the process started, which
tells it from a later process with the same id. Of a process of another host, or of another container, nothing is known.
"""

from __future__ import annotations

import os
from functools import cache
from hashlib import md5
from pathlib import Path

PROC = Path("/proc")
# Fields of /proc/PID/stat after the name (proc(5)).
STATE, START_TIME = 0, 19
ENDED_STATES = ("Z", "X")


@cache
def holder(pid: int) -> str:
    """The text of a running process of this host: at most 45 characters, and none that a key may not have."""
    return f"{_host()}.{pid}.{_start_time(pid)}"


def has_ended(holder: str) -> bool:
    """Whether the process of that text ran on this host and has ended; False where that is unknown."""
    host, _, process = holder.partition(".")
    pid, _, start_time = process.partition(".")
    return bool(host) and host == _host() and pid.isdecimal() and _start_time(int(pid)) != start_time


@cache
def _host() -> str:
    """This host since it was booted, and its set of process ids: a container has one of its own. Empty when unknown."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text("ascii")
        parts = (os.uname().nodename, boot, str((PROC / "self/ns/pid").readlink()))
    except OSError:
        return ""
    return md5("".join(parts).encode(), usedforsecurity=False).hexdigest()[:12]


def _start_time(pid: int) -> str:
    """When the process started, in clock ticks since the boot; empty when it has ended."""
    try:
        # The name is in parentheses and may hold more of them.
        fields = (PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[STATE] in ENDED_STATES else fields[START_TIME]

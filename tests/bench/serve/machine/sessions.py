"""Helpers of tests of processes: the members of a session, and waiting for an event that comes in a moment."""

from __future__ import annotations

import os

import psutil


def members(session: int) -> list[int]:
    """The processes of a session, the zombies aside."""
    pids = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getsid(process.pid) == session and process.info["status"] != psutil.STATUS_ZOMBIE:
                pids.append(process.pid)
        except ProcessLookupError:
            continue
    return pids

"""What tests of processes share: who is in a session, and waiting for what comes about in a moment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import psutil


def members(session: int) -> list[int]:
    """The processes of a session, the zombies aside."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getsid(process.pid) == session and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except ProcessLookupError:
            continue
    return found


def wait_until(condition: Callable[[], bool], timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)

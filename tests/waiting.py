"""Wait for something to come true, by trying again until a deadline; stop a process, and wait until it is."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

POLL_S = 0.02


def until(holds: Callable[[], object], what: object, limit_s: float = 180) -> None:
    """Return once it holds; fails, naming what was waited for as it is by then, when it does not within the limit."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}"
        time.sleep(POLL_S)


def stop(pid: int) -> None:
    """Stop the process as a hanging one; returns when none of its threads runs any more."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    # The state follows the name, which is in parentheses (proc(5)).
    until(
        lambda: all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir()),
        "every thread is stopped",
    )

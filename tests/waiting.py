"""Wait for something to come true, by asking again and again until a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.02


def until(holds: Callable[[], object], what: str, limit_s: float = 20) -> None:
    """Return once it holds; fails, naming what was waited for, when it does not within the limit."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}"
        time.sleep(POLL_S)

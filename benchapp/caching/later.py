"""Something to be done a moment later, when the request that asks for it may be over."""

from __future__ import annotations

import threading
from collections.abc import Callable


def later(seconds: float, what: Callable[..., object], *arguments: object) -> threading.Timer:
    """Have it done once, in a thread of its own that keeps no process alive."""
    timer = threading.Timer(seconds, what, arguments)
    timer.daemon = True
    timer.start()
    return timer

"""A cache that is down or hangs: a circuit breaker for reads, delayed retries for invalidations."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable

OPEN_S = 1.0
MAX_EXIT_S = 3.0


class CircuitBreaker:
    """Skips a backend for a moment after a timeout, so that a page waits only once. Threads may share the breaker."""

    def __init__(self) -> None:
        self._open_until = 0.0

    def trip(self) -> None:
        """Open the circuit: the backend has not responded in time."""
        self._open_until = time.monotonic() + OPEN_S

    @property
    def is_open(self) -> bool:
        """True if the backend is to be skipped now."""
        return time.monotonic() < self._open_until


# The calls that are not made yet.
_pending: set[threading.Timer] = set()
# A forked process has none of the threads.
os.register_at_fork(after_in_child=_pending.clear)


def later(seconds: float, action: Callable[..., object], *arguments: object) -> None:
    """Call the action once after so many seconds, in a thread; a process that exits waits for the call, at most
    MAX_EXIT_S.
    """

    def call() -> None:
        try:
            action(*arguments)
        finally:
            _pending.discard(timer)

    timer = threading.Timer(seconds, call)
    timer.daemon = True
    _pending.add(timer)
    # Python 3.12 starts no thread any more once a process is ending.
    with contextlib.suppress(RuntimeError):
        timer.start()


@atexit.register
def finish_pending() -> None:
    """Wait for the delayed calls: a management command exits right after its write, but must send all purges."""
    deadline = time.monotonic() + MAX_EXIT_S
    while (alive := [timer for timer in list(_pending) if timer.is_alive()]) and time.monotonic() < deadline:
        alive[0].join(max(0.0, deadline - time.monotonic()))


class Retry:
    """Repeats an action that failed, such as an invalidation that a backend did not accept.

    attempt  the action, which returns whether it succeeded; must cover every request made before the call
    every_s  seconds between two attempts

    One timer runs for any number of requests. Threads may share the object.
    """

    def __init__(self, attempt: Callable[[], bool], every_s: float) -> None:
        self._attempt = attempt
        self._every_s = every_s
        self._lock = threading.Lock()
        self._deadline = 0.0
        self._scheduled = False

    def request(self, for_s: float) -> None:
        """Attempt the action until success, for at most so many seconds."""
        with self._lock:
            self._deadline = max(self._deadline, time.monotonic() + for_s)
            self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            later(self._every_s, self._try)

    def _try(self) -> None:
        with self._lock:
            deadline, self._deadline = self._deadline, 0.0
        done = self._attempt()
        with self._lock:
            self._scheduled = False
            # A request made during the attempt may concern a write that it came too early for.
            self._deadline = max(self._deadline, 0.0 if done else deadline)
            if self._deadline > time.monotonic():
                self._schedule()

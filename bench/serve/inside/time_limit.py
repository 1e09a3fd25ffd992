"""A limit on the time of a page or an import, which may hang. Runs in any project's interpreter."""

import contextlib
import os
import signal
import sys
import threading


class NoResponse(BaseException):
    """A page or an import that took too long; no `except Exception` of the project catches this."""


@contextlib.contextmanager
def time_limit(seconds):
    """Raise NoResponse in a block that takes longer than so many seconds; 0 is no limit. For the main thread."""

    def give_up(*_):
        raise NoResponse(f"not within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def leave_threads():
    """End this process if other threads go on: Python would wait for the thread of a page that was given up."""
    if threading.active_count() > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

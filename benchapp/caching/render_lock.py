"""Request coalescing: of all requests for a page that is not cached, one renders it and the others wait.

The first to add the lock of a page renders it. The others poll until the page is cached; after WAIT_S they render it
themselves. A page that turns out not to be cacheable releases the lock with a marker: later requests do not wait.

A request that waits occupies its worker, but not for longer than a rendering of its own would: it came later than the
holder. Only a dead holder would make it wait for nothing, and with all workers waiting every other page, too. So the
lock names its holder, and one of those who wait takes it over as soon as that process has ended.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from benchapp.caching.lock_holder import has_ended, holder

WAIT_S = 5  # longest wait for another request's rendering
LOCK_TTL_S = 10  # the lock of a holder that died on another host expires
UNCACHEABLE_TTL_S = 10  # how long requests for an uncacheable page do not wait
POLL_S = 0.01
MAX_MISSES = 3

UNCACHEABLE = "uncacheable"  # in place of the holder

Page = TypeVar("Page")


class LockStore(Protocol):
    """Short texts that all workers share and that expire. A store that cannot be used may raise OSError."""

    def add(self, key: str, value: str, seconds: int) -> bool:
        """Store a text unless there is one; returns whether it was stored."""

    def get(self, key: str) -> str | None:
        """The text, or None."""

    def set(self, key: str, value: str, seconds: int) -> object:
        """Store a text in any case."""

    def delete(self, key: str) -> object:
        """Remove a text."""


@dataclass
class RenderLock:
    """The right to render a page while others wait; release it in any case."""

    store: LockStore
    key: str

    def release(self, cached: bool) -> None:
        """Let the others continue: the page is cached for them, or it is not cacheable."""
        with contextlib.suppress(OSError):
            if cached:
                self.store.delete(self.key)
            else:
                self.store.set(self.key, UNCACHEABLE, UNCACHEABLE_TTL_S)


def wait_or_lock(
    store: LockStore, key: str, cached_page: Callable[[], Page | None]
) -> tuple[Page | None, RenderLock | None]:
    """The page that another request has rendered meanwhile, or the lock to render it.

    With neither, render it without a lock: it is not cacheable, took too long, or the store is down or full.
    `cached_page` looks the page up; it must not raise.
    """
    with contextlib.suppress(OSError):
        return _wait_or_lock(store, key, cached_page)
    return None, None


def _wait_or_lock(
    store: LockStore, key: str, cached_page: Callable[[], Page | None]
) -> tuple[Page | None, RenderLock | None]:
    deadline = time.monotonic() + WAIT_S
    this_process = holder(os.getpid())
    misses = 0
    while True:
        if store.add(key, this_process, LOCK_TTL_S):
            lock = RenderLock(store, key)
            # Another rendering may have ended between the caller's lookup and this lock.
            if (page := cached_page()) is None:
                return None, lock
            lock.release(cached=True)
            return page, None
        state = store.get(key)
        if state == UNCACHEABLE:
            return None, None
        if (page := cached_page()) is not None:
            return page, None
        # Several may notice at once that the holder has ended: the first to add that takes the lock over.
        if state is not None and has_ended(state) and store.add(f"{key}.{state}", this_process, LOCK_TTL_S):
            store.set(key, this_process, LOCK_TTL_S)
            return None, RenderLock(store, key)
        misses += state is None
        # Neither added nor there, again and again: the store is down or full.
        if misses > MAX_MISSES or time.monotonic() > deadline:
            return None, None
        # A lock that was just released is free now: try again at once.
        if state is not None:
            time.sleep(POLL_S)

"""Request coalescing: of all requests for a page that is not cached, one renders the page and the others wait.

The first to add the lock of a page renders the page. The others look again and again until the page is cached. A page
that turns out not to be cacheable releases the lock with a marker: later requests do not wait.

A waiting request occupies its worker, but not for longer than a rendering would: the request came later than the
holder. Only behind a dead holder a request would wait in vain, so a lock expires soon, and the next request gets the
lock. A page that takes longer to render is rendered a second time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from django.core.cache.backends.base import BaseCache

WAIT_S = 5  # longest wait for other requests' renderings
LOCK_TTL_S = 3
UNCACHEABLE_TTL_S = 10  # how long requests for an uncacheable page do not wait
POLL_S = 0.01
MAX_MISSES = 3

RENDERING, UNCACHEABLE = "rendering", "uncacheable"

Page = TypeVar("Page")


def wait_or_lock(store: BaseCache, key: str, cached_page: Callable[[], Page | None]) -> tuple[Page | None, bool]:
    """The page that another request has rendered meanwhile, or the lock to render the page; `release` ends the lock.

    Without either, render without a lock: the page is not cacheable, took too long, or the store is down or full.
    `store` is a cache (or the like) that all workers share, and may raise OSError. `cached_page` looks the page up.
    """
    deadline = time.monotonic() + WAIT_S
    misses = 0
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline and misses <= MAX_MISSES:
            if store.add(key, RENDERING, LOCK_TTL_S):
                # Another rendering may have ended between the caller's lookup and this lock.
                if (page := cached_page()) is None:
                    return None, True
                release(store, key, cached=True)
                return page, False
            state = store.get(key)
            if state == UNCACHEABLE:
                return None, False
            if (page := cached_page()) is not None:
                return page, False
            # Neither added nor there, again and again: the store is down or full.
            misses += state is None
            # A lock that was just released is free now: try again at once.
            if state is not None:
                time.sleep(POLL_S)
    return None, False


def release(store: BaseCache, key: str, cached: bool) -> None:
    """Let the others continue: the page is cached, or not cacheable."""
    with contextlib.suppress(OSError):
        if cached:
            store.delete(key)
        else:
            store.set(key, UNCACHEABLE, UNCACHEABLE_TTL_S)

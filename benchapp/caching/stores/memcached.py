"""Finished pages in memcached, for Nginx to read.

The body of `/posts/page/2/` is stored under `page:/posts/page/2/`. memcached cannot list its keys, so there is an index
of the pages below each directory: a text that grows by a line a page. It is cut into slots of one time to live, so
every page that can still be there is listed in the current slot or in the one before.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from django.conf import settings
from pymemcache.client.base import PooledClient
from pymemcache.exceptions import MemcacheError

from benchapp.caching import registry
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import can_be_served
from benchapp.caching.pages import BodyStore, CachePages, PageStore
from benchapp.caching.repairs.pymemcache_client import reconnecting
from benchapp.caching.resilience import CircuitBreaker, Retry

GENERATION = "pages:generation"
# A prefix with fewer segments (`/posts/`) covers most of the site: all pages are removed, and no index is that wide.
MIN_INDEXED_SEGMENTS = 2
RETRY_S = 0.5
# memcached takes longer lifetimes for dates, which lie far in the past.
MAX_RELATIVE_EXPIRY_S = 30 * 24 * 3600

logger = logging.getLogger(__name__)


class MemcachedStore(BodyStore):
    """The pages in one memcached."""

    def __init__(self, address: str, seconds: int) -> None:
        self.seconds = seconds
        # A connection for each thread: a pool with a limit would raise when more threads wait.
        self.client = PooledClient(address, connect_timeout=1, timeout=1, no_delay=not address.startswith("unix:"))
        self.client.client_class = reconnecting
        # Purges are always tried. All else skips a memcached that hangs.
        self.guarded = GuardedClient(self.client)
        self.locks = MemcachedLocks(self.guarded)
        self._retry = Retry(self._flush, RETRY_S)

    def generation(self) -> str:
        if (current := self.guarded.get(GENERATION)) is None:
            # `add` lets the first of several workers win.
            self.guarded.add(GENERATION, secrets.token_hex(16), noreply=False)
            current = self.guarded.get(GENERATION)
        if current is None:
            raise OSError("memcached does not take the generation")
        return current.decode("ascii")

    def read(self, name: str) -> bytes | None:
        return self.guarded.get(_key(name))

    def write(self, path: str, body: bytes, generation: str) -> bool:
        self._add_to_index(path)
        expire = _expiry(self.seconds)
        if self.generation() == generation and self.guarded.set(_key(path), body, expire=expire, noreply=False):
            if self.generation() == generation:
                return True
            # A purge between the lines above has not seen the page.
            self.guarded.delete(_key(path), noreply=False)
        return False

    def purge(self, stale: StalePages) -> None:
        try:
            self.client.set(GENERATION, secrets.token_hex(16), noreply=False)
            if any(prefix.count("/") <= MIN_INDEXED_SEGMENTS for prefix in stale.prefixes):
                self.client.flush_all(noreply=False)
                return
            below = [path for prefix in stale.prefixes for path in self._below(prefix)]
            self.client.delete_many(
                [_key(path) for path in {*stale.paths, *stale.prefixes, *below} if can_be_served(path)]
            )
        except (OSError, MemcacheError) as error:
            logger.warning("memcached: %s not purged: %s", stale, error)
            # A memcached that only hangs comes back with all that it held.
            self._retry.request(for_s=self.seconds)

    def _flush(self) -> bool:
        try:
            self.client.flush_all(noreply=False)
        except (OSError, MemcacheError):
            return False
        return True

    def _add_to_index(self, path: str) -> None:
        """Add a page to the index of each directory above it that a purge looks up."""
        line = f"{path}\n".encode("ascii")
        for directory in _directories(path):
            key = _index(directory, self._slot())
            if not self.guarded.append(key, line, noreply=False):
                # Three slots: no index expires before a page that it lists.
                added = self.guarded.add(key, line, expire=_expiry(3 * self.seconds), noreply=False)
                if not added:
                    self.guarded.append(key, line, noreply=False)

    def _below(self, prefix: str) -> Iterator[str]:
        slot = self._slot()
        for text in self.client.get_many([_index(prefix, slot), _index(prefix, slot - 1)]).values():
            yield from text.decode("ascii").split()

    def _slot(self) -> int:
        return int(time.time()) // self.seconds


class GuardedClient:
    """The commands of a client behind a circuit breaker: after a timeout each fails at once for a moment.

    They raise OSError whatever goes wrong.
    """

    def __init__(self, client: PooledClient) -> None:
        self._client = client
        self._breaker = CircuitBreaker()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        command = getattr(self._client, name)

        def guarded(*args: Any, **kwargs: Any) -> Any:
            if self._breaker.is_open:
                raise TimeoutError("skipped: it did not answer in time a moment ago")
            try:
                return command(*args, **kwargs)
            except TimeoutError:
                self._breaker.trip()
                raise
            except MemcacheError as error:
                raise OSError(f"memcached: {error}") from error

        return guarded


class MemcachedLocks:
    """Render locks in the same memcached."""

    def __init__(self, client: GuardedClient) -> None:
        self.client = client

    def add(self, key: str, value: str, seconds: int) -> bool:
        return bool(self.client.add(key, value, expire=seconds, noreply=False))

    def get(self, key: str) -> str | None:
        value = self.client.get(key)
        return value.decode("ascii") if value else None

    def set(self, key: str, value: str, seconds: int) -> None:
        self.client.set(key, value, expire=seconds, noreply=False)

    def delete(self, key: str) -> None:
        self.client.delete(key, noreply=False)


class StoreInMemcached(CachePages):
    """Middleware of the layer `nginx-memcached`."""

    def open_store(self) -> PageStore:
        return _active_store()


def purge(stale: StalePages, **kwargs: object) -> None:
    """Receiver of the layer `nginx-memcached`: remove stale pages."""
    _active_store().purge(stale)


def _active_store() -> MemcachedStore:
    return _store(registry.options("nginx-memcached")["address"], settings.CACHING_SECONDS)


@cache
def _store(address: str, seconds: int) -> MemcachedStore:
    return MemcachedStore(address, seconds)


def _directories(path: str) -> list[str]:
    """The directories above a page, itself included, from two segments on: `/posts/5/page/2/` has three."""
    segments = path.split("/")[1:-1]
    first = MIN_INDEXED_SEGMENTS
    return ["/" + "".join(f"{segment}/" for segment in segments[:count]) for count in range(first, len(segments) + 1)]


def _expiry(seconds: int) -> int:
    """A time to live as memcached understands it."""
    return seconds if seconds <= MAX_RELATIVE_EXPIRY_S else int(time.time()) + seconds


def _key(path: str) -> str:
    return f"page:{path}"


def _index(directory: str, slot: int) -> str:
    return f"pages:{slot}:{directory}"

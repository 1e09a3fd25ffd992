"""Finished pages in memcached, for Nginx to read.

The page of `/posts/page/2/` is kept as bytes under `page:/posts/page/2/`. memcached cannot list its keys, so beside the
pages there is an index of those below each directory: a text that grows by a line a page, cut into slots of time, so
that a page that can still be there is named in this slot's text or in the one before.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from pymemcache.client.base import PooledClient
from pymemcache.exceptions import MemcacheError

from benchapp.caching.finishedpages import KeepFinishedPages, Store, has_key
from benchapp.caching.later import later
from benchapp.caching.silence import Silence
from benchapp.caching.staleness import Stale, pages_stale

GENERATION = "pages:generation"
# Prefixes with fewer segments (`/posts/`) cover most of the site: all is removed, since no index is that wide.
NARROW = 2
# How soon a memcached that could not be told of a write is tried again.
AGAIN_S = 0.5
# What is longer is a date to memcached, which is long past.
LONGEST_S = 30 * 24 * 3600

logger = logging.getLogger(__name__)


class MemcachedPages:
    """The pages in one memcached; errors of the connection are logged and keep no visitor waiting long."""

    def __init__(self, address: str, seconds: int) -> None:
        self.seconds = seconds
        # A connection a thread: a pool with a limit would raise when more of them wait.
        self.client = PooledClient(address, connect_timeout=1, timeout=1, no_delay=not address.startswith("unix:"))
        # Purges are always tried; all else leaves a memcached that hangs alone for a moment.
        self.brief = BriefClient(self.client)
        self.marks = MemcachedMarks(self.brief)

    def generation(self) -> str | None:
        try:
            if (current := self.brief.get(GENERATION)) is None:
                # Of several that begin at once, the first one's word stays for all.
                self.brief.add(GENERATION, secrets.token_hex(16), noreply=False)
                current = self.brief.get(GENERATION)
        except (OSError, MemcacheError) as error:
            logger.warning("memcached: %s", error)
            return None
        return current.decode("ascii") if current else None

    def get(self, path: str) -> bytes | None:
        try:
            return self.brief.get(_key(path))
        except (OSError, MemcacheError):
            return None

    def put(self, path: str, body: bytes, generation: str) -> bool:
        try:
            self._note(path)
            expire = _expiry(self.seconds)
            if self.generation() == generation and self.brief.set(_key(path), body, expire=expire, noreply=False):
                if self.generation() == generation:
                    return True
                # A purge between the lines above has not seen the page.
                self.client.delete(_key(path), noreply=False)
        except (OSError, MemcacheError) as error:
            logger.warning("memcached: page %s not kept: %s", path, error)
        return False

    def purge(self, stale: Stale) -> None:
        try:
            self.client.set(GENERATION, secrets.token_hex(16), noreply=False)
            if any(prefix.count("/") <= NARROW for prefix in stale.prefixes):
                self.client.flush_all(noreply=False)
                return
            below = [path for prefix in stale.prefixes for path in self._below(prefix)]
            self.client.delete_many([_key(path) for path in {*stale.paths, *stale.prefixes, *below} if has_key(path)])
        except (OSError, MemcacheError) as error:
            logger.warning("memcached: %s not purged: %s", stale, error)
            # It may only hang, and come back with all that it held.
            self._later(time.monotonic() + self.seconds)

    def _later(self, until: float) -> None:
        """Remove all pages a moment later; tried again until their time is up anyway."""
        later(AGAIN_S, self._empty, until)

    def _empty(self, until: float) -> None:
        try:
            self.client.flush_all(noreply=False)
        except (OSError, MemcacheError):
            if time.monotonic() < until:
                self._later(until)

    def _note(self, path: str) -> None:
        """Add a page to the index of each directory above it that a narrow prefix can name."""
        line = f"{path}\n".encode("ascii")
        for directory in _directories(path):
            key = _index(directory, self._slot())
            if not self.brief.append(key, line, noreply=False):
                # Three slots: none is gone while a page that it names can be there.
                added = self.brief.add(key, line, expire=_expiry(3 * self.seconds), noreply=False)
                if not added:
                    self.brief.append(key, line, noreply=False)

    def _below(self, prefix: str) -> Iterator[str]:
        slot = self._slot()
        for text in self.client.get_many([_index(prefix, slot), _index(prefix, slot - 1)]).values():
            yield from text.decode("ascii").split()

    def _slot(self) -> int:
        return int(time.time()) // self.seconds


class BriefClient:
    """The commands of a client; after one that was not answered in time, each raises TimeoutError for a moment."""

    def __init__(self, client: PooledClient) -> None:
        self._client = client
        self._silence = Silence()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        command = getattr(self._client, name)

        def tried(*args: Any, **kwargs: Any) -> Any:
            if self._silence.lasts:
                raise TimeoutError("it has not answered in time a moment ago")
            try:
                return command(*args, **kwargs)
            except TimeoutError:
                self._silence.begin()
                raise

        return tried


class MemcachedMarks:
    """The marks of who renders what, in the same memcached."""

    def __init__(self, client: BriefClient) -> None:
        self.client = client

    def add(self, key: str, value: str, seconds: int) -> bool:
        return bool(self._tried(self.client.add, key, value, expire=seconds, noreply=False))

    def get(self, key: str) -> str | None:
        value = self._tried(self.client.get, key)
        return value.decode("ascii") if value else None

    def set(self, key: str, value: str, seconds: int) -> None:
        self._tried(self.client.set, key, value, expire=seconds, noreply=False)

    def delete(self, key: str) -> None:
        self._tried(self.client.delete, key, noreply=False)

    def _tried(self, command: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        try:
            return command(*args, **kwargs)
        except (OSError, MemcacheError):
            return None


class KeepInMemcached(KeepFinishedPages):
    """Middleware of the layer nginx-memcached."""

    def open_store(self) -> Store:
        if not settings.BENCHAPP_MEMCACHED_PAGES:
            raise MiddlewareNotUsed("BENCHAPP_MEMCACHED_PAGES is empty")
        return _store(settings.BENCHAPP_MEMCACHED_PAGES, settings.BENCHAPP_CACHE_SECONDS)


def connect() -> None:
    """Purge on every write, if the layer is on; called once, when the application is ready."""
    pages_stale.connect(_purge, dispatch_uid="memcachedpages")


def _purge(stale: Stale, **kwargs: object) -> None:
    if settings.BENCHAPP_MEMCACHED_PAGES:
        _store(settings.BENCHAPP_MEMCACHED_PAGES, settings.BENCHAPP_CACHE_SECONDS).purge(stale)


@cache
def _store(address: str, seconds: int) -> MemcachedPages:
    return MemcachedPages(address, seconds)


def _directories(path: str) -> list[str]:
    """The directories above a page, itself among them, from two segments on: `/posts/5/page/2/` has three."""
    segments = path.split("/")[1:-1]
    return ["/" + "".join(f"{segment}/" for segment in segments[:count]) for count in range(2, len(segments) + 1)]


def _expiry(seconds: int) -> int:
    """A time to live as memcached understands it."""
    return seconds if seconds <= LONGEST_S else int(time.time()) + seconds


def _key(path: str) -> str:
    return f"page:{path}"


def _index(directory: str, slot: int) -> str:
    return f"pages:{slot}:{directory}"

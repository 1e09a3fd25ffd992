"""Finished pages in memcached, for Nginx to read.

The body of `/posts/page/2/` is stored under `PREFIX:page:/posts/page/2/`; sites that share a memcached have different
prefixes. memcached cannot list its keys, so an index names the pages below each directory: a text that grows by a line
a page. Each index covers one time to live, so every page in memcached is listed in the current index or in the one
before.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from functools import cache

from pymemcache.client.base import PooledClient
from pymemcache.exceptions import MemcacheError

from benchapp.caching import registry
from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import can_be_served
from benchapp.caching.pages import PageStore, middleware_of
from benchapp.caching.private_apis.django_backends import SharedMemcachedCache
from benchapp.caching.resilience import Retry

GENERATION = "pages:generation"
# A prefix with fewer segments (`/posts/`) covers most of the site: all pages are removed, and no index is that wide.
MIN_INDEXED_SEGMENTS = 2
RETRY_S = 0.5

logger = logging.getLogger(__name__)


class MemcachedStore(PageStore):
    """The pages of a site in one memcached; without a prefix no other site may use the same memcached."""

    def __init__(self, address: str, seconds: int, prefix: str = "") -> None:
        self.seconds = seconds
        self.prefix = f"{prefix}:" if prefix else ""
        # Under keys that Nginx can make. A memcached that hangs is skipped for a moment; nothing is raised.
        self.cache = self.locks = SharedMemcachedCache(
            address, {"KEY_FUNCTION": lambda key, prefix, version: f"{self.prefix}{key}"}
        )
        self._retry = Retry(self._flush, RETRY_S)

    @property
    def client(self) -> PooledClient:
        """The client below, for purges: always tried, and raises on failure."""
        return self.cache.only_client

    def generation(self) -> str:
        if (current := self.cache.get(GENERATION)) is None:
            # `add` lets the first of several workers win.
            self.cache.add(GENERATION, _new_generation(), None)
            current = self.cache.get(GENERATION)
        if current is None:
            raise OSError("memcached does not take the generation")
        return current.decode("ascii")

    def read(self, name: str) -> bytes | None:
        return self.cache.get(_key(name))

    def write(self, path: str, body: bytes, generation: str) -> bool:
        self._add_to_index(path)
        if self.generation() == generation and not self.cache.set_many({_key(path): body}, self.seconds):
            if self.generation() == generation:
                return True
            # A purge between the lines above has not seen the page.
            self.cache.delete(_key(path))
        return False

    def purge(self, stale: StalePages) -> None:
        try:
            self.client.set(f"{self.prefix}{GENERATION}", _new_generation(), noreply=False)
            if any(prefix.count("/") <= MIN_INDEXED_SEGMENTS for prefix in stale.prefixes):
                self.client.flush_all(noreply=False)
                return
            below = [path for prefix in stale.prefixes for path in self._below(prefix)]
            paths = [path for path in {*stale.paths, *stale.prefixes, *below} if can_be_served(path)]
            keys = [f"{self.prefix}{_key(path)}" for path in paths]
            # A reply is waited for: a reader on another connection must not be faster.
            self.client.delete_many(keys, noreply=False)
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
        """Add a page to the index of each directory that a purge looks up; OSError if an index misses the page."""
        line = f"{path}\n".encode("ascii")
        segments, append = path.split("/")[1:-1], self.cache.append
        for count in range(MIN_INDEXED_SEGMENTS, len(segments) + 1):
            key = _index("/" + "".join(f"{segment}/" for segment in segments[:count]), self._slot())
            # Three slots: no index expires before a page that it lists.
            if not (append(key, line) or self.cache.add(key, line, 3 * self.seconds) or append(key, line)):
                raise OSError(f"memcached does not list {path}")

    def _below(self, prefix: str) -> Iterator[str]:
        slot = self._slot()
        keys = [f"{self.prefix}{_index(prefix, number)}" for number in (slot, slot - 1)]
        for text in self.client.get_many(keys).values():
            yield from text.decode("ascii").split()

    def _slot(self) -> int:
        return int(time.time()) // self.seconds


def active_store() -> MemcachedStore:
    """The store of the layer `nginx-memcached`."""
    options = registry.options("nginx-memcached")
    return _store(options["address"], app_settings.CACHING_SECONDS, options.get("prefix", ""))


@cache
def _store(address: str, seconds: int, prefix: str) -> MemcachedStore:
    return MemcachedStore(address, seconds, prefix)


middleware = middleware_of(active_store)


def purge(stale: StalePages) -> None:
    """For the layer `nginx-memcached`: remove stale pages."""
    active_store().purge(stale)


def _new_generation() -> bytes:
    return secrets.token_hex(16).encode("ascii")


def _key(path: str) -> str:
    return f"page:{path}"


def _index(directory: str, slot: int) -> str:
    return f"pages:{slot}:{directory}"

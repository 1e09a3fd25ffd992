"""Finished pages in uWSGI's shared memory: uWSGI serves them before Python runs.

The cache is called `pages` in uWSGI's configuration; the page of `/posts/page/2/` is stored under its path. Only the
workers reach it: a write by a command of `manage.py` shows after the time to live.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed

from benchapp.caching.invalidation import StalePages
from benchapp.caching.page_store import PageStore, StorePages

try:
    import uwsgi
except ImportError:  # not inside a worker
    uwsgi = None

CACHE = "pages"
GENERATION = "generation"  # not a path: those begin with a slash

# uWSGI serves an expired page until it removes it, at this interval: `cache-expire-freq` in its configuration.
SWEEP_S = 1


class UwsgiStore:
    """The pages in the shared memory of the workers."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.locks = UwsgiLocks()

    def generation(self) -> str:
        current = uwsgi.cache_get(GENERATION, CACHE)
        if current is None:
            with _locked():
                current = uwsgi.cache_get(GENERATION, CACHE) or self._renew()
        return current.decode("ascii")

    def get(self, path: str) -> bytes | None:
        return uwsgi.cache_get(path, CACHE)

    def put(self, path: str, body: bytes, generation: str) -> bool:
        with _locked():
            if (uwsgi.cache_get(GENERATION, CACHE) or b"").decode("ascii") != generation:
                return False
            # A page larger than the cache takes is not stored; the answer is None.
            return bool(uwsgi.cache_update(path, body, max(1, self.seconds - SWEEP_S), CACHE))

    def purge(self, stale: StalePages) -> None:
        with _locked():
            self._renew()
            for key in uwsgi.cache_keys(CACHE):
                if stale.covers(path := key.decode("ascii")):
                    uwsgi.cache_del(path, CACHE)

    def _renew(self) -> bytes:
        new = secrets.token_hex(16).encode("ascii")
        uwsgi.cache_update(GENERATION, new, 0, CACHE)
        return new


class UwsgiLocks:
    """Render locks in the same memory; like the generation, under keys that are not paths."""

    def add(self, key: str, value: str, seconds: int) -> bool:
        return bool(uwsgi.cache_set(key, value.encode("ascii"), seconds, CACHE))  # fails if it is there

    def get(self, key: str) -> str | None:
        value = uwsgi.cache_get(key, CACHE)
        return value.decode("ascii") if value else None

    def set(self, key: str, value: str, seconds: int) -> None:
        uwsgi.cache_update(key, value.encode("ascii"), seconds, CACHE)

    def delete(self, key: str) -> None:
        uwsgi.cache_del(key, CACHE)


class StoreInUwsgi(StorePages):
    """Middleware of the layer `uwsgi-cache`; unused outside of uWSGI's workers."""

    def open_store(self) -> PageStore:
        if uwsgi is None:
            raise MiddlewareNotUsed("not in a worker of uWSGI")
        return UwsgiStore(settings.CACHING_SECONDS)


def purge(stale: StalePages, **kwargs: object) -> None:
    """Receiver of the layer `uwsgi-cache`: remove stale pages."""
    if uwsgi is not None:
        UwsgiStore(settings.CACHING_SECONDS).purge(stale)


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Hold the lock that all workers share."""
    uwsgi.lock()
    try:
        yield
    finally:
        uwsgi.unlock()

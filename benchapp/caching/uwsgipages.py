"""Finished pages in uWSGI's shared memory, for uWSGI to answer with before Python runs.

The cache is called `pages` in uWSGI's file; the page of `/posts/page/2/` is kept under its path. Only the workers can
reach it: a write by a command of `manage.py` shows when the time to live is up.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed

from benchapp.caching.finishedpages import KeepFinishedPages, Store
from benchapp.caching.staleness import Stale, pages_stale

try:
    import uwsgi
except ImportError:  # not inside a worker
    uwsgi = None

CACHE = "pages"
GENERATION = "generation"  # no path: those begin with a slash

# uWSGI serves a page whose time is up until it removes it: so often, `cache-expire-freq` in its file.
SWEEP_S = 1

logger = logging.getLogger(__name__)


class UwsgiPages:
    """The pages in the shared memory of the workers."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.marks = UwsgiMarks()

    def generation(self) -> str | None:
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
            # None, and nothing kept, when the page is larger than the cache takes.
            return bool(uwsgi.cache_update(path, body, max(1, self.seconds - SWEEP_S), CACHE))

    def purge(self, stale: Stale) -> None:
        with _locked():
            self._renew()
            for key in uwsgi.cache_keys(CACHE):
                if stale.covers(path := key.decode("ascii")):
                    uwsgi.cache_del(path, CACHE)

    def _renew(self) -> bytes:
        new = secrets.token_hex(16).encode("ascii")
        uwsgi.cache_update(GENERATION, new, 0, CACHE)
        return new


class UwsgiMarks:
    """The marks of who renders what, in the same memory; like the generation, under keys that are no paths."""

    def add(self, key: str, value: str, seconds: int) -> bool:
        return bool(uwsgi.cache_set(key, value.encode("ascii"), seconds, CACHE))  # not if it is there

    def get(self, key: str) -> str | None:
        value = uwsgi.cache_get(key, CACHE)
        return value.decode("ascii") if value else None

    def set(self, key: str, value: str, seconds: int) -> None:
        uwsgi.cache_update(key, value.encode("ascii"), seconds, CACHE)

    def delete(self, key: str) -> None:
        uwsgi.cache_del(key, CACHE)


class KeepInUwsgi(KeepFinishedPages):
    """Middleware of the layer uwsgi-cache."""

    def open_store(self) -> Store:
        if not settings.BENCHAPP_UWSGI_PAGES or uwsgi is None:
            raise MiddlewareNotUsed("BENCHAPP_UWSGI_PAGES is 0, or this is no worker of uWSGI")
        return UwsgiPages(settings.BENCHAPP_CACHE_SECONDS)


def connect() -> None:
    """Purge on every write, if the layer is on; called once, when the application is ready."""
    pages_stale.connect(_purge, dispatch_uid="uwsgipages")


def _purge(stale: Stale, **kwargs: object) -> None:
    if settings.BENCHAPP_UWSGI_PAGES and uwsgi is not None:
        UwsgiPages(settings.BENCHAPP_CACHE_SECONDS).purge(stale)


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Hold the lock that all workers share."""
    uwsgi.lock()
    try:
        yield
    finally:
        uwsgi.unlock()

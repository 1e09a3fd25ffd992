"""Finished pages in uWSGI's shared memory: uWSGI serves them before Python runs.

uWSGI's configuration has two caches: `pages`, with the page of `/posts/page/2/` under its path, and `guards`, with the
generation and the render locks. A full cache takes no entry, not even a new value for an old one; `guards` has blocks
of one size, so a new generation fits in place of the old one however full the cache is.

Only the workers reach the caches: a write by a command of `manage.py` shows after the time to live. A reload replaces
the workers and keeps the caches: each worker empties them when it starts, since a reload may bring a new version of the
site.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

from django.core.exceptions import MiddlewareNotUsed

from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages, all_pages
from benchapp.caching.pages import PageStore, middleware_of

try:
    import uwsgi
except ImportError:  # not inside a worker
    uwsgi = None

PAGES, GUARDS = "pages", "guards"
GENERATION = "generation"

# uWSGI serves an expired page until it removes it, at this interval: `cache-expire-freq` in its configuration.
SWEEP_S = 1


class UwsgiStore(PageStore):
    """The pages in the shared memory of the workers."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.locks = UwsgiLocks()

    def generation(self) -> str:
        current = uwsgi.cache_get(GENERATION, GUARDS)
        if current is None:
            with _locked():
                current = uwsgi.cache_get(GENERATION, GUARDS) or self._renew()
        if current is None:
            raise OSError("uWSGI's cache `guards` does not take the generation")
        return current.decode("ascii")

    def read(self, name: str) -> bytes | None:
        return uwsgi.cache_get(name, PAGES)

    def write(self, name: str, body: bytes, generation: str) -> bool:
        with _locked():
            if (uwsgi.cache_get(GENERATION, GUARDS) or b"").decode("ascii") != generation:
                return False
            # A page without room, or too large a page, is not stored: None is returned.
            return bool(uwsgi.cache_update(name, body, max(1, self.seconds - SWEEP_S), PAGES))

    def purge(self, stale: StalePages) -> None:
        with _locked():
            self._renew()
            for key in uwsgi.cache_keys(PAGES):
                if stale.covers(path := key.decode("ascii")):
                    uwsgi.cache_del(path, PAGES)

    def _renew(self) -> bytes | None:
        """The new generation; None if uWSGI refuses the entry: then no rendering is stored."""
        new = secrets.token_hex(16).encode("ascii")
        if uwsgi.cache_update(GENERATION, new, 0, GUARDS):
            return new
        uwsgi.cache_del(GENERATION, GUARDS)
        return None


class UwsgiLocks:
    """Render locks in the same memory."""

    def add(self, key: str, value: str, seconds: int) -> bool:
        return bool(uwsgi.cache_set(key, value.encode("ascii"), seconds, GUARDS))  # fails if it is there

    def get(self, key: str) -> str | None:
        value = uwsgi.cache_get(key, GUARDS)
        return value.decode("ascii") if value else None

    def set(self, key: str, value: str, seconds: int) -> None:
        if not uwsgi.cache_update(key, value.encode("ascii"), seconds, GUARDS):
            raise OSError("uWSGI's cache `guards` is full")

    def delete(self, key: str) -> None:
        uwsgi.cache_del(key, GUARDS)


def _open_store() -> UwsgiStore:
    if uwsgi is None:
        raise MiddlewareNotUsed("not in a worker of uWSGI")
    store = UwsgiStore(app_settings.CACHING_SECONDS)
    store.purge(all_pages())
    return store


# Of the layer `uwsgi-cache`; unused outside of uWSGI's workers.
middleware = middleware_of(_open_store)


def purge(stale: StalePages) -> None:
    """For the layer `uwsgi-cache`: remove stale pages."""
    if uwsgi is not None:
        UwsgiStore(app_settings.CACHING_SECONDS).purge(stale)


def entries() -> int:
    """For the layer `uwsgi-cache`: the number of pages, locks and generations in the shared memory."""
    if uwsgi is None:
        return 0
    return len(uwsgi.cache_keys(PAGES)) + len(uwsgi.cache_keys(GUARDS))


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Hold the lock that all workers share."""
    uwsgi.lock()
    try:
        yield
    finally:
        uwsgi.unlock()

"""Whole pages in Django's cache: the layer `page-cache`."""

from __future__ import annotations

from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.http import HttpResponse

from benchapp.caching.generations import generation, renew
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import digest
from benchapp.caching.pages import PageStore, middleware_of


class DjangoCacheStore(PageStore):
    """Pages in the cache that CACHE_MIDDLEWARE_ALIAS names, each with its generation; one lookup finds both."""

    bodies = False

    @property
    def locks(self) -> BaseCache:
        """The cache itself; each thread has its own object of it."""
        return caches[settings.CACHE_MIDDLEWARE_ALIAS]

    def look_up(self, name: str, coding: str) -> tuple[HttpResponse | None, str]:
        key = self._key(name, coding)
        current, found = generation(self.locks, name, [key])
        stored_under, content, headers = found.get(key, (None, b"", {}))
        return (HttpResponse(content, headers=headers) if stored_under == current else None), current

    def get(self, name: str, coding: str) -> HttpResponse | None:
        return self.look_up(name, coding)[0]

    def put(self, name: str, coding: str, page: HttpResponse, generation: str) -> bool:
        key = self._key(name, coding)
        self.locks.set(key, (generation, page.content, dict(page.items())), settings.CACHING_SECONDS)
        # A page that is too large for the cache is not there.
        return self.locks.has_key(key)

    def _key(self, name: str, coding: str) -> str:
        return f"page.{coding}.{digest(name)}"


middleware = middleware_of(DjangoCacheStore)


def purge(stale: StalePages) -> None:
    """Give stale pages new generations."""
    renew(settings.CACHE_MIDDLEWARE_ALIAS, stale)

"""Whole pages in Django's cache: the layer `page-cache`."""

from __future__ import annotations

import time

from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.http import HttpResponse

from benchapp.caching.cacheability import lifetime
from benchapp.caching.generations import generation, renew
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import digest
from benchapp.caching.pages import PageStore, middleware_of


class DjangoCacheStore(PageStore):
    """Pages in the cache of CACHE_MIDDLEWARE_ALIAS, each with its generation; one lookup finds both."""

    bodies = False

    @property
    def locks(self) -> BaseCache:
        """The cache itself; each thread has a separate object."""
        return caches[settings.CACHE_MIDDLEWARE_ALIAS]

    def look_up(self, name: str, variant: str) -> tuple[HttpResponse | None, str]:
        key = self._key(name, variant)
        current, values = generation(self.locks, name, [key])
        stored_under, stored_at, content, headers = values.get(key, ("", 0, b"", {}))
        if stored_under != current:
            return None, current
        page = HttpResponse(content, headers=headers)
        if "max-age" in headers.get("Cache-Control", ""):
            # For browsers it counts from the rendering.
            page.headers["Age"] = str(max(0, int(time.time() - stored_at)))
        return page, current

    def get(self, name: str, variant: str) -> HttpResponse | None:
        return self.look_up(name, variant)[0]

    def put(self, name: str, variant: str, page: HttpResponse, generation: str) -> bool:
        key = self._key(name, variant)
        self.locks.set(key, (generation, time.time(), page.content, dict(page.items())), lifetime(page))
        # A page that is too large for the cache is not there.
        return self.locks.has_key(key)

    def _key(self, name: str, variant: str) -> str:
        return f"page.{digest(f'{variant} {name}')}"


middleware = middleware_of(DjangoCacheStore)


def purge(stale: StalePages) -> None:
    """Give stale pages new generations."""
    renew(settings.CACHE_MIDDLEWARE_ALIAS, stale)

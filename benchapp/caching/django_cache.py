"""Whole pages in Django's cache: the layers `page-cache` and `view-cache`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.http import HttpRequest, HttpResponse

from benchapp.caching import registry
from benchapp.caching.cacheability import lifetime
from benchapp.caching.generations import generation, renew
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import digest
from benchapp.caching.pages import PageStore, cached_or_rendered, middleware_of

View = Callable[..., HttpResponse]


class DjangoCacheStore(PageStore):
    """Pages in the cache that CACHE_MIDDLEWARE_ALIAS names, each with its generation; one lookup finds both."""

    bodies = False

    def __init__(self, prefix: str) -> None:
        """`prefix` keeps the pages of two layers apart."""
        self.prefix = prefix

    @property
    def locks(self) -> BaseCache:
        """The cache itself; each thread has its own object of it."""
        return caches[settings.CACHE_MIDDLEWARE_ALIAS]

    def look_up(self, name: str, variant: str) -> tuple[HttpResponse | None, str]:
        key = self._key(name, variant)
        current, found = generation(self.locks, name, [key])
        stored_under, stored_at, content, headers = found.get(key, ("", 0, b"", {}))
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
        return f"page.{self.prefix}.{digest(f'{variant} {name}')}"


# Of the layer `page-cache`.
middleware = middleware_of(lambda: DjangoCacheStore("site"))


def cache_public_page(view: View) -> View:
    """Cache the pages of a public view for anonymous visitors, while the layer `view-cache` is active."""
    store = DjangoCacheStore("view")

    @wraps(view)
    def cached(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not registry.is_active("view-cache"):
            return view(request, *args, **kwargs)

        def rendered() -> HttpResponse:
            response = view(request, *args, **kwargs)
            # That of a class-based view is rendered later, else.
            return response.render() if hasattr(response, "render") else response

        return cached_or_rendered(store, request, rendered)

    return cached


def purge(stale: StalePages) -> None:
    """For both layers: give stale pages new generations."""
    renew(settings.CACHE_MIDDLEWARE_ALIAS, stale)

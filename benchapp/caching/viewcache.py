"""Django's `cache_page` on the public views, safe with sessions.

Alone, `cache_page` on a view that reads the session stores the page before the session middleware has said that
it varies with the cookie, so that the second account gets the page of the first, with its name. Here only
nobody's pages are stored and only nobody is answered from the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.cache import CacheMiddleware
from django.utils.decorators import decorator_from_middleware_with_args

from benchapp.caching.anonymouspages import failed, fetch, store
from benchapp.middleware import name_rendering

View = Callable[..., HttpResponse]


class AnonymousPages(CacheMiddleware):
    """Django's cache of a view, which looks only at what may be shared."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        return fetch(self, request)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        return store(self, request, response)

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        failed(self, request)


_cached = decorator_from_middleware_with_args(AnonymousPages)


def keep_public(view: View) -> View:
    """Keep the pages of a public view for anonymous readers, while BENCHAPP_VIEW_CACHE is on."""
    named = _named(view)
    kept = _cached(page_timeout=settings.BENCHAPP_CACHE_SECONDS, key_prefix="view")(named)

    @wraps(view)
    def chosen(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        return (kept if settings.BENCHAPP_VIEW_CACHE else view)(request, *args, **kwargs)

    return chosen


def _named(view: View) -> View:
    """The view with its rendering named before it is stored: the middleware that does it otherwise is further out."""

    @wraps(view)
    def named(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        return name_rendering(view(request, *args, **kwargs))

    return named

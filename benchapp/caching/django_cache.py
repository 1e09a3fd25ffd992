"""Whole pages in Django's cache, for anonymous visitors: the layers `site-middleware` and `view-cache`.

Django's per-site middleware also stores a copy of every page for each session cookie: visitors who post a comment do
not see it until their copy expires. It stores one for each analytics cookie and each made-up query string, too. And
`cache_page` on a view that reads the session stores the page before the session middleware has added `Vary: Cookie`:
the second account gets the page of the first. Here only anonymous pages are stored, and only anonymous visitors are
answered from the cache.

Django looks up pages under a fixed key prefix. Here a page's generation is part of the prefix (`generations`), and
one request renders a missing page while others wait (`render_lock`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import wraps
from hashlib import md5

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.cache import CacheMiddleware, FetchFromCacheMiddleware, UpdateCacheMiddleware
from django.utils.decorators import decorator_from_middleware_with_args

from benchapp.caching import registry
from benchapp.caching.cacheability import may_answer, may_store, may_store_for
from benchapp.caching.generations import generation, renew
from benchapp.caching.invalidation import StalePages
from benchapp.caching.render_lock import RenderLock, wait_or_lock

View = Callable[..., HttpResponse]

# Django's middleware sets these on a cached page. Browsers would store it too, where no invalidation reaches it.
LIFETIME_HEADERS = ("Cache-Control", "Expires")


class UpdateCache(UpdateCacheMiddleware):
    """The storing half of the per-site middleware, outermost."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        return _store(self, request, response)


class FetchFromCache(FetchFromCacheMiddleware):
    """The fetching half of the per-site middleware, innermost."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        return _fetch(self, request)


class ViewCache(CacheMiddleware):
    """Both halves around one view."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        return _fetch(self, request)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        return _store(self, request, response)

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        rendering = _renderings(request).pop(self.key_prefix, None)
        if rendering and rendering.lock:
            rendering.lock.release(cached=False)


_view_cache = decorator_from_middleware_with_args(ViewCache)


def cache_public_page(view: View) -> View:
    """Cache the pages of a public view for anonymous visitors, while the layer `view-cache` is active."""
    cached = _view_cache(page_timeout=settings.CACHING_SECONDS, key_prefix="view")(view)

    @wraps(view)
    def chosen(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        return (cached if registry.is_active("view-cache") else view)(request, *args, **kwargs)

    return chosen


def purge(stale: StalePages, **kwargs: object) -> None:
    """Receiver of both layers: make stale pages unreachable."""
    renew(settings.CACHE_MIDDLEWARE_ALIAS, stale)


@dataclass(frozen=True)
class Rendering:
    """A cacheable page being rendered: the key prefix to store it under, and the lock that others wait for."""

    prefix: str
    lock: RenderLock | None


def _fetch(middleware: FetchFromCacheMiddleware, request: HttpRequest) -> HttpResponse | None:
    """The cached page for this request; None on a miss, and then `_store` gets the response."""
    request._cache_update_cache = False
    if not may_answer(request):
        return None
    # Pages vary with the cookie, but not for anonymous visitors: without this line each value of an analytics cookie
    # would be a variant of its own.
    cookies = request.META.pop("HTTP_COOKIE", None)
    prefix = f"{middleware.key_prefix}.{generation(middleware.cache, request.path)}"
    lookup = _lookup(middleware, request, prefix)
    cached = lookup()
    if cached is None and may_store_for(request):
        cached, lock = wait_or_lock(middleware.cache, _lock_key(prefix, request.path), lookup)
        if cached is None:
            _renderings(request)[middleware.key_prefix] = Rendering(prefix, lock)
    elif cached is None:
        request._cache_update_cache = False
        if cookies is not None:
            request.META["HTTP_COOKIE"] = cookies
    return cached


def _store(middleware: UpdateCacheMiddleware, request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Store the response if it is cacheable, and release the lock that others wait for."""
    if (rendering := _renderings(request).pop(middleware.key_prefix, None)) is None:
        return response
    if cacheable := request._cache_update_cache and may_store(response) and not _is_personal(request):
        bound = copy(middleware)
        bound.key_prefix = rendering.prefix
        response.own_lifetime = {name: response.headers.get(name) for name in LIFETIME_HEADERS}
        with _without_host(request):
            response = _restore_lifetime(UpdateCacheMiddleware.process_response(bound, request, response))
    if rendering.lock:
        # A page that is too large for the cache is not cacheable either.
        rendering.lock.release(cached=cacheable and _lookup(middleware, request, rendering.prefix)() is not None)
    return response


def _lookup(middleware: object, request: HttpRequest, prefix: str) -> Callable[[], HttpResponse | None]:
    """Django's own lookup of a page, with the generation in its key."""
    bound = copy(middleware)
    bound.key_prefix = prefix

    def lookup() -> HttpResponse | None:
        with _without_host(request):
            found = FetchFromCacheMiddleware.process_request(bound, request)
        return found if found is None else _restore_lifetime(found)

    return lookup


@contextlib.contextmanager
def _without_host(request: HttpRequest) -> Iterator[None]:
    """Keys without the host: Django's hold it as the client wrote it, so each made-up port would be a page."""
    request.build_absolute_uri = request.get_full_path
    try:
        yield
    finally:
        del request.build_absolute_uri


def _is_personal(request: HttpRequest) -> bool:
    """Whether the view used a CSRF token or wrote to the session: their cookies are set further out, later."""
    session = getattr(request, "session", None)
    return bool(request.META.get("CSRF_COOKIE_NEEDS_UPDATE") or (session is not None and session.modified))


def _restore_lifetime(response: HttpResponse) -> HttpResponse:
    """Undo what Django's middleware says of a page's lifetime."""
    for name, value in response.own_lifetime.items():
        if value is None:
            response.headers.pop(name, None)
        else:
            response.headers[name] = value
    return response


def _renderings(request: HttpRequest) -> dict[str, Rendering]:
    """The cacheable pages being rendered for this request, by the key prefix of the layer: two may be joined."""
    return request.__dict__.setdefault("_cacheable_renderings", {})


def _lock_key(prefix: str, path: str) -> str:
    digest = md5(f"{prefix}{path}".encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return f"render-lock.{digest}"

"""What the two layers on Django's cache middleware share: whose pages they keep, and under which keys.

Django's own middleware looks at one page at a time under a fixed key prefix. Here a page's generation is part of the
prefix (`generations`), and of those who ask for a page that is not kept, one renders it (`turns`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from hashlib import md5

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.cache import FetchFromCacheMiddleware, UpdateCacheMiddleware

from benchapp.caching.eligible import request_may_be_answered, request_may_be_stored, response_may_be_stored
from benchapp.caching.generations import generation, renew
from benchapp.caching.staleness import Stale, pages_stale
from benchapp.caching.turns import Turn, wait_or_take

# Headers by which Django's middleware says how long a kept page may be kept elsewhere.
SAYS_AGE = ("Cache-Control", "Expires")


@dataclass(frozen=True)
class Rendering:
    """A rendering that may be kept: under which key prefix, and the turn of it while others wait."""

    prefix: str
    turn: Turn | None


def fetch(middleware: FetchFromCacheMiddleware, request: HttpRequest) -> HttpResponse | None:
    """The kept page for this request, or None; then `store` is to be told of the response."""
    request._cache_update_cache = False
    if not request_may_be_answered(request):
        return None
    # Pages vary with the cookie in general but not for anonymous readers: without this line each value of an
    # analytics cookie would be a variant of its own.
    cookies = request.META.pop("HTTP_COOKIE", None)
    prefix = f"{middleware.key_prefix}.{generation(middleware.cache, request.path)}"
    look = _look(middleware, request, prefix)
    stored = look()
    if stored is None and request_may_be_stored(request):
        stored, turn = wait_or_take(middleware.cache, _turn_key(prefix, request.path), look)
        if stored is None:
            _renderings(request)[middleware.key_prefix] = Rendering(prefix, turn)
    elif stored is None:
        request._cache_update_cache = False
        if cookies is not None:
            request.META["HTTP_COOKIE"] = cookies
    return stored


def store(middleware: UpdateCacheMiddleware, request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Keep the response if it may be shared, and let those go on who wait for it."""
    if (rendering := _renderings(request).pop(middleware.key_prefix, None)) is None:
        return response
    if may := request._cache_update_cache and response_may_be_stored(response) and not _is_personal(request):
        bound = copy(middleware)
        bound.key_prefix = rendering.prefix
        response.said_of_age = {name: response.headers.get(name) for name in SAYS_AGE}
        with _under_one_host(request):
            response = _as_said(UpdateCacheMiddleware.process_response(bound, request, response))
    if rendering.turn:
        # A page that is larger than the cache takes is not for keeping either.
        rendering.turn.end(kept=may and _look(middleware, request, rendering.prefix)() is not None)
    return response


def failed(middleware: UpdateCacheMiddleware, request: HttpRequest) -> None:
    """The rendering has ended without a response."""
    rendering = _renderings(request).pop(middleware.key_prefix, None)
    if rendering and rendering.turn:
        rendering.turn.end(kept=False)


def connect() -> None:
    """Forget what a write makes stale, if one of the layers is on; called once, when the application is ready."""
    pages_stale.connect(_forget, dispatch_uid="anonymouspages")


def _forget(stale: Stale, **kwargs: object) -> None:
    if settings.BENCHAPP_SITE_MIDDLEWARE or settings.BENCHAPP_VIEW_CACHE:
        renew(settings.CACHE_MIDDLEWARE_ALIAS, stale)


def _look(middleware: object, request: HttpRequest, prefix: str) -> Callable[[], HttpResponse | None]:
    """Django's own look for a page, with the generation in its key."""
    bound = copy(middleware)
    bound.key_prefix = prefix

    def look() -> HttpResponse | None:
        with _under_one_host(request):
            found = FetchFromCacheMiddleware.process_request(bound, request)
        return found if found is None else _as_said(found)

    return look


@contextlib.contextmanager
def _under_one_host(request: HttpRequest) -> Iterator[None]:
    """Keys without the host: Django's hold it as the client wrote it, and each made-up port would be a page."""
    request.build_absolute_uri = request.get_full_path
    try:
        yield
    finally:
        del request.build_absolute_uri


def _is_personal(request: HttpRequest) -> bool:
    """Whether the view used a CSRF token or wrote to the session: a view's own cache sees no cookie of theirs yet."""
    session = getattr(request, "session", None)
    return bool(request.META.get("CSRF_COOKIE_NEEDS_UPDATE") or (session is not None and session.modified))


def _as_said(response: HttpResponse) -> HttpResponse:
    """The response as the view made it: Django tells browsers to keep a kept page too, where no write can reach it."""
    for name, value in response.said_of_age.items():
        if value is None:
            response.headers.pop(name, None)
        else:
            response.headers[name] = value
    return response


def _renderings(request: HttpRequest) -> dict[str, Rendering]:
    """The renderings under way for this request, by the key prefix of the layer: two layers may be joined."""
    return request.__dict__.setdefault("_renderings_to_keep", {})


def _turn_key(prefix: str, path: str) -> str:
    return f"turn.{md5(f'{prefix}{path}'.encode('utf-8', 'surrogatepass'), usedforsecurity=False).hexdigest()}"

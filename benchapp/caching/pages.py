"""Whole pages for anonymous visitors: one middleware, and the places where it stores them.

A store is a Django cache (`django_cache`), from which the middleware answers by itself, or a cache that a server in
front of the application reads: files for any web server, memcached for Nginx, shared memory for uWSGI (`stores`).
Those hold the body of a page under its name; a hit has none of the application's headers, so the server's configuration
adds them.

Django's own per-site middleware would not do: it stores a copy of each page for each session cookie, for each analytics
cookie and each made-up query string, a page rendered before a write comes back after it, and all requests for a missing
page render it.

**A slow rendering cannot bring stale data back**: a page has a generation that each write that concerns it renews. A
rendering reads it before it reads anything from the database; its page is stored only if that is still the same.

Of the requests for a page that is not stored, one renders it and the others wait (`render_lock`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from django.conf import settings
from django.core.cache.backends.base import BaseCache
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import parse_http_date_safe

from benchapp.caching.cacheability import has_only_common_headers, may_answer, may_store, may_store_for
from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import can_be_served, digest, page_name
from benchapp.caching.render_lock import release, wait_or_lock

GetResponse = Callable[..., HttpResponse]
logger = logging.getLogger(__name__)


class PageStore:
    """Where pages are stored: their bodies, for a server to send. A subclass says how.

    Every method raises OSError for a store that cannot be used.
    """

    bodies = True
    # A cache that all workers share, or what is like one.
    locks: BaseCache

    def generation(self) -> str:
        """The current generation of all pages."""
        raise NotImplementedError

    def read(self, name: str) -> bytes | None:
        """The body, as a server would find it now."""
        raise NotImplementedError

    def write(self, name: str, body: bytes, generation: str) -> bool:
        """Store a body unless there was a purge since `generation`; returns whether it is stored."""
        raise NotImplementedError

    def purge(self, stale: StalePages) -> None:
        """Remove stale pages, and refuse those that are being rendered at this moment."""
        raise NotImplementedError

    def look_up(self, name: str, coding: str) -> tuple[HttpResponse | None, str]:
        """The page in that content coding, and its current generation. No page: the server has looked already."""
        return None, self.generation()

    def get(self, name: str, coding: str) -> HttpResponse | None:
        """The page, as the next request would find it; middleware further out adds the rest of its headers."""
        if (body := self.read(name)) is None:
            return None
        headers = {"Vary": "Cookie", "X-Frame-Options": settings.X_FRAME_OPTIONS}
        headers |= app_settings.CACHING_PAGE_HEADERS
        return HttpResponse(body, content_type="text/html; charset=utf-8", headers=headers)

    def put(self, name: str, coding: str, page: HttpResponse, generation: str) -> bool:
        """Store a page unless a write concerned it since `generation`; returns whether it is stored."""
        return has_only_common_headers(page) and self.write(name, page.content, generation)


def middleware_of(open_store: Callable[[], PageStore]) -> Callable[[GetResponse], GetResponse]:
    """Middleware that answers with stored pages and stores those that are cacheable.

    A store that cannot be used is logged and costs no visitor the page.
    """

    def middleware(get_response: GetResponse) -> GetResponse:
        store = open_store()
        return lambda request: cached_or_rendered(store, request, partial(get_response, request))

    return middleware


def cached_or_rendered(store: PageStore, request: HttpRequest, render: Callable[[], HttpResponse]) -> HttpResponse:
    """The page from the store, or rendered, and then stored if it is cacheable."""
    name = page_name(request.path)
    if not may_answer(request) or (store.bodies and not can_be_served(name)):
        return render()
    stores = may_store_for(request)
    coding = normalized_coding(request, identity_only=store.bodies) if stores or not store.bodies else ""
    try:
        page, generation = store.look_up(name, coding)
        if page is None and stores:
            # The generation is part of the key: nobody waits for a rendering that began before a write.
            key = f"render-lock-{generation[:8]}-{digest(coding + name)}"
            page, has_lock = wait_or_lock(store.locks, key, partial(store.get, name, coding))
    except OSError as error:
        logger.warning("pages cannot be stored: %s", error)
        return render()
    if page is not None:
        return _unless_client_has_it(request, page)
    if not stores:
        return render()
    stored = False
    try:
        response = render()
        if may_store(request, response, coding):
            try:
                stored = store.put(name, coding, response, generation)
            except OSError as error:
                logger.warning("page %s not stored: %s", name, error)
    finally:
        if has_lock:
            release(store.locks, key, cached=stored)
    return response


def _unless_client_has_it(request: HttpRequest, page: HttpResponse) -> HttpResponse:
    """The page, or 304 for a browser that has it: the project's ConditionalGetMiddleware is further in."""
    etag, modified = page.get("ETag"), parse_http_date_safe(page.get("Last-Modified", ""))
    return get_conditional_response(request, etag, modified, page) if etag or modified else page


def normalized_coding(request: HttpRequest, identity_only: bool) -> str:
    """Let the request accept gzip or nothing, so that a page has two codings at most; returns `gzip` or nothing.

    identity_only  whether the server in front compresses, if anything does
    """
    coding = "" if identity_only or "gzip" not in request.META.get("HTTP_ACCEPT_ENCODING", "") else "gzip"
    request.META["HTTP_ACCEPT_ENCODING"] = coding or "identity"
    return coding

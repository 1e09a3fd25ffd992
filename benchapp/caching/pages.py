"""Whole pages for anonymous visitors: one middleware, and the places where pages are stored.

A store is a Django cache (`django_cache`), from which the middleware itself serves pages, or a cache that a server in
front of the application reads: files for any web server, memcached for Nginx, shared memory for uWSGI (`stores`).
Stores for a server hold the body of a page under its name; a hit has no header of the application, so the server's
configuration adds the headers.

Django's own per-site middleware stores a copy of each page for each session cookie, analytics cookie and made-up query
string, brings back a page rendered before a write, and renders a missing page for each request.

**A slow rendering cannot bring stale data back**: a page has a generation, renewed by each write that concerns the
page. A rendering reads the generation before the first query; the page is stored only if the generation is the same
afterwards.

Of the requests for a page that is not stored, one renders the page and the others wait (`render_lock`).
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

from benchapp.caching.cacheability import (
    has_only_common_headers,
    reason_not_to_store,
    reason_to_pass,
    reason_to_render,
)
from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import can_be_served, digest, page_name
from benchapp.caching.outcome import HIT, MISS, passed, report
from benchapp.caching.render_lock import release, wait_or_lock
from benchapp.caching.variants import Variant, language_of, query_of, rendering_of

GetResponse = Callable[..., HttpResponse]
logger = logging.getLogger(__name__)


class PageStore:
    """Store of pages: their bodies, for a server to send. A subclass says how.

    Every method raises OSError if the store cannot be used.
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
        """Store a body unless a purge came since `generation`; returns whether the body is stored."""
        raise NotImplementedError

    def purge(self, stale: StalePages) -> None:
        """Remove stale pages, and refuse pages that are being rendered now."""
        raise NotImplementedError

    def look_up(self, name: str, variant: str) -> tuple[HttpResponse | None, str]:
        """The page of this variant, and the page's current generation. No page: the server has looked already."""
        return None, self.generation()

    def get(self, name: str, variant: str) -> HttpResponse | None:
        """The page, as the next request would find it; middleware further out adds the rest of the headers."""
        if (body := self.read(name)) is None:
            return None
        headers = {"Vary": "Cookie", "X-Frame-Options": settings.X_FRAME_OPTIONS}
        headers |= app_settings.CACHING_PAGE_HEADERS
        return HttpResponse(body, content_type="text/html; charset=utf-8", headers=headers)

    def put(self, name: str, variant: str, page: HttpResponse, generation: str) -> bool:
        """Store a page unless a write concerned the page since `generation`; returns whether the page is stored."""
        return has_only_common_headers(page) and self.write(name, page.content, generation)


def middleware_of(open_store: Callable[[], PageStore]) -> Callable[[GetResponse], GetResponse]:
    """Middleware that serves stored pages and stores cacheable ones.

    An unusable store is logged, and every visitor still gets the page.
    """

    def middleware(get_response: GetResponse) -> GetResponse:
        store = open_store()
        return lambda request: cached_or_rendered(store, request, partial(get_response, request))

    return middleware


def cached_or_rendered(store: PageStore, request: HttpRequest, render: Callable[[], HttpResponse]) -> HttpResponse:
    """The page from the store, or a rendered one, which is then stored if cacheable."""
    name = page_name(request.path)
    reason, query = _reason_to_pass(store, request, name)
    if reason:
        report(request, passed(reason))
        return render()
    reason = reason_to_render(request)
    language = "" if store.bodies else language_of(request)
    coding = "" if store.bodies and reason else normalized_coding(request, identity_only=store.bodies)
    variant = Variant(query, language, coding)
    lock = ""
    try:
        page, generation = store.look_up(name, variant.key)
        if page is None and not reason:
            # The generation is part of the key: nobody waits for a rendering that began before a write.
            key = f"render-lock-{generation[:8]}-{digest(variant.key + name)}"
            page, has_lock = wait_or_lock(store.locks, key, partial(store.get, name, variant.key))
            lock = key if has_lock else ""
    except OSError as error:
        logger.warning("pages cannot be stored: %s", error)
        report(request, passed("store"))
        return render()
    if page is not None:
        report(request, HIT)
        return _unless_client_has_it(request, page)
    if reason:
        report(request, passed(reason))
        return render()
    stored = False
    try:
        response = rendering_of(request, variant, render)()
        stored = _store(store, request, response, name, variant, generation)
    finally:
        if lock:
            release(store.locks, lock, cached=stored)
    return response


def _reason_to_pass(store: PageStore, request: HttpRequest, name: str) -> tuple[str, str]:
    """The reason why no stored page may be served, and the query string of the page's name."""
    if reason := reason_to_pass(request):
        return reason, ""
    if store.bodies:
        if request.META.get("QUERY_STRING"):
            return "query", ""
        return ("" if can_be_served(name) else "path"), ""
    query = query_of(request)
    return ("query", "") if query is None else ("", query)


def _store(
    store: PageStore, request: HttpRequest, response: HttpResponse, name: str, variant: Variant, generation: str
) -> bool:
    """Store a response if it is a page for everybody, and report the outcome; returns whether the page is stored."""
    reason = reason_not_to_store(request, response, variant.coding, not store.bodies, variant.language)
    if not reason and store.bodies and not has_only_common_headers(response):
        reason = "page-headers"
    if reason:
        report(request, passed(reason))
        return False
    try:
        stored = store.put(name, variant.key, response, generation)
    except OSError as error:
        logger.warning("page %s not stored: %s", name, error)
        stored = False
    report(request, MISS if stored else passed("store"))
    return stored


def _unless_client_has_it(request: HttpRequest, page: HttpResponse) -> HttpResponse:
    """The page, or 304 for a browser with a fresh copy: the project's ConditionalGetMiddleware is further in."""
    etag, modified = page.get("ETag"), parse_http_date_safe(page.get("Last-Modified", ""))
    return get_conditional_response(request, etag, modified, page) if etag or modified else page


def normalized_coding(request: HttpRequest, identity_only: bool) -> str:
    """Let the request accept gzip or nothing, so that a page has at most two codings; returns `gzip` or nothing.

    identity_only  whether only the server in front compresses
    """
    coding = "" if identity_only or "gzip" not in request.META.get("HTTP_ACCEPT_ENCODING", "") else "gzip"
    request.META["HTTP_ACCEPT_ENCODING"] = coding or "identity"
    return coding

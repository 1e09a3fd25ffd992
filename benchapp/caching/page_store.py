"""Finished pages, stored where a server finds them by their path without running Python.

A page store is a cache that a server in front of the application reads by itself: files for any web server, memcached
for Nginx, shared memory for uWSGI (`stores`). It holds the body of a page under its URL path. A hit has none of the
application's headers: the server's configuration adds them.

**A slow rendering cannot bring stale data back**: a store has a generation, a random word that each purge renews. A
rendering reads it before it reads anything from the database; its page is stored only if the word is still the same.

Of the requests for a page that is not stored, one renders it and the others wait (`render_lock`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from hashlib import md5
from typing import Protocol

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse

from benchapp.caching.cacheability import has_only_common_headers, may_store, may_store_for
from benchapp.caching.invalidation import StalePages
from benchapp.caching.render_lock import LockStore, RenderLock, wait_or_lock

# The servers' configurations have the same: paths without escapes, short enough for a key of memcached (250 bytes).
PLAIN_PATH = re.compile(r"/(?:[A-Za-z0-9_-]+/){0,20}", re.ASCII)
MAX_PATH = 200

logger = logging.getLogger(__name__)


class PageStore(Protocol):
    """Where pages are stored. Every method raises OSError for a store that cannot be used."""

    locks: LockStore

    def generation(self) -> str:
        """The current generation."""

    def get(self, path: str) -> bytes | None:
        """The page, as a server would find it now."""

    def put(self, path: str, body: bytes, generation: str) -> bool:
        """Store a page unless there was a purge since `generation`; returns whether it is stored."""

    def purge(self, stale: StalePages) -> None:
        """Remove stale pages, and refuse those that are being rendered at this moment."""


class StorePages:
    """Middleware that puts each cacheable page into a store; subclasses say which one.

    A store that cannot be used is logged and costs no visitor the page.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.store = self.open_store()

    def open_store(self) -> PageStore:
        """The store of the layer."""
        raise NotImplementedError

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not (may_store_for(request) and self.has_key(request.path) and _is_our_host(request)):
            return self.get_response(request)
        try:
            generation = self.store.generation()
        except OSError as error:
            logger.warning("pages cannot be stored: %s", error)
            return self.get_response(request)
        # The generation is part of the key: nobody waits for a rendering that began before a write.
        digest = md5(request.path.encode(), usedforsecurity=False).hexdigest()
        key = f"render-lock:{generation[:8]}:{digest}"
        body, lock = wait_or_lock(self.store.locks, key, partial(self._find, request.path))
        return self._render(request, generation, lock) if body is None else stored_response(body)

    def _render(self, request: HttpRequest, generation: str, lock: RenderLock | None) -> HttpResponse:
        stored = False
        try:
            response = self.get_response(request)
            if may_store(response) and has_only_common_headers(response):
                stored = self._put(request.path, response.content, generation)
        finally:
            if lock:
                lock.release(cached=stored)
        return response

    def _put(self, path: str, body: bytes, generation: str) -> bool:
        try:
            return self.store.put(path, body, generation)
        except OSError as error:
            logger.warning("page %s not stored: %s", path, error)
            return False

    def _find(self, path: str) -> bytes | None:
        try:
            return self.store.get(path)
        except OSError:
            return None

    def has_key(self, path: str) -> bool:
        """Whether the server can find a page of that path."""
        return has_key(path)


def has_key(path: str) -> bool:
    """Whether a page of that path can be found by a server whose keys are plain paths."""
    return len(path) <= MAX_PATH and PLAIN_PATH.fullmatch(path) is not None


def stored_response(body: bytes) -> HttpResponse:
    """The response of a server with a stored page, for a request that waited for its rendering.

    Middleware further out adds the rest of its headers.
    """
    headers = {"Vary": "Cookie", "X-Frame-Options": settings.X_FRAME_OPTIONS}
    headers |= getattr(settings, "CACHING_PAGE_HEADERS", {})
    return HttpResponse(body, content_type="text/html; charset=utf-8", headers=headers)


def _is_our_host(request: HttpRequest) -> bool:
    """Whether the host is one of the site's: middleware further in refuses others, which no stored page may answer."""
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True

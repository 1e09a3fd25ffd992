"""Finished pages put where a server finds them by their path, without asking Python.

A store is a cache that a server in front of the application reads by itself: memcached for Nginx
(`memcachedpages`), its own shared memory for uWSGI (`uwsgipages`). Both hold the bytes of a page under its URL
path. A hit has no headers of the application: the server's file says them.

**A slow rendering cannot bring old data back**: a store has a generation, a random word that each purge renews.
A rendering notes it before it reads anything from the database, and its page is kept only if it is still the same.

Of those whom the server passes on because a page is not there, one renders it and the others wait (`turns`).
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

from benchapp.caching.eligible import request_may_be_stored, response_may_be_stored, says_only_what_all_say
from benchapp.caching.staleness import Stale
from benchapp.caching.turns import Marks, Turn, wait_or_take

# The same in the servers' files: paths that no server has to escape, short enough for a key of memcached (250 bytes).
PLAIN_PATH = re.compile(r"/(?:[A-Za-z0-9_-]+/){0,20}", re.ASCII)
LONGEST_PATH = 200

logger = logging.getLogger(__name__)


class Store(Protocol):
    """Where pages are put. A store that cannot be reached does nothing and raises nothing."""

    marks: Marks

    def generation(self) -> str | None:
        """The current generation, or None when nothing can be stored now."""

    def get(self, path: str) -> bytes | None:
        """The page, as a server would find it now."""

    def put(self, path: str, body: bytes, generation: str) -> bool:
        """Keep a page unless something was purged since `generation`; whether it is kept."""

    def purge(self, stale: Stale) -> None:
        """Remove stale pages, and refuse those that are being rendered at this moment."""


class KeepFinishedPages:
    """Middleware that puts each page that may be shared into a store; subclasses say which one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.store = self.open_store()

    def open_store(self) -> Store:
        """The store; raises MiddlewareNotUsed when the layer is off."""
        raise NotImplementedError

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not (request_may_be_stored(request) and self.has_key(request.path) and _is_for_us(request)):
            return self.get_response(request)
        generation = self.store.generation()
        if generation is None:
            return self.get_response(request)
        # The generation is part of the name: nobody waits for what was begun before a write.
        key = f"turn:{generation[:8]}:{md5(request.path.encode(), usedforsecurity=False).hexdigest()}"
        page, turn = wait_or_take(self.store.marks, key, partial(self.store.get, request.path))
        return self._render(request, generation, turn) if page is None else finished_page(page)

    def _render(self, request: HttpRequest, generation: str, turn: Turn | None) -> HttpResponse:
        kept = False
        try:
            response = self.get_response(request)
            if response_may_be_stored(response) and says_only_what_all_say(response):
                kept = self.store.put(request.path, response.content, generation)
        finally:
            if turn:
                turn.end(kept)
        return response

    def has_key(self, path: str) -> bool:
        """Whether a page of that path can be found by the server."""
        return has_key(path)


def _is_for_us(request: HttpRequest) -> bool:
    """Whether the host is one of the site's; middleware further in refuses others, and no kept page may answer them."""
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True


def finished_page(body: bytes) -> HttpResponse:
    """The response that a server gives with a stored page, for those who waited for its rendering.

    The rest of its headers comes from middleware further out.
    """
    headers = {"Vary": "Cookie", "X-Frame-Options": settings.X_FRAME_OPTIONS}
    return HttpResponse(body, content_type="text/html; charset=utf-8", headers=headers)


def has_key(path: str) -> bool:
    """Whether a page of that path can be found by a server: its key is the path itself."""
    return len(path) <= LONGEST_PATH and PLAIN_PATH.fullmatch(path) is not None

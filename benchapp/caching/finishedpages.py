"""Finished pages put where a server finds them by their path, without asking Python.

A store is a cache that a server in front of the application reads by itself: memcached for Nginx
(`memcachedpages`), its own shared memory for uWSGI (`uwsgipages`). Both hold the bytes of a page under its URL
path. A hit has no headers of the application: the server's file says them.

**A slow rendering cannot bring old data back**: a store has a generation, a random word that each purge renews.
A rendering notes it before it reads anything from the database, and its page is kept only if it is still the same.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Protocol

from django.http import HttpRequest, HttpResponse

from benchapp.caching.eligible import request_may_be_stored, response_may_be_stored
from benchapp.caching.staleness import Stale

# The same in the servers' files: paths that no server has to escape, short enough for a key of memcached (250 bytes).
PLAIN_PATH = re.compile(r"/(?:[A-Za-z0-9_-]+/){0,20}", re.ASCII)
LONGEST_PATH = 200

logger = logging.getLogger(__name__)


class Store(Protocol):
    """Where pages are put. A store that cannot be reached does nothing and raises nothing."""

    def generation(self) -> str | None:
        """The current generation, or None when nothing can be stored now."""

    def put(self, path: str, body: bytes, generation: str) -> None:
        """Keep a page unless something was purged since `generation`."""

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
        if not (request_may_be_stored(request) and has_key(request.path)):
            return self.get_response(request)
        generation = self.store.generation()
        response = self.get_response(request)
        if generation is not None and response_may_be_stored(response):
            self.store.put(request.path, response.content, generation)
        return response


def has_key(path: str) -> bool:
    """Whether a page of that path can be found by a server: its key is the path itself."""
    return len(path) <= LONGEST_PATH and PLAIN_PATH.fullmatch(path) is not None

"""Django's two-part per-site middleware, for anonymous visitors only.

Django's own pair would also keep a copy of every page for each session cookie: no visitor sees another's
page, but those who post a comment would not see it until their copy expires, and a busy site would fill its
cache with pages that one person reads once. It would keep one for each value of an analytics cookie and for
each made-up query string too, and pages that say `no-store`.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.middleware.cache import FetchFromCacheMiddleware, UpdateCacheMiddleware

from benchapp.caching.anonymouspages import fetch, store


class StoreAnonymousInCache(UpdateCacheMiddleware):
    """The storing half, outermost: it stores what may be shared and nothing that the other half has passed by."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        return store(self, request, response)


class FetchAnonymousFromCache(FetchFromCacheMiddleware):
    """The fetching half, innermost."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        return fetch(self, request)

"""Django's two-part per-site middleware, for anonymous visitors only.

Django's own pair would also keep a copy of every page for each session cookie: no visitor sees another's
page, but those who post a comment would not see it until their copy expires, and a busy site would fill its
cache with pages that one person reads once. It would keep one for each value of an analytics cookie and for
each made-up query string too, and pages that say `no-store`.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.middleware.cache import FetchFromCacheMiddleware, UpdateCacheMiddleware

from benchapp.caching.eligible import request_may_be_answered, request_may_be_stored, response_may_be_stored


class StoreAnonymousInCache(UpdateCacheMiddleware):
    """The storing half, outermost: it stores what may be shared and nothing that the other half has passed by."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if not response_may_be_stored(response):
            return response
        return super().process_response(request, response)


class FetchAnonymousFromCache(FetchFromCacheMiddleware):
    """The fetching half, innermost."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        request._cache_update_cache = False
        if not request_may_be_answered(request):
            return None
        # Pages vary with the cookie in general but not for anonymous readers, so all of them share one entry.
        cookies = request.META.pop("HTTP_COOKIE", None)
        stored = super().process_request(request)
        if stored is None and not request_may_be_stored(request):
            request._cache_update_cache = False
            if cookies is not None:
                request.META["HTTP_COOKIE"] = cookies
        return stored

"""Django's two-part per-site middleware, for anonymous visitors only.

Django's own pair would also keep a copy of every page for each session cookie: no visitor sees another's
page, but those who post a comment would not see it until their copy expires, and a busy site would fill its
cache with pages that one person reads once.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.cache import FetchFromCacheMiddleware


class FetchAnonymousFromCache(FetchFromCacheMiddleware):
    """The fetching half; Django's UpdateCacheMiddleware, the other half, stores nothing it has passed by."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            request._cache_update_cache = False
            return None
        return super().process_request(request)

"""Cache-Control for a shared cache that stores pages by itself, such as Nginx.

For the first half of the time to live a page is fresh. In the second half the cache may serve it stale while it fetches
a new one, or because that fails. The limit matters: a deleted page gives no response that could replace the
cached one, so without a limit the cache would serve it for as long as anybody requests it.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control

from benchapp.caching.cacheability import may_store, may_store_for


class AllowSharedCaching:
    """Middleware that adds s-maxage to each cacheable page. Browsers ignore it, and so store nothing."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        stale = settings.CACHING_SECONDS // 2
        fresh = settings.CACHING_SECONDS - stale
        self.directives = {"s_maxage": fresh, "stale_while_revalidate": stale, "stale_if_error": stale}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if may_store_for(request) and may_store(response):
            patch_cache_control(response, **self.directives)
            response.has_shared_lifetime = True
        return response

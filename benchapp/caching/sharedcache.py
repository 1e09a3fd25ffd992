"""Telling a cache on the way to the visitor how long it may keep a page, where nobody can tell it what is stale.

For the first half of the time to live a page is fresh; in the second it may be given out while it is rendered anew, or
because that fails. The bound has to be said: a page that is not there any more gives no answer that could take the
place of the kept one, which would be given out for as long as somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control

from benchapp.caching.eligible import request_may_be_stored, response_may_be_stored


class SayHowLong:
    """Middleware that says so of each page that may be shared. Browsers keep nothing by it: s-maxage is not theirs."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if not settings.BENCHAPP_SHARED_CACHE:
            raise MiddlewareNotUsed("BENCHAPP_SHARED_CACHE is 0")
        self.get_response = get_response
        stale = settings.BENCHAPP_CACHE_SECONDS // 2
        fresh = settings.BENCHAPP_CACHE_SECONDS - stale
        self.words = {"s_maxage": fresh, "stale_while_revalidate": stale, "stale_if_error": stale}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request_may_be_stored(request) and response_may_be_stored(response):
            patch_cache_control(response, **self.words)
        return response

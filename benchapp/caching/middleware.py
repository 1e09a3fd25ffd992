"""The two entries of MIDDLEWARE, which build the middleware of the active layers, and step aside without an active
layer.

CachingMiddleware stands outside of all middleware that sets cookies or Vary: sessions, messages, LocaleMiddleware.
WatchMiddleware is the last.
"""

from __future__ import annotations

import contextlib

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

from benchapp.caching import registry
from benchapp.caching.conf import INNER, OUTER, app_settings
from benchapp.caching.external.cacheable_header import MARK
from benchapp.caching.outcome import NO_OUTCOME, X_CACHE
from benchapp.caching.pages import GetResponse
from benchapp.caching.request_reads import watch_view


class CachingMiddleware:
    """Store pages and serve stored ones, by the middleware of all active layers.

    Raises ImproperlyConfigured for settings that `manage.py check` refuses, and for a missing WatchMiddleware, without
    which pages for one visitor would be stored.
    """

    def __init__(self, get_response: GetResponse) -> None:
        if not app_settings.CACHING_LAYERS:
            raise MiddlewareNotUsed("no caching layer is active")
        if INNER not in settings.MIDDLEWARE:
            raise ImproperlyConfigured(f"MIDDLEWARE: {OUTER} needs {INNER} as the last entry")
        # A server makes no checks when it starts.
        from benchapp.caching import checks

        for message in checks.errors():
            raise ImproperlyConfigured(f"{message.msg} {message.hint or ''}".rstrip())
        for name in reversed(registry.outer_middleware(app_settings.CACHING_LAYERS)):
            with contextlib.suppress(MiddlewareNotUsed):
                get_response = import_string(name)(get_response)
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # A cache outside would repeat it with each of its hits.
        if app_settings.CACHING_X_CACHE and not response.has_header(MARK):
            response.headers[X_CACHE] = getattr(request, "cache_outcome", NO_OUTCOME)
        return response


class WatchMiddleware:
    """Mark that the view is reached, with all reads of the middleware."""

    def __init__(self, get_response: GetResponse) -> None:
        if not app_settings.CACHING_LAYERS:
            raise MiddlewareNotUsed("no caching layer is active")
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return watch_view(request, self.get_response)

"""CACHING_HARMLESS: reads on which no page depends, by header, cookie or middleware.

`["User-Agent", "cookie:theme", "mysite.middleware.RequestLog"]`. Reads of a middleware are not watched between Pause
and Resume, which stand around the middleware in MIDDLEWARE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

from benchapp.caching.conf import app_settings
from benchapp.caching.watched import forget_computed

GetResponse = Callable[[HttpRequest], HttpResponse]

COOKIE = "cookie:"
HEADER = re.compile(r"[A-Za-z0-9-]+")
COOKIE_NAME = re.compile(r"cookie:[\w.-]+", re.ASCII)
MIDDLEWARE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)
PAUSE, RESUME = f"{__name__}.Pause", f"{__name__}.Resume"


def is_entry(text: str) -> bool:
    """True if a text names a header, a cookie or a middleware."""
    return any(kind.fullmatch(text) for kind in (HEADER, COOKIE_NAME, MIDDLEWARE))


def harmless_names() -> frozenset[str]:
    """The harmless headers and cookies, by the names of `Reads`."""
    names = set()
    for entry in app_settings.CACHING_HARMLESS:
        if entry.startswith(COOKIE):
            names.add(entry)
        elif not MIDDLEWARE.fullmatch(entry):
            names.add(entry.lower())
    return frozenset(names)


def harmless_middleware() -> list[str]:
    """The middleware whose reads are harmless."""
    return [entry for entry in app_settings.CACHING_HARMLESS if MIDDLEWARE.fullmatch(entry)]


def is_between(name: str, middleware: Sequence[str]) -> bool:
    """True if Pause stands before each place of a middleware, and Resume behind."""
    places = [place for place, entry in enumerate(middleware) if entry == name]
    around = [(*middleware[max(place - 1, 0) : place], *middleware[place + 1 : place + 2]) for place in places]
    return all(pair == (PAUSE, RESUME) for pair in around)


def _set_paused(request: HttpRequest, is_paused: bool) -> None:
    if (reads := getattr(request, "cache_watch", None)) is not None:
        reads.is_paused = is_paused
        # A cached property that was read meanwhile is noted when it is read again.
        forget_computed(request)


class Pause:
    """Middleware before a harmless one: reads further in are not watched, on the way in and out."""

    def __init__(self, get_response: GetResponse) -> None:
        if not app_settings.CACHING_LAYERS:
            raise MiddlewareNotUsed("no caching layer is active")
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        _set_paused(request, True)
        try:
            return self.get_response(request)
        finally:
            _set_paused(request, False)

    def process_view(self, request: HttpRequest, *args: object) -> None:
        """Django calls the outer middleware first."""
        _set_paused(request, True)

    def process_template_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Django calls the inner middleware first."""
        _set_paused(request, False)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Django calls the inner middleware first."""
        _set_paused(request, False)


class Resume:
    """Middleware behind a harmless one: reads further in are watched."""

    def __init__(self, get_response: GetResponse) -> None:
        if not app_settings.CACHING_LAYERS:
            raise MiddlewareNotUsed("no caching layer is active")
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        _set_paused(request, False)
        try:
            return self.get_response(request)
        finally:
            _set_paused(request, True)

    def process_view(self, request: HttpRequest, *args: object) -> None:
        """Django calls the outer middleware first."""
        _set_paused(request, False)

    def process_template_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Django calls the inner middleware first."""
        _set_paused(request, True)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Django calls the inner middleware first."""
        _set_paused(request, True)

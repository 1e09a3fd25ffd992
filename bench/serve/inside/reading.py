"""The names of headers and cookies that a rendering reads, in middleware, view and template alike."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from benchapp.caching.harmless import COOKIE
from benchapp.caching.watched import ALL, Reads, Watch

# Noted beside the names of headers.
NO_HEADERS = (ALL, "scheme")


class NoteNames:
    """Outermost middleware: `request.names_read` gets the names that all others read."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        reads = Reads({}, frozenset())
        watch = Watch(request, reads)
        try:
            return self.get_response(request)
        finally:
            watch.end()
            request.names_read = reads.names


def names_read(response: HttpResponseBase) -> dict[str, list[str]]:
    """The headers, in lower case, and the cookies that a rendering read; empty if nobody noted them."""
    names = getattr(getattr(response, "wsgi_request", None), "names_read", None)
    if names is None:
        return {}
    by_kind: dict[str, list[str]] = {"headers": [], "cookies": []}
    for name in sorted(names):
        plain, kind = name.removeprefix(COOKIE), "headers"
        if name.startswith(COOKIE):
            kind = "cookies"
        if plain not in NO_HEADERS:
            by_kind[kind].append(plain)
    return by_kind

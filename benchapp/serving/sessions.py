"""Pages of a session are its visitor's alone, and say so."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control


def private(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware outside of sessions: `Cache-Control: private, no-cache` where a session was read that is not empty.

    Django says `Vary: Cookie` alone, by which a cache may still store the page of a signed-in visitor, and show it once
    that has signed out.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        session = getattr(request, "session", None)
        if session is not None and getattr(session, "accessed", False) and not session.is_empty():
            patch_cache_control(response, private=True, no_cache=True)
        return response

    return middleware

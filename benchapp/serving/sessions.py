"""Pages of a session, and pages that set a cookie, are marked as for one visitor only."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control


def private_sessions(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware outside of sessions: `private, no-cache, no-store` for a page that read a session with content.

    Django only says `Vary: Cookie`: a cache may still store the page of a signed-in visitor, and show it after a
    logout; a browser goes back to every page without `no-store`. A response that sets a cookie, as each page with a
    CSRF token does, is `private`: caches elsewhere may look only at the URL.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        session = getattr(request, "session", None)
        if session is not None and getattr(session, "accessed", False) and not session.is_empty():
            patch_cache_control(response, private=True, no_cache=True, no_store=True)
        elif response.cookies:
            patch_cache_control(response, private=True)
        return response

    return middleware

"""The response to a refused login."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse
from django.template import TemplateDoesNotExist, loader
from django.utils.cache import add_never_cache_headers
from django.utils.decorators import sync_and_async_middleware

from benchapp.login_limit import attempts, limits


@sync_and_async_middleware
def too_many_failed_logins(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Replace the view's response to a refused login by a 429 with Retry-After.

    A password that was right without a login, as those of an API, has no other end than that of the request.
    """
    if iscoroutinefunction(get_response):

        async def middleware(request: HttpRequest) -> HttpResponse:
            response = await get_response(request)
            await attempts.arelease()
            if was_refused(request):
                return await sync_to_async(refusal)(request)
            return response

    else:

        def middleware(request: HttpRequest) -> HttpResponse:
            response = get_response(request)
            attempts.release()
            if was_refused(request):
                return refusal(request)
            return response

    return middleware


def was_refused(request: HttpRequest) -> bool:
    """True if LimitBackend refused the last login of the request."""
    return getattr(request, "login_refused", False)


def refusal(request: HttpRequest) -> HttpResponse:
    """The project's template `429.html`, or a line of text without one."""
    try:
        page = HttpResponse(loader.render_to_string("429.html", request=request), status=429)
    except TemplateDoesNotExist:
        text = "Too many wrong passwords. Please wait a few minutes, then try again.\n"
        page = HttpResponse(text, status=429, content_type="text/plain")
    page.headers["Retry-After"] = str(limits.WINDOW_S)
    add_never_cache_headers(page)
    return page

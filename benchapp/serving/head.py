"""Responses to HEAD without a body: middleware for any project."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

Response = HttpResponseBase | Awaitable[HttpResponseBase]


@sync_and_async_middleware
def without_body(get_response: Callable[[HttpRequest], Response]) -> Callable[[HttpRequest], Response]:
    """Take the body from a response to HEAD, which Django leaves to the server.

    waitress, cheroot and uWSGI send it. Over a connection that a web server in front keeps open, its bytes are read as
    the beginning of the next visitor's response. No setting of these servers or of Nginx prevents that.
    https://www.rfc-editor.org/rfc/rfc9110#section-9.3.2
    """
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            return _without_body(request, await get_response(request))

        return asynchronous

    return lambda request: _without_body(request, get_response(request))


def _without_body(request: HttpRequest, response: Any) -> Any:
    if request.method != "HEAD":
        return response
    if not response.streaming:
        response.content = b""
    elif not response.is_async:
        response.streaming_content = ()
    return response

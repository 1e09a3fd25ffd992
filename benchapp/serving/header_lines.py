"""Response headers that no server may send: middleware for any project."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import BadHeaderError, HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

Response = HttpResponseBase | Awaitable[HttpResponseBase]
# https://www.rfc-editor.org/rfc/rfc9110#section-5.1 and #section-5.5
_NOT_IN_NAMES = re.compile(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]")
_NOT_IN_VALUES = re.compile(r"[^\t\x20-\x7e\x80-\xff]")


@sync_and_async_middleware
def sound(get_response: Callable[[HttpRequest], Response]) -> Callable[[HttpRequest], Response]:
    """Make an error (500) of a response with a control character in a header, or a character outside of Latin-1.

    Django refuses line breaks, unless code bypasses its check. Each server treats the rest differently: uWSGI sends the
    header unchanged, so that one response becomes two, uvicorn closes the connection without a response, and a web
    server in front turns that into a 502.
    """
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            return _sound(await get_response(request))

        return asynchronous

    return lambda request: _sound(get_response(request))


def _sound(response: Any) -> Any:
    """The response; raises BadHeaderError for an invalid header."""
    # The reason stands in a line of the head, too. All at once, since nearly every response is sound.
    names, values = zip(("Reason", response.reason_phrase), *response.items(), strict=True)
    if _NOT_IN_NAMES.search("".join(names)) or "" in names or not _is_sound("".join(values)):
        raise BadHeaderError(f"a line of the response's head is no header: {response.items()!r:.1000}")
    for cookie in response.cookies.values():
        if not _is_sound(cookie.OutputString()):
            raise BadHeaderError(f"the response's cookie {cookie.key!r} is no header")
    return response


def _is_sound(value: str) -> bool:
    # The first test is much faster, and enough for most.
    return (value.isascii() and value.isprintable()) or not _NOT_IN_VALUES.search(value)

"""Responses sent piece by piece: middleware for any project."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

Response = HttpResponseBase | Awaitable[HttpResponseBase]


@sync_and_async_middleware
def at_once(get_response: Callable[[HttpRequest], Response]) -> Callable[[HttpRequest], Response]:
    """Let each piece of a StreamingHttpResponse reach the client immediately.

    Nginx collects a response to spare the application a slow client, unless the response forbids buffering. A file is
    complete already, and stays buffered. https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_buffering

    A response to HEAD has no pieces: a WSGI server that sends none does not notice that the client has gone, and would
    iterate over an endless stream for ever.

    Django would run an iterator of the other kind, synchronous over ASGI and asynchronous over WSGI, to its end first,
    which takes the time of all pieces, and the memory of the whole file.
    https://docs.djangoproject.com/en/5.2/ref/request-response/#streaminghttpresponse-objects
    """
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            return _at_once(request, await get_response(request))

        return asynchronous

    return lambda request: _at_once(request, get_response(request))


def _at_once(request: HttpRequest, response: Any) -> Any:
    if not response.streaming:
        return response
    if not isinstance(response, FileResponse):
        response.headers.setdefault("X-Accel-Buffering", "no")
    over_asgi = isinstance(request, ASGIRequest)
    if over_asgi and not response.is_async:
        response.streaming_content = _asynchronous(iter(response.streaming_content))
    elif response.is_async and not over_asgi:
        response.streaming_content = _synchronous(response.streaming_content)
    if request.method == "HEAD" and not over_asgi:
        response.streaming_content = ()
    return response


async def _asynchronous(content: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces of a synchronous iterator, each made in the thread of the request."""
    end = object()
    following = sync_to_async(next)
    while (piece := await following(content, end)) is not end:
        yield piece


def _synchronous(content: AsyncIterator[bytes]) -> Iterator[bytes]:
    """The pieces of an asynchronous iterator, all made in one event loop of the request's own."""
    loop = asyncio.new_event_loop()
    try:
        while True:
            yield loop.run_until_complete(content.__anext__())
    except StopAsyncIteration:
        return
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

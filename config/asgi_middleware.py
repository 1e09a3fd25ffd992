"""Middleware for ASGI alone: Django runs each request in a thread of its own, as many at once as there are requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.utils.decorators import async_only_middleware

GetResponse = Callable[[HttpRequest], Awaitable[HttpResponse]]


@async_only_middleware
def limit_requests(get_response: GetResponse) -> GetResponse:
    """Let BENCHAPP_ASGI_THREADS requests at a time into the site; others wait, with their body read already.

    Each request opens a database connection, and closes it before the next one begins. Without a limit, many visitors
    take more connections than a database has.
    """
    free = asyncio.Semaphore(settings.BENCHAPP_ASGI_THREADS)

    async def middleware(request: HttpRequest) -> HttpResponse:
        async with free:
            try:
                return await get_response(request)
            finally:
                # In the thread of the request, whose connection it is.
                await sync_to_async(close_old_connections)()

    return middleware


@async_only_middleware
def refuse_malformed(get_response: GetResponse) -> GetResponse:
    """Refuse a request with Content-Length and Transfer-Encoding, and one of HTTP/1.1 without a Host header.

    With two lengths, requests are smuggled past one server to another. Under WSGI, config/wsgi_middleware.py does it;
    see RFC 9112 sections 6.1 and 3.2.
    """

    async def middleware(request: HttpRequest) -> HttpResponse:
        two_lengths = "CONTENT_LENGTH" in request.META and "HTTP_TRANSFER_ENCODING" in request.META
        no_host = "HTTP_HOST" not in request.META and request.scope["http_version"] == "1.1"
        if two_lengths or no_host:
            return HttpResponseBadRequest(content_type="text/plain; charset=utf-8")
        return await get_response(request)

    return middleware

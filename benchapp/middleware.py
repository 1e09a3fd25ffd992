"""Small middleware of the site, each one thing; their order is in config/settings.py."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.decorators import async_only_middleware

GetResponse = Callable[[HttpRequest], HttpResponse]

# Everything from this site itself, nothing inline, no frames around it.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"

access_logger = logging.getLogger("benchapp.access")
MAX_LOGGED = 100  # characters of what a client wrote that a log line holds


@async_only_middleware
def limit_requests(
    get_response: Callable[[HttpRequest], Awaitable[HttpResponse]],
) -> Callable[[HttpRequest], Awaitable[HttpResponse]]:
    """Over ASGI, let BENCHAPP_ASGI_THREADS requests at a time into the site; others wait, with their body read.

    Django runs each one in a thread of its own, which opens a database connection, and closes it before the next one
    begins. Without a limit, many visitors take more connections than a database has.
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


def access_log(get_response: GetResponse) -> GetResponse:
    """Write a line for each request: the usual combined format with host, request id, and the milliseconds it took."""

    def middleware(request: HttpRequest) -> HttpResponse:
        begun, now = time.monotonic(), datetime.now(UTC)
        response = get_response(request)
        named = (request.META.get(name, "-") for name in ("HTTP_REFERER", "HTTP_USER_AGENT"))
        referer, agent = (ascii(text[:MAX_LOGGED])[1:-1].replace('"', "'") for text in named)
        access_logger.info(
            '%s - - [%s] "%s %s %s" %s %s "%s" "%s" %s %s %.0f',
            request.META.get("REMOTE_ADDR") or "-",
            f"{now:%d/%b/%Y:%H:%M:%S %z}",
            request.method,
            ascii(request.get_full_path()[:MAX_LOGGED])[1:-1].replace('"', "'"),
            request.META.get("SERVER_PROTOCOL", "-"),
            response.status_code,
            response.headers.get("Content-Length", "-"),
            referer,
            agent,
            ascii(request.META.get("HTTP_HOST", "-")[:MAX_LOGGED])[1:-1],
            uuid.uuid4().hex,
            (time.monotonic() - begun) * 1000,
        )
        return response

    return middleware


class Compression(GZipMiddleware):
    """Compress pages, but no stream: the compressor would hold its pieces back until they fill a buffer."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        return response if response.streaming else super().process_response(request, response)


def security_headers(get_response: GetResponse) -> GetResponse:
    """Add the two security headers that Django 5.2 has no setting for, where a view has not set its own."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        return response

    return middleware

"""Small middleware of the site, each one thing; their order is in config/settings.py."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.decorators import async_only_middleware

from benchapp.serving.client_address import BROKEN_ESCAPE
from benchapp.serving.streaming import leave_out_body

GetResponse = Callable[[HttpRequest], HttpResponse]

# Everything from this site itself, nothing inline, no frames around it.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"

access_logger = logging.getLogger("benchapp.access")
MAX_LOGGED = 100  # characters of what a client wrote that a log line holds

# A response sent while the client still writes may be lost with the connection: the rest of the body is read first.
MAX_DRAINED_BYTES = 8 * 1024 * 1024
CHUNK_BYTES = 64 * 1024


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


def well_formed(get_response: GetResponse) -> GetResponse:
    """Refuse malformed requests, and answer alike behind every application server.

    Servers differ: some pass on a path that cannot be decoded, some lose a chunked body, some send the body of a
    response to HEAD, some lose an answer to a client that still writes. Only where a server runs the site: Django's
    test client sends no Host.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if problem := refusal(request):
            status, reason = problem
            response = HttpResponse(f"{reason}.\n", content_type="text/plain; charset=utf-8", status=status)
        else:
            response = get_response(request)
        drain(request)
        if request.method == "HEAD":
            leave_out_body(response)
        return with_one_vary(response)

    return middleware


def refusal(request: HttpRequest) -> tuple[int, str] | None:
    """The status and the reason to refuse a request with, or None for a good one.

    With a length beside the chunks, requests are smuggled past one server to another (RFC 9112 section 6.1). Chunks
    alone have no length: Django reads exactly CONTENT_LENGTH bytes under WSGI, so a view would see an empty form and
    answer as if nothing had been sent.
    """
    meta = request.META
    if "HTTP_TRANSFER_ENCODING" in meta and meta.get("CONTENT_LENGTH"):
        return 400, "A request has either Content-Length or Transfer-Encoding, not both"
    if "chunked" in meta.get("HTTP_TRANSFER_ENCODING", "").lower() and "wsgi.input" in meta:
        return 411, "Send the body with Content-Length, not chunked"
    if BROKEN_ESCAPE.search(meta.get("REQUEST_URI", "").partition("?")[0]):
        return 400, "A % in the path begins an escape of two hexadecimal digits"
    protocol = request.scope["http_version"] if isinstance(request, ASGIRequest) else meta.get("SERVER_PROTOCOL", "")
    if "HTTP_HOST" not in meta and protocol.endswith("1.1"):
        return 400, "A request of HTTP/1.1 needs a Host header"
    return None


def with_one_vary(response: HttpResponse) -> HttpResponse:
    """The response with one Vary in place of several, which a class of its own can send: Nginx 1.22 reads the first."""
    lines = [value for name, value in response.items() if name.lower() == "vary"]
    if len(lines) < 2 or response.streaming:
        return response
    headers = {**dict(response.items()), "Vary": ", ".join(lines)}
    joined = HttpResponse(response.content, status=response.status_code, headers=headers)
    joined.cookies = response.cookies
    return joined


def drain(request: HttpRequest) -> None:
    """Read the unread rest of a body, up to a limit."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdecimal() and int(length) <= MAX_DRAINED_BYTES:
        # A client that has gone is the server's to notice.
        with contextlib.suppress(UnreadablePostError, ValueError):
            while request.read(CHUNK_BYTES):
                pass


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

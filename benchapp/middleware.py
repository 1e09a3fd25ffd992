"""Small middleware of the site, each one thing; their order is in config/settings.py."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

GetResponse = Callable[[HttpRequest], HttpResponse]

# Everything from this site itself, nothing inline, no frames around it.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
# Characters of what a client wrote that a log line holds.
MAX_LOGGED = 100
access_logger = logging.getLogger("benchapp.access")
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class Compression(GZipMiddleware):
    """Compress pages, but no stream: the compressor would hold its pieces back until they fill a buffer."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        return response if response.streaming else super().process_response(request, response)


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


def security_headers(get_response: GetResponse) -> GetResponse:
    """Add the two security headers that Django 5.2 has no setting for, where a view has not set its own."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        return response

    return middleware

"""Small middleware of the site, each one thing; their order is in config/settings.py."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

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

    Django runs each request in a separate thread, which opens a database connection, and closes the connection before
    the next request begins. Without a limit, many visitors take more connections than a database has.
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
    """Write a line for each request: the usual combined format with host, request id and milliseconds, or a JSON
    object.
    """
    as_json = settings.BENCHAPP_LOG_FORMAT == "json"

    def middleware(request: HttpRequest) -> HttpResponse:
        begun, now = time.monotonic(), datetime.now(UTC)
        response = get_response(request)
        entry = {
            "time": now.isoformat(timespec="milliseconds"),
            "client": _logged_address(request.META.get("REMOTE_ADDR", "")),
            "host": request.META.get("HTTP_HOST", "-")[:MAX_LOGGED],
            "method": request.method,
            "uri": request.get_full_path()[:MAX_LOGGED],
            "protocol": request.META.get("SERVER_PROTOCOL", "-"),
            "status": response.status_code,
            "bytes": response.headers.get("Content-Length", "-"),
            "referer": request.META.get("HTTP_REFERER", "-")[:MAX_LOGGED],
            "agent": request.META.get("HTTP_USER_AGENT", "-")[:MAX_LOGGED],
            "id": request.META.get("HTTP_X_REQUEST_ID") or uuid.uuid4().hex,
            "milliseconds": round((time.monotonic() - begun) * 1000),
        }
        access_logger.info("%s", json.dumps(entry) if as_json else _combined(entry, now))
        return response

    return middleware


def _combined(entry: dict[str, Any], now: datetime) -> str:
    words = {name: ascii(str(value))[1:-1].replace('"', "'") for name, value in entry.items()}
    return (
        f"{words['client']} - - [{now:%d/%b/%Y:%H:%M:%S %z}] "
        f'"{words["method"]} {words["uri"]} {words["protocol"]}" {words["status"]} {words["bytes"]} '
        f'"{words["referer"]}" "{words["agent"]}" {words["host"]} {words["id"]} {words["milliseconds"]}'
    )


def _logged_address(text: str) -> str:
    """A client's address for the log: only the network, /24 of IPv4 and /48 of IPv6, if the setting says so."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "-"
    if settings.BENCHAPP_LOG_ADDRESSES != "masked":
        return text
    bits = 24 if address.version == 4 else 48
    return str(ipaddress.ip_network((address, bits), strict=False).network_address)


class Compression(GZipMiddleware):
    """Compress pages, but no stream: the compressor would hold pieces back until a buffer is full."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        return response if response.streaming else super().process_response(request, response)


def security_headers(get_response: GetResponse) -> GetResponse:
    """Add the two security headers that Django 5.2 has no setting for, unless a view has set them."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        return response

    return middleware

"""Small middleware of the site, each one thing; their order is in config/settings.py."""

from __future__ import annotations

import ipaddress
import logging
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port

GetResponse = Callable[[HttpRequest], HttpResponse]

# Everything from this site itself, nothing inline, no frames around it.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
# Characters of what a client wrote that a log line holds.
MAX_LOGGED = 100
access_logger = logging.getLogger("benchapp.access")
HEALTH_PATHS = ("/healthz", "/readyz")
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


def real_address(get_response: GetResponse) -> GetResponse:
    """Take the client's address from X-Real-IP and the port from Host, behind a web server that overwrites them.

    Over a Unix socket there is no other source: the application server sees an empty address, and no port or 0.
    A reverse proxy in front of the whole chain, which a caching layer adds, sends it in FrontAddress.
    """
    header = "HTTP_FRONTADDRESS" if settings.BENCHAPP_FRONT else "HTTP_X_REAL_IP"

    def middleware(request: HttpRequest) -> HttpResponse:
        address = request.META.get(header, "").strip()
        if _is_address(address):
            request.META["REMOTE_ADDR"] = address
        request.META["SERVER_PORT"] = _port(request)
        return get_response(request)

    return middleware


def balanced_address(get_response: GetResponse) -> GetResponse:
    """Take the client's address from X-Forwarded-For where the peer is one of BENCHAPP_TRUSTED_PROXIES.

    It is the last address that is not one of those networks. Without a reverse proxy of our own, X-Forwarded-Proto is
    believed from there only, too.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if _is_trusted(request.META.get("REMOTE_ADDR", "")):
            named = [word.strip() for word in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
            client = next((word for word in reversed(named) if not _is_trusted(word)), "")
            if _is_address(client):
                request.META["REMOTE_ADDR"] = client
        elif not settings.BENCHAPP_BEHIND_PROXY:
            request.META["HTTP_X_FORWARDED_PROTO"] = "http"
        return get_response(request)

    return middleware


def _is_trusted(value: str) -> bool:
    return _is_address(value) and any(
        ipaddress.ip_address(value) in network for network in settings.BENCHAPP_TRUSTED_PROXIES
    )


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


def health_by_address(get_response: GetResponse) -> GetResponse:
    """Let a balancer ask for /healthz and /readyz by address: an address in Host stands for the first of our names."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path in HEALTH_PATHS and _is_address(_host(request)):
            request.META["HTTP_HOST"] = settings.ALLOWED_HOSTS[0].lstrip(".").replace("*", "localhost")
        return get_response(request)

    return middleware


def _host(request: HttpRequest) -> str:
    """The Host header without port and brackets."""
    return split_domain_port(request.META.get("HTTP_HOST", ""))[0].strip("[]")


def _port(request: HttpRequest) -> str:
    """The port that the client used: the one in Host, else the scheme's own."""
    host, _, port = request.META.get("HTTP_HOST", "").rpartition(":")
    if host and port.isdecimal():
        return port
    scheme_header = "HTTP_FRONTPROTO" if settings.BENCHAPP_FRONT else "HTTP_X_FORWARDED_PROTO"
    return "443" if request.META.get(scheme_header) == "https" else "80"


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def security_headers(get_response: GetResponse) -> GetResponse:
    """Add the two security headers that Django 5.2 has no setting for, where a view has not set its own."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        return response

    return middleware

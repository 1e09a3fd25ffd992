"""Small middleware of the site, each one thing; their order is in config/settings.py."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse

GetResponse = Callable[[HttpRequest], HttpResponse]

# Everything from this site itself, nothing inline, no frames around it.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


def length_required(get_response: GetResponse) -> GetResponse:
    """Refuse a chunked request whose body would be lost, with 411 Length Required.

    Under WSGI Django reads exactly CONTENT_LENGTH bytes. A chunked body has no such length unless a server
    in front has collected it: the view would see an empty form and answer as if nothing had been sent.
    Under ASGI the body arrives whole and nothing is refused.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        chunked = "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower()
        if chunked and isinstance(request, WSGIRequest) and not request.META.get("CONTENT_LENGTH"):
            return HttpResponse(
                "Length Required: send the body with Content-Length, not chunked.\n",
                status=411,
                content_type="text/plain; charset=utf-8",
            )
        return get_response(request)

    return middleware


def real_address(get_response: GetResponse) -> GetResponse:
    """Take the client's address from X-Real-IP, behind a web server that overwrites that header.

    Over a Unix socket there is no other: the application server sees an empty address.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        address = request.META.get("HTTP_X_REAL_IP", "").strip()
        if _is_address(address):
            request.META["REMOTE_ADDR"] = address
        return get_response(request)

    return middleware


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


def render_id(get_response: GetResponse) -> GetResponse:
    """Name each rendering in X-Render-Id.

    Innermost of all middleware, so that a cached response keeps the name it was rendered under: two
    responses with the same one came from a cache.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        return name_rendering(get_response(request))

    return middleware


def name_rendering(response: HttpResponse) -> HttpResponse:
    """Give a response its X-Render-Id, once."""
    response.headers.setdefault("X-Render-Id", uuid.uuid4().hex)
    return response

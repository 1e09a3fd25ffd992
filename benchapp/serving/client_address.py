"""The client's address, behind servers that send it in headers: middleware for any project."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host

GetResponse = Callable[[HttpRequest], HttpResponse]


def real_address(get_response: GetResponse) -> GetResponse:
    """Take the client's address from X-Real-IP and the port from Host, behind a web server that overwrites both.

    Over a Unix socket there is no other source: the application server sees an empty address, and no port or 0. A
    reverse proxy in front of the whole chain, added by a caching layer, sends the address in FrontAddress.
    """
    header = "HTTP_FRONTADDRESS" if settings.BENCHAPP_FRONT else "HTTP_X_REAL_IP"

    def middleware(request: HttpRequest) -> HttpResponse:
        address = request.META.get(header, "").strip()
        if is_address(address):
            request.META["REMOTE_ADDR"] = address
        request.META["SERVER_PORT"] = _port(request)
        return get_response(request)

    return middleware


def balanced_address(get_response: GetResponse) -> GetResponse:
    """Take the client's address from X-Forwarded-For if the peer is one of BENCHAPP_TRUSTED_PROXIES.

    The client is the last address outside of those networks. Without a reverse proxy of the stack, X-Forwarded-Proto is
    believed from there only, too.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if _is_trusted(request.META.get("REMOTE_ADDR", "")):
            named = [_without_port(word.strip()) for word in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
            client = next((word for word in reversed(named) if not _is_trusted(word)), "")
            if is_address(client):
                request.META["REMOTE_ADDR"] = client
        elif not settings.BENCHAPP_BEHIND_PROXY:
            request.META["HTTP_X_FORWARDED_PROTO"] = "http"
        return get_response(request)

    return middleware


def any_host_for_health(get_response: GetResponse) -> GetResponse:
    """Respond to health checks under any host: a load balancer connects by address, and many cannot send another Host.

    The paths are BENCHAPP_HEALTH_PATHS; the first of the project's own names replaces another host, because the
    project's middleware may refuse all others. In front of a served project, Django itself may not know the name.
    """
    own = getattr(settings, "BENCHAPP_OWN_HOSTS", settings.ALLOWED_HOSTS)
    name = next(iter(own), "localhost").lstrip(".").replace("*", "localhost")

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path_info in settings.BENCHAPP_HEALTH_PATHS:
            domain, _ = split_domain_port(request.META.get("HTTP_HOST", ""))
            if not validate_host(domain, own):
                request.META["HTTP_HOST"] = name
                vars(request)["get_host"] = lambda: name
        return get_response(request)

    return middleware


def _without_port(value: str) -> str:
    """An address without its port, from forms of some balancers: `203.0.113.9:17085`, `[2001:db8::1]:443`."""
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return value.partition(":")[0] if value.count(":") == 1 else value


def _is_trusted(value: str) -> bool:
    return is_address(value) and any(
        ipaddress.ip_address(value) in network for network in settings.BENCHAPP_TRUSTED_PROXIES
    )


def _port(request: HttpRequest) -> str:
    """The client's port: from Host, else the scheme's default."""
    host, _, port = request.META.get("HTTP_HOST", "").rpartition(":")
    if host and port.isdecimal():
        return port
    scheme_header = "HTTP_FRONTPROTO" if settings.BENCHAPP_FRONT else "HTTP_X_FORWARDED_PROTO"
    return "443" if request.META.get(scheme_header) == "https" else "80"


def is_address(value: str) -> bool:
    """True if the text is an IP address."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True

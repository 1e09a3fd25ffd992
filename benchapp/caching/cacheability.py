"""Cacheability: which requests a shared cache may answer and which responses it may store, for every layer."""

from __future__ import annotations

import time

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.http import parse_http_date_safe

FORBIDDEN_DIRECTIVES = frozenset({"private", "no-store", "no-cache", "max-age=0", "s-maxage=0"})
HSTS = "strict-transport-security"
# SecurityMiddleware adds these where no view has, and may be further out.
SET_FURTHER_OUT = frozenset({"vary", "x-content-type-options", "referrer-policy", "cross-origin-opener-policy", HSTS})
VARY_ALLOWED = frozenset({"cookie", "accept-encoding"})


def may_store_for(request: HttpRequest) -> bool:
    """Whether the response to this request could be stored for everybody: a GET by an anonymous visitor.

    A visitor with a CSRF cookie is anonymous too: a page that holds their token sets the cookie anew, and is not
    stored for that (`may_store`). The site never reads other cookies, such as those of analytics.
    """
    return request.method == "GET" and may_answer(request)


def may_answer(request: HttpRequest) -> bool:
    """Whether a cached page may answer this GET or HEAD request.

    Django and browsers remove dot segments from a URL, while the site takes them as names: such a path would share
    the entry of another page.
    """
    return (
        request.method in ("GET", "HEAD")
        and not request.META.get("QUERY_STRING")
        and "/." not in request.path
        and "HTTP_AUTHORIZATION" not in request.META
        and settings.SESSION_COOKIE_NAME not in request.COOKIES
    )


def may_store(response: HttpResponse) -> bool:
    """Whether this response is a finished HTML page whose headers allow a shared cache to store it."""
    return (
        response.status_code == 200
        and not response.streaming
        and response.get("Content-Type", "").lower().replace(" ", "") == "text/html;charset=utf-8"
        and not response.cookies
        and not any(response.has_header(name) for name in ("Set-Cookie", "Content-Encoding", "Content-Range"))
        and _directives(response).isdisjoint(FORBIDDEN_DIRECTIVES)
        and not expires_early(response)
        and _varies_by(response) <= VARY_ALLOWED
    )


def expires_early(response: HttpResponse) -> bool:
    """Whether a page says that it is stale before a cached copy would expire, or that it must be asked for again.

    A lifetime that cannot be read counts as one that is over.
    """
    directives = _directives(response)
    named = dict(item.split("=", 1) for item in directives if "=" in item)
    lifetime = named.get("s-maxage", named.get("max-age"))
    if lifetime is None and (expires := response.get("Expires")) is not None:
        until = parse_http_date_safe(expires)
        lifetime = "" if until is None else str(max(0, int(until - time.time())))
    return (
        response.has_header("Age")
        or not directives.isdisjoint({"must-revalidate", "proxy-revalidate"})
        or (lifetime is not None and not (lifetime.isdecimal() and int(lifetime) >= settings.CACHING_SECONDS))
    )


def has_only_common_headers(response: HttpResponse) -> bool:
    """Whether a server that stores the body alone can send the headers of this page from its own configuration.

    That configuration has the headers of all pages of the site, so a page with headers of its own is not stored.
    Middleware further out adds more, which no view sets; what CACHING_PAGE_HEADERS names is added further in.
    """
    everywhere = {name.lower(): value for name, value in getattr(settings, "CACHING_PAGE_HEADERS", {}).items()}
    own = {name.lower() for name, value in response.items() if everywhere.get(name.lower()) != value}
    return (
        own <= {"content-type", "content-length", "x-render-id", "vary", "x-frame-options", HSTS}
        # A page that is without one of them shall not get it.
        and everywhere.keys() - SET_FURTHER_OUT <= {name.lower() for name, _ in response.items()}
        and _varies_by(response) <= {"cookie"}
        and response.get("X-Frame-Options", settings.X_FRAME_OPTIONS) == settings.X_FRAME_OPTIONS
    )


def _directives(response: HttpResponse) -> frozenset[str]:
    """The directives of Cache-Control, lower case; one with a field list (`private="Set-Cookie"`) by its name."""
    found = set()
    for part in response.get("Cache-Control", "").lower().split(","):
        directive = part.strip().replace(" ", "")
        name, _, value = directive.partition("=")
        found.add(f"{name}={value.strip(chr(34))}" if name in ("max-age", "s-maxage") else name)
    return frozenset(found)


def _varies_by(response: HttpResponse) -> frozenset[str]:
    """The names in Vary, lower case; a response class of its own can send several lines."""
    lines = [value for name, value in response.items() if name.lower() == "vary"]
    return frozenset(name.strip().lower() for name in ",".join(lines).split(",") if name.strip())

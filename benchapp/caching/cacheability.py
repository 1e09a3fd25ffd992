"""Cacheability: which requests a shared cache may answer and which responses it may store. One rule for every layer."""

from __future__ import annotations

import gzip
import re
import time
import zlib

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.utils.http import parse_http_date_safe

from benchapp.caching.conf import app_settings
from benchapp.caching.reads import BYPASSING, HTMX, names_of, read_cookie, read_header, varies_by

FORBIDDEN_DIRECTIVES = {"private", "no-store", "no-cache", "max-age=0", "s-maxage=0"}
FORBIDDEN_DIRECTIVES |= {"must-revalidate", "proxy-revalidate"}
VARY_ALLOWED = BYPASSING | {"cookie", "accept-encoding"}
BYPASSING_META, HTMX_META = (
    tuple(f"HTTP_{name.replace('-', '_')}".upper() for name in names) for names in (BYPASSING, HTMX)
)
PLAIN_PORTS = ("", "80", "443")
# The attribute of a script, a policy in a <meta>, whose quotes may be escaped, and what libraries of scripts look for.
NONCE = re.compile(rb"<[a-z]+\s[^>]*(?:\bnonce\s*=|(?:'|&#39;|&#x27;)nonce-|\bcsp-nonce\b)", re.IGNORECASE)
HSTS = "strict-transport-security"
# SecurityMiddleware adds these where no view has, and may be further out.
SET_FURTHER_OUT = frozenset({"vary", "x-content-type-options", "referrer-policy", "cross-origin-opener-policy", HSTS})


def may_answer(request: HttpRequest) -> bool:
    """Whether a cached page may answer this request: a GET or HEAD by an anonymous visitor for one of our hosts.

    A visitor with a CSRF cookie is anonymous too: a page that holds their token sets the cookie anew, and is not
    stored for that. Django and browsers remove dot segments from a URL, while the site takes them as names: such a
    path would share the entry of another page.
    """
    return (
        request.method in ("GET", "HEAD")
        and not request.META.get("QUERY_STRING")
        and "/." not in request.path
        and not any(name in request.META for name in BYPASSING_META)
        and settings.SESSION_COOKIE_NAME not in request.COOKIES
        and _is_our_host(request)
    )


def may_store_for(request: HttpRequest) -> bool:
    """Whether the response to this request could be stored for everybody.

    Not for a made-up port in Host, which the addresses in a page may have, nor for a body or a made-up header of htmx,
    which a view may read.
    """
    has_body = request.META.get("CONTENT_LENGTH") not in (None, "", "0") or "HTTP_TRANSFER_ENCODING" in request.META
    made_up = any(name in request.META for name in HTMX_META)
    return request.method == "GET" and not has_body and not made_up and may_answer(request) and _has_our_port(request)


def may_store(request: HttpRequest, response: HttpResponse, coding: str = "") -> bool:
    """Whether the response to a request that `may_store_for` allows is a finished page for everybody.

    coding  the content coding that it may have
    """
    return (
        response.status_code == 200
        and not response.streaming
        and response.get("Content-Type", "").lower().replace(" ", "") == "text/html;charset=utf-8"
        and response.get("Content-Encoding", "") in ("", coding)
        and not response.has_header("Content-Range")
        and not read_cookie(request)
        and not read_header(request, response)
        and not (response.cookies or response.has_header("Set-Cookie") or _sets_cookie_later(request))
        and varies_by(response) <= VARY_ALLOWED
        and not _directives(response) & FORBIDDEN_DIRECTIVES
        and not expires_early(response)
        and not has_nonce(response)
    )


def has_nonce(response: HttpResponse) -> bool:
    """Whether the page has a nonce of a Content-Security-Policy, which must be new for each visitor.

    The policy may be set later than the page is looked at, by middleware. A body that cannot be read may have one, too.
    """
    try:
        return "'nonce-" in policies(response).lower() or NONCE.search(html(response)) is not None
    except (OSError, EOFError, zlib.error):
        return True


def policies(response: HttpResponse) -> str:
    """The Content-Security-Policies of a response."""
    return "".join(response.get(f"Content-Security-Policy{kind}", "") for kind in ("", "-Report-Only"))


def html(response: HttpResponse) -> bytes:
    """The body of a response, as it was before GZipMiddleware."""
    packed = response.get("Content-Encoding") == "gzip"
    return gzip.decompress(response.content) if packed else response.content


def expires_early(response: HttpResponse) -> bool:
    """Whether a page says that it is stale before a cached copy would expire.

    A lifetime that cannot be read counts as one that is over.
    """
    named = dict(item.split("=", 1) for item in _directives(response) if "=" in item)
    lifetime = named.get("s-maxage", named.get("max-age"))
    if lifetime is None and (expires := response.get("Expires")) is not None:
        until = parse_http_date_safe(expires)
        lifetime = "" if until is None else str(max(0, int(until - time.time())))
    early = lifetime is not None and not (lifetime.isdecimal() and int(lifetime) >= app_settings.CACHING_SECONDS)
    return early or response.has_header("Age")


def has_only_common_headers(response: HttpResponse) -> bool:
    """Whether a server that stores the body alone can send the headers of this page from its own configuration.

    That configuration has the headers of all pages of the site, so a page with headers of its own is not stored.
    Middleware further out adds more, which no view sets; what CACHING_PAGE_HEADERS names is added further in.
    """
    everywhere = {name.lower(): value for name, value in app_settings.CACHING_PAGE_HEADERS.items()}
    own = {name.lower() for name, value in response.items() if everywhere.get(name.lower()) != value}
    return (
        own <= {"content-type", "content-length", "x-render-id", "vary", "x-frame-options", HSTS}
        # A page that is without one of them shall not get it.
        and everywhere.keys() - SET_FURTHER_OUT <= {name.lower() for name, _ in response.items()}
        and varies_by(response) <= {"cookie", *names_of(everywhere.get("vary", ""))}
        and response.get("X-Frame-Options", settings.X_FRAME_OPTIONS) == settings.X_FRAME_OPTIONS
    )


def _is_our_host(request: HttpRequest) -> bool:
    """Whether the host is one of the site's: middleware further in refuses others, which no stored page may answer."""
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True


def _has_our_port(request: HttpRequest) -> bool:
    """Whether Host has no port, the usual one, or that of the site: CACHING_PORT, else the server's own port."""
    port = split_domain_port(request.get_host())[1]
    own = app_settings.CACHING_PORT
    # Behind a reverse proxy the server's port is taken from Host, and by mod_wsgi always.
    if not own and not getattr(settings, "BENCHAPP_BEHIND_PROXY", False):
        own = request.META.get("SERVER_PORT", "")
    return port in (*PLAIN_PORTS, str(own))


def _sets_cookie_later(request: HttpRequest) -> bool:
    """Whether the view used a CSRF token or wrote to the session: middleware further out sets their cookies."""
    session = getattr(request, "session", None)
    return bool(request.META.get("CSRF_COOKIE_NEEDS_UPDATE") or (session is not None and session.modified))


def _directives(response: HttpResponse) -> frozenset[str]:
    """The directives of Cache-Control, lower case; one with a field list (`private="Set-Cookie"`) by its name."""
    found = set()
    for part in response.get("Cache-Control", "").lower().split(","):
        directive = part.strip().replace(" ", "")
        name, _, value = directive.partition("=")
        found.add(f"{name}={value.strip(chr(34))}" if name in ("max-age", "s-maxage") else name)
    return frozenset(found)

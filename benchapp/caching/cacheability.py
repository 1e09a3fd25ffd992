"""Cacheability: the requests that a shared cache may serve and the responses it may store. One rule for every layer."""

from __future__ import annotations

import gzip
import re
import time
import zlib
from collections.abc import Iterable

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.utils.http import parse_http_date_safe

from benchapp.caching.conf import app_settings
from benchapp.caching.hosts import is_other_scheme, reason_of_spelling
from benchapp.caching.private_apis import sets_csrf_cookie, uses_nonce
from benchapp.caching.request_reads import BYPASSING, HTMX, names_of, read_cookie, read_header, varies_by
from benchapp.caching.watched import MESSAGES_COOKIE

FORBIDDEN_DIRECTIVES = {"private", "no-store", "no-cache", "max-age=0", "s-maxage=0"}
FORBIDDEN_DIRECTIVES |= {"must-revalidate", "proxy-revalidate"}
VARY_ALLOWED = BYPASSING | {"cookie", "accept-encoding"}


def _names_in_meta(headers: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"HTTP_{name.replace('-', '_')}".upper() for name in headers)


BYPASSING_META, HTMX_META = _names_in_meta(BYPASSING), _names_in_meta(HTMX)
# The attribute of a script, a policy in a <meta>, whose quotes may be escaped, and what libraries of scripts look for.
NONCE = re.compile(
    rb"<[a-z][\w:-]*\s[^>]*(?:\b(?:csp|ngcsp)?nonce\s*=|(?:'|&#39;|&#x27;)nonce-|\bcsp-nonce\b)", re.IGNORECASE
)
HSTS = "strict-transport-security"
# SecurityMiddleware adds these if no view has, and may be further out.
SET_FURTHER_OUT = frozenset({"vary", "x-content-type-options", "referrer-policy", "cross-origin-opener-policy", HSTS})


# What each page may have besides: a server that stores bodies sends these itself, or they are of one rendering.
COMMON = {"content-type", "content-length", "vary", "x-frame-options", HSTS}


def may_serve(request: HttpRequest) -> bool:
    """True if a cached page may be the response to this request: from an anonymous visitor, without a query string."""
    return not request.META.get("QUERY_STRING") and not reason_to_pass(request)


def may_store_for(request: HttpRequest) -> bool:
    """True if the response to this request could be stored for everybody."""
    return may_serve(request) and not reason_to_render(request)


def may_store(request: HttpRequest, response: HttpResponse, coding: str = "") -> bool:
    """True if the response to a request that `may_store_for` allows is a finished page for everybody.

    coding  the content coding that the response may have
    """
    return not reason_not_to_store(request, response, coding)


def reason_to_pass(request: HttpRequest) -> str:
    """The reason why no cached page may be the response to this request, whatever the query string; else empty.

    A visitor with a CSRF cookie is anonymous too: a page with the token sets the cookie again, and is not stored for
    that reason. Django and browsers remove dot segments from a URL, while the site takes them as names: such a path
    would share the entry of another page.
    """
    if request.method not in ("GET", "HEAD"):
        return "method"
    if "/." in request.path:
        return "path"
    for name in BYPASSING_META:
        if name in request.META:
            return "request-header"
    if _has_type(request):
        return "request-header"
    if settings.SESSION_COOKIE_NAME in request.COOKIES:
        return "session"
    if MESSAGES_COOKIE in request.COOKIES:
        return "messages"
    if not _is_our_host(request):
        return "host"
    return "scheme" if is_other_scheme(request) else ""


def reason_to_render(request: HttpRequest) -> str:
    """The reason why the response to a request that a cached page may serve cannot be stored; else empty.

    A spelling of the host, a made-up port or a prefix may appear in the page's addresses, and a view may read a body or
    a made-up header of htmx. Some servers take the prefix, SCRIPT_NAME, from a header of any client.
    """
    if request.method != "GET":
        return "method"
    if request.META.get("CONTENT_LENGTH") not in (None, "", "0") or "HTTP_TRANSFER_ENCODING" in request.META:
        return "body"
    if request.META.get("SCRIPT_NAME", "") != (settings.FORCE_SCRIPT_NAME or ""):
        return "prefix"
    for name in HTMX_META:
        if name in request.META:
            return "request-header"
    return reason_of_spelling(request)


def reason_not_to_store(
    request: HttpRequest,
    response: HttpResponse,
    coding: str = "",
    own_lifetime: bool = False,
    language: str = "",
) -> str:
    """The reason why a response is no finished page for everybody; else empty. docs/caching.md lists the reasons.

    coding        the content coding that the response may have
    own_lifetime  whether the store keeps a page for a shorter time if the page says so
    language      the language in the page's name; then the page may vary by language
    """
    if response.status_code != 200:
        return "status"
    if response.streaming:
        return "streaming"
    if response.get("Content-Type", "").lower().replace(" ", "") != "text/html;charset=utf-8":
        return "content-type"
    if response.get("Content-Encoding", "") not in ("", coding):
        return "content-encoding"
    if response.has_header("Content-Range"):
        return "content-range"
    # LocaleMiddleware says that a page varies by the language; a view that says so shows more of the header.
    may_vary_by_language = bool(language) and "accept-language" not in getattr(request, "view_varies_by", ())
    return (
        reason_of_visitor(request, response)
        or reason_of_headers(response, own_lifetime, may_vary_by_language)
        or ("nonce" if uses_nonce(request) or has_nonce(response) else "")
    )


def reason_of_visitor(request: HttpRequest, response: HttpResponse) -> str:
    """The reason why a page is for one visitor; empty for a page for everybody."""
    if cookie := read_cookie(request):
        return f"reads-cookie={cookie}"
    if header := read_header(request, response):
        return f"reads-header={header}"
    if response.cookies or _has_line(response, "set-cookie") or _sets_cookie_later(request):
        return "sets-cookie"
    return "not-public" if getattr(request, "not_public", False) else ""


def reason_of_headers(response: HttpResponse, own_lifetime: bool, may_vary_by_language: bool) -> str:
    """The reason why the headers of a page forbid storing; else empty."""
    allowed = VARY_ALLOWED | {"accept-language"} if may_vary_by_language else VARY_ALLOWED
    if not varies_by(response) <= allowed:
        return "vary"
    if _forbids_storing(response):
        return "cache-control"
    shortest = 1 if own_lifetime else app_settings.CACHING_SECONDS
    return "lifetime" if lifetime(response) < shortest else ""


def _has_line(response: HttpResponse, header: str) -> bool:
    """True if a response has this header, in lower case; a project's response class can write its own lines."""
    return any(name.lower() == header for name, _ in response.items())


def _forbids_storing(response: HttpResponse) -> bool:
    """True if a header says that no cache, or no cache of a certain kind, may store the page."""
    for name, value in response.items():
        # Cache-Control, and those of one kind of cache: Surrogate-Control, CDN-Cache-Control and the like.
        if name.lower().endswith(("cache-control", "surrogate-control")) and _directives(value) & FORBIDDEN_DIRECTIVES:
            return True
    return (
        response.has_header("Clear-Site-Data")
        or response.get("X-Accel-Expires") == "0"
        or ("no-cache" in response.get("Pragma", "").lower() and not response.has_header("Cache-Control"))
    )


def has_nonce(response: HttpResponse) -> bool:
    """True if the page has a nonce of a Content-Security-Policy, which must be new for each visitor.

    Middleware may set the policy later. An unreadable body counts as a body with a nonce.
    """
    try:
        return "'nonce-" in policies(response).lower() or NONCE.search(html(response)) is not None
    except (OSError, EOFError, zlib.error):
        return True


def policies(response: HttpResponse) -> str:
    """The Content-Security-Policies of a response."""
    return "".join(response.get(f"Content-Security-Policy{kind}", "") for kind in ("", "-Report-Only"))


def html(response: HttpResponse) -> bytes:
    """The body of a response, before GZipMiddleware."""
    packed = response.get("Content-Encoding") == "gzip"
    return gzip.decompress(response.content) if packed else response.content


def lifetime(response: HttpResponse) -> int:
    """The seconds for which a page may be stored: CACHING_SECONDS, or less if the page says so.

    An unreadable lifetime counts as over.
    """
    if response.has_header("Age"):
        return 0
    named = dict(item.split("=", 1) for item in _directives(response.get("Cache-Control", "")) if "=" in item)
    seconds = named.get("s-maxage", named.get("max-age"))
    if seconds is not None:
        return min(int(seconds), app_settings.CACHING_SECONDS) if seconds.isdecimal() else 0
    if (expires := response.get("Expires")) is not None:
        until = parse_http_date_safe(expires) or 0
        return min(max(0, int(until - time.time())), app_settings.CACHING_SECONDS)
    return app_settings.CACHING_SECONDS


def has_only_common_headers(response: HttpResponse) -> bool:
    """True if a server that stores only the body can send the headers of this page from the server's configuration.

    The configuration has the headers of all pages of the site, so a page with other headers is not stored. Middleware
    further out adds headers that no view sets; middleware further in adds the headers in CACHING_PAGE_HEADERS.
    """
    everywhere = {name.lower(): value for name, value in app_settings.CACHING_PAGE_HEADERS.items()}
    own = {name.lower() for name, value in response.items() if everywhere.get(name.lower()) != value}
    return (
        own <= COMMON
        # A page that is without one of them shall not get it.
        and everywhere.keys() - SET_FURTHER_OUT <= {name.lower() for name, _ in response.items()}
        and varies_by(response) <= {"cookie", *names_of(everywhere.get("vary", ""))}
        and response.get("X-Frame-Options", settings.X_FRAME_OPTIONS) == settings.X_FRAME_OPTIONS
    )


def _is_our_host(request: HttpRequest) -> bool:
    """True if the host is one of the site's: middleware further in refuses others, so no stored page may be served."""
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True


def _has_type(request: HttpRequest) -> bool:
    """True if the request has a Content-Type, which `request.content_type` and `request.encoding` show."""
    content_type = request.META.get("CONTENT_TYPE", "")
    # Django's development server names a type for a request without one.
    made_up = request.META.get("SERVER_SOFTWARE", "").startswith("WSGIServer/")
    return bool(content_type) and not (made_up and content_type == "text/plain")


def _sets_cookie_later(request: HttpRequest) -> bool:
    """True if the view used a CSRF token or wrote to the session: middleware further out sets their cookies."""
    session = getattr(request, "session", None)
    return sets_csrf_cookie(request) or (session is not None and session.modified)


def _directives(control: str) -> frozenset[str]:
    """The directives of Cache-Control, lower case; one with a field list (`private="Set-Cookie"`) by name only."""
    directives = set()
    for part in control.lower().split(","):
        directive = part.strip().replace(" ", "")
        name, _, value = directive.partition("=")
        directives.add(f"{name}={value.strip(chr(34))}" if name in ("max-age", "s-maxage") else name)
    return frozenset(directives)

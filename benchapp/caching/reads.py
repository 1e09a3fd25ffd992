"""What a rendering reads of its visitor: a page that depends on a cookie or a header is no page for everybody.

No layer's key holds cookies or headers, as it has to be for cookies of analytics: each value would be a page of its
own. So a page whose rendering reads one is marked as private, which keeps it out of every layer, inside and outside of
Django. Cookies, and the host (`hosts`), are watched in the whole chain of middleware; other headers, the address of the
client and its CSRF cookie in the view and its templates, for middleware reads many for a log.

Not noticed: what middleware reads of `request.META` or `request.headers`, what anybody reads of the scope of ASGI
(`request.scope`), of a copy of `META` that middleware has made, or of a request that it has put in the place of ours.
Such a page says so itself, by Vary or Cache-Control.
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import HttpHeaders
from django.utils.cache import patch_cache_control
from django.utils.functional import SimpleLazyObject

from benchapp.caching.conf import app_settings
from benchapp.caching.hosts import HostWatch, has_several_hosts
from benchapp.caching.private_apis import host_reads_of_django
from benchapp.caching.variants import restore

GetResponse = Callable[[HttpRequest], HttpResponse]

# Of analytics and advertising: no page depends on them. Layers look at cookies of sessions and messages themselves, and
# CsrfViewMiddleware reads that of its token for every page.
ANALYTICS = re.compile(r"_ga|_ga_\w+|_gid|_gat[\w-]*|_gcl_\w+|_fb[pc]|_pk_\w+|_hj\w+|__utm\w+|_clck|_clsk|utm_\w+")
MESSAGES_COOKIE = "messages"
# Requests with one of these bypass every cache (`cacheability`): all others are without it.
BYPASSING = frozenset({"authorization", "hx-request", "origin", "x-requested-with"})
# Of htmx, beside HX-Request; the page of a request that has one without is stored nowhere (`may_store_for`).
HTMX = frozenset({"hx-boosted", "hx-current-url", "hx-history-restore-request", "hx-prompt", "hx-target"})
HTMX |= {"hx-trigger", "hx-trigger-name"}
# Read for the address of the page itself, for its coding, or to answer with 304: what is stored is the same.
HARMLESS = BYPASSING | HTMX | {"host", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "frontproto"}
HARMLESS |= {"accept-encoding", "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "range"}
# Of a body, with which nothing is stored.
HARMLESS |= {"transfer-encoding"}
# Names in META that are no headers: the client's address, and the secret of its CSRF cookie.
OF_VISITOR = frozenset({"REMOTE_ADDR", "REMOTE_HOST", "REMOTE_PORT", "REMOTE_USER", "CSRF_COOKIE"})
ALL = "any"
WORD = re.compile(r"[\w-]+", re.ASCII)


class _Watched(UserDict, dict):
    """A dictionary that notes what is looked for in it; writes reach the original.

    It is a `dict` for what takes no other, such as `json.dumps`. That holds one entry, which nobody is shown: of an
    empty one C code would ask nothing.
    """

    def __init__(self, original: dict[str, Any], read: set[str]) -> None:
        dict.__setitem__(self, ALL, ALL)
        self.data, self.read = original, read

    def note(self, name: object = ALL) -> None:
        """Remember that the value of a name, or of all, was looked for."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        self.note(name)
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        self.note(name)
        return name in self.data

    def __iter__(self) -> Iterator[str]:
        self.note()
        return iter(self.data)

    def __len__(self) -> int:
        self.note()
        return len(self.data)

    def __repr__(self) -> str:
        self.note()
        return repr(self.data)

    def __or__(self, other: Any) -> dict[str, Any]:
        return dict(self) | dict(other)

    def __ror__(self, other: Any) -> dict[str, Any]:
        return dict(other) | dict(self)

    def copy(self) -> dict[str, Any]:
        """A copy that is not watched."""
        return dict(self)


class WatchedCookies(_Watched):
    """The cookies of a request; `read` gets the names of those that may change a page."""

    def __init__(self, original: dict[str, Any], read: set[str], named: str = "") -> None:
        """`named`: a cookie whose value is part of the page's name."""
        super().__init__(original, read)
        self.known = {settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME, MESSAGES_COOKIE, named}

    def note(self, name: object = ALL) -> None:
        """Remember a cookie, unless no page depends on it."""
        if not isinstance(name, str) or not WORD.fullmatch(name):
            self.read.add(ALL)
        elif name not in self.known and not ANALYTICS.fullmatch(name):
            self.read.add(name)


class WatchedMeta(_Watched):
    """`request.META`; `read` gets the names of headers, as in Vary."""

    def note(self, name: object = "HTTP_ANY") -> None:
        """Remember a header, and what else is one visitor's; the rest is the server's."""
        if name in OF_VISITOR:
            self.read.add(str(name).lower().replace("_", "-"))
        elif isinstance(name, str) and name.startswith("HTTP_"):
            self.read.add(name.removeprefix("HTTP_").lower().replace("_", "-"))


class WatchedHeaders(HttpHeaders):
    """The headers of a request, as `request.headers` has them; `read` has the names of those that were looked for."""

    def __init__(self, environ: dict[str, Any], read: set[str]) -> None:
        super().__init__(environ)
        self.read = read

    def __getitem__(self, name: str) -> str:
        self.read.add(name.lower().replace("_", "-"))
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        self.read.add(ALL)
        return super().__iter__()


class MarkPrivate:
    """Middleware inside of the layers: pages outside of CACHING_PUBLIC, and those that read something, are private.

    CACHING_PUBLIC = ["/", "/blog/"]: only these pages and those below them may be cached; `/` is the home page alone.
    Empty or absent: all pages.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        # Requests have their paths without percent-encoding.
        self.exact = frozenset(unquote(urlsplit(page).path) for page in app_settings.CACHING_PUBLIC)
        self.below = tuple(f"{path.rstrip('/')}/" for path in self.exact if path != "/")
        self.has_several_hosts = has_several_hosts()
        self.host_reads = host_reads_of_django() if self.has_several_hosts else 0

    def __call__(self, request: HttpRequest) -> HttpResponse:
        named = settings.LANGUAGE_COOKIE_NAME if hasattr(request, "cache_language") else ""
        request.cookies_read = set()
        request.COOKIES = WatchedCookies(request.COOKIES, request.cookies_read, named)
        if self.has_several_hosts:
            request.host_watch = HostWatch(request, self.host_reads)
        request.not_public = bool(self.exact) and not self._is_public(request.path)
        response = self.get_response(request)
        if request.not_public or read_cookie(request) or read_header(request, response):
            patch_cache_control(response, private=True)
        return response

    def _is_public(self, path: str) -> bool:
        return path in self.exact or path.startswith(self.below)


def watch_headers(request: HttpRequest, get_response: GetResponse) -> HttpResponse:
    """The response of the view; `request.headers_read` gets the names of the headers that it and its templates read.

    Middleware on the way out may read more, and add to what the view itself varies by, `request.view_varies_by`.
    """
    request.headers_read = read = set()
    meta = request.META
    if hasattr(request, "accept_language"):
        # A variant by language has the language in its place.
        restore(meta, {"HTTP_ACCEPT_LANGUAGE": request.accept_language})
    if isinstance(request.COOKIES, WatchedCookies):
        # CsrfViewMiddleware has read it; a page that shows it is one visitor's.
        request.COOKIES.known.discard(settings.CSRF_COOKIE_NAME)
    request.META = WatchedMeta(meta, read)
    if hasattr(request, "environ"):
        # The name of META that WSGI has.
        request.environ = request.META
    # Headers are made of META when they are read, which few pages do.
    request.headers = SimpleLazyObject(lambda: WatchedHeaders(meta, read))
    try:
        response = get_response(request)
        request.view_varies_by = varies_by(response)
        return response
    finally:
        request.headers_read = frozenset(read)


def read_cookie(request: HttpRequest) -> str:
    """A cookie that may have changed the page; empty when none was read."""
    return min(getattr(request, "cookies_read", ()), default="")


def read_header(request: HttpRequest, response: HttpResponse) -> str:
    """A header that may have changed the page, and is not in its Vary; empty when there is none."""
    declared = varies_by(response) - {"cookie"}
    if hasattr(request, "cache_language"):
        # A layer may store what varies by it: the language is named, the rest of the header is not.
        declared -= {"accept-language"}
    read = getattr(request, "headers_read", frozenset()) - HARMLESS - declared
    if hasattr(request, "host_watch") and request.host_watch.is_read:
        # No Vary helps: the layers keep one page for all names of the site.
        return "host"
    return min(read, default="")


def varies_by(response: HttpResponse) -> frozenset[str]:
    """The names in Vary, lower case; a response class of its own can send several lines."""
    return names_of(",".join(value for name, value in response.items() if name.lower() == "vary"))


def names_of(vary: str) -> frozenset[str]:
    """The names in a value of Vary, lower case."""
    return frozenset(name.strip().lower() for name in vary.split(",") if name.strip())

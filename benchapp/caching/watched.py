"""A watched request: its cookies, META, headers and scope note each name that is read."""

from __future__ import annotations

import functools
import os
import re
from collections import Counter, UserDict
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.request import HttpHeaders, split_domain_port
from django.utils import functional
from django.utils.encoding import escape_uri_path

ALL = "any"
WORD = re.compile(r"[\w.-]+", re.ASCII)
MESSAGES_COOKIE = "messages"
# Named by the page, written by Django itself, or the same for all visitors. A request with a body or a type of one is
# stored nowhere.
HARMLESS_META = frozenset({"REQUEST_METHOD", "PATH_INFO", "SCRIPT_NAME", "QUERY_STRING"})
HARMLESS_META |= {"CONTENT_TYPE", "HTTP_TRANSFER_ENCODING", "CSRF_COOKIE_NEEDS_UPDATE"}
HARMLESS_META |= {"SERVER_SOFTWARE", "GATEWAY_INTERFACE"}
# A layer takes these away, or has them in the page's name.
HARMLESS_META |= {"HTTP_ACCEPT_ENCODING"}
HARMLESS_SCOPE = frozenset({"type", "asgi", "method", "path", "root_path", "query_string"})
# Names in the scope of ASGI that META has, too.
SCOPE_NAMES = {"client": "remote-addr", "server": "server-name", "http_version": "server-protocol", "headers": ALL}
# The address as the client wrote it.
WRITTEN = frozenset({"REQUEST_URI", "RAW_URI"})
# A request with them in META may get a page that depends on them: such a page is not stored.
CONDITIONS = frozenset({"HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_IF_MATCH", "HTTP_IF_UNMODIFIED_SINCE"})
CONDITIONS |= {"HTTP_RANGE", "HTTP_IF_RANGE"}
# Of one visitor, also if middleware wrote them.
OF_VISITOR = ("HTTP_", "REMOTE_", "SERVER_", "CSRF_COOKIE")
# Cached properties of requests that hold no more than the page's name has, or are watched themselves.
NAMED = frozenset({"GET", "POST", "FILES", "COOKIES", "headers"})


class Reads:
    """The names that were read: `cookie:theme`, `user-agent`, `remote-addr`, `host`, `scheme`."""

    def __init__(self, of_django: Mapping[str, int], absent: frozenset[str]) -> None:
        """Begin without a name.

        of_django  names that Django's own middleware reads in every request that reaches the view, and how often
        absent     headers of which no stored page's request has one
        """
        self.of_django, self.absent = of_django, absent
        self.is_paused = False
        # All middleware has seen the request when the view has it.
        self.has_reached_view = False
        self._counts: Counter[str] = Counter()

    @property
    def names(self) -> frozenset[str]:
        """The names that code other than Django's own middleware has read."""
        of_django = self.of_django if self.has_reached_view else {}
        return frozenset(name for name, count in self._counts.items() if count > of_django.get(name, 0))

    def note(self, name: str) -> None:
        """Remember a name."""
        if not self.is_paused:
            self._counts[name] += 1

    def allow_so_far(self) -> None:
        """Count as many more reads of each name so far as reads of Django's own middleware."""
        self.of_django = {**self.of_django, **self._counts}
        self._counts.clear()


class _Watched(UserDict, dict):
    """A dictionary that notes each read; writes reach the original.

    A `dict` for callers that accept nothing else, such as `json.dumps`. The underlying dict holds one entry, which
    nobody is shown: C code would not call the methods of an empty one.
    """

    def __init__(self, original: dict[str, Any], reads: Reads) -> None:
        dict.__setitem__(self, ALL, ALL)
        self.data, self.reads = original, reads

    def note(self, name: object = ALL) -> None:
        """Note that the value of a name, or of all, was read."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        self.note(name)
        return self.data[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a name."""
        self.note(name)
        return self.data.get(name, default)

    def __contains__(self, name: object) -> bool:
        self.note(name)
        return name in self.data

    def __iter__(self) -> Iterator[str]:
        self.note()
        return iter(self.data)

    def __reversed__(self) -> Iterator[str]:
        self.note()
        return reversed(self.data)

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

    __copy__ = copy

    def __reduce_ex__(self, protocol: object) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)


class WatchedCookies(_Watched):
    """The cookies of a request."""

    def __init__(self, original: dict[str, Any], reads: Reads) -> None:
        super().__init__(original, reads)
        # A request with one of them gets no stored page.
        self.known = {settings.SESSION_COOKIE_NAME, MESSAGES_COOKIE}

    def note(self, name: object = ALL) -> None:
        """Remember a cookie, unless no stored page depends on it."""
        if name not in self.known:
            self.reads.note(f"cookie:{name if _is_word(name) else ALL}")


class WatchedMeta(_Watched):
    """`request.META`, and `environ` of WSGI."""

    def __init__(self, original: dict[str, Any], reads: Reads) -> None:
        super().__init__(original, reads)
        self.written: set[str] = set()

    def __setitem__(self, name: str, value: Any) -> None:
        if not name.startswith(OF_VISITOR):
            self.written.add(name)
        self.data[name] = value

    def note(self, name: object = ALL) -> None:
        """Remember a name that may be one visitor's."""
        if name in HARMLESS_META or name in self.written:
            return
        if not _is_word(name):
            self.reads.note(ALL)
        elif name == "SERVER_PORT" and self._has_port_of_host():
            # It shows no more than they do.
            self.reads.note("host")
            self.reads.note("scheme")
        elif read_name := self._name(name):
            self.reads.note(read_name)

    def _has_port_of_host(self) -> bool:
        """True if SERVER_PORT is the port in Host, or the usual port if Host has none."""
        own = str(self.data.get("SERVER_PORT"))
        if "HTTP_X_FORWARDED_HOST" in self.data and settings.USE_X_FORWARDED_HOST:
            return False
        if "HTTP_HOST" not in self.data:
            # The host is made of it.
            return True
        port = split_domain_port(self.data["HTTP_HOST"])[1]
        return own == port or (not port and own in ("80", "443"))

    def _name(self, name: str) -> str:
        """The name as noted; empty for a name that is no visitor's."""
        value = self.data.get(name)
        if name.startswith("HTTP_"):
            return self._name_of_header(name, value)
        if name.startswith("wsgi."):
            return "scheme" if name == "wsgi.url_scheme" else ""
        if name == "CONTENT_LENGTH" and not value:
            return ""
        if name in WRITTEN and value == _address(self.data):
            return ""
        # Some servers hand the variables of their process on.
        if value is not None and os.environ.get(name) == value:
            return ""
        return name.lower().replace("_", "-")

    def _name_of_header(self, name: str, value: Any) -> str:
        header = name[5:].lower().replace("_", "-")
        if value is None and (header in self.reads.absent or name in CONDITIONS):
            return ""
        if settings.SECURE_PROXY_SSL_HEADER and name == settings.SECURE_PROXY_SSL_HEADER[0]:
            return "scheme" if value in (None, "http", "https") else header
        if settings.USE_X_FORWARDED_HOST and header in ("host", "x-forwarded-host"):
            used = "HTTP_X_FORWARDED_HOST" if "HTTP_X_FORWARDED_HOST" in self.data else "HTTP_HOST"
            return "host" if name == used else "x-forwarded-host"
        return header


class WatchedHeaders(HttpHeaders):
    """The headers of a request, like `request.headers`."""

    def __init__(self, meta: WatchedMeta) -> None:
        self._meta = meta

    @functools.cached_property
    def _original(self) -> HttpHeaders:
        # Few pages read headers.
        return HttpHeaders(self._meta.data)

    def __getitem__(self, name: str) -> str:
        self._meta.note(self.to_wsgi_name(name))
        return self._original[name]

    def __iter__(self) -> Iterator[str]:
        self._meta.note(ALL)
        return iter(self._original)

    def __len__(self) -> int:
        self._meta.note(ALL)
        return len(self._original)

    def __repr__(self) -> str:
        self._meta.note(ALL)
        return repr(self._original)


class WatchedScope(_Watched):
    """`request.scope` of ASGI."""

    def note(self, name: object = ALL) -> None:
        """Remember a name that may be one visitor's."""
        if name in HARMLESS_SCOPE:
            return
        if name == "raw_path" and self.data.get("raw_path") == escape_uri_path(self.data["path"]).encode("ascii"):
            return
        self.reads.note(SCOPE_NAMES.get(name, name) if _is_word(name) else ALL)


class Watch:
    """A watched request, and its original attributes."""

    def __init__(self, request: HttpRequest, reads: Reads) -> None:
        self.request, self.reads = request, reads
        forget_computed(request)
        before = vars(request)
        self.before = {name: before[name] for name in ("META", "environ", "scope", "get_host") if name in before}
        self.before["COOKIES"] = request.COOKIES
        self._get_host = request.get_host
        request.COOKIES = WatchedCookies(request.COOKIES, reads)
        meta = request.META = WatchedMeta(request.META, reads)
        request.headers = WatchedHeaders(meta)
        if "environ" in self.before:
            # The name of META that WSGI has.
            request.environ = meta
        if "scope" in self.before:
            request.scope = WatchedScope(request.scope, reads)
        request.get_host = self.get_host

    def get_host(self) -> str:
        """The host, noted once, whatever is read to find it."""
        reads, was_paused = self.reads, self.reads.is_paused
        reads.note("host")
        reads.is_paused = True
        try:
            return self._get_host()
        finally:
            reads.is_paused = was_paused

    def end(self) -> None:
        """Restore the request."""
        forget_computed(self.request)
        for name in ("headers", "get_host"):
            vars(self.request).pop(name, None)
        vars(self.request).update(self.before)


def forget_computed(request: HttpRequest) -> None:
    """Drop cached properties, so that a later read computes them from watched values."""
    attributes = vars(request)
    for name in _cached_properties(type(request)):
        attributes.pop(name, None)
    if not isinstance(attributes.get("headers"), WatchedHeaders):
        attributes.pop("headers", None)


@functools.lru_cache
def _cached_properties(kind: type) -> frozenset[str]:
    """The names of the cached properties of a class that may hold values of one visitor."""
    names = set()
    for base in kind.__mro__:
        for name, value in vars(base).items():
            if isinstance(value, (functools.cached_property, functional.cached_property)):
                names.add(name)
    return frozenset(names - NAMED)


def _is_word(name: object) -> bool:
    """True if a name can stand in a header of ours."""
    return isinstance(name, str) and WORD.fullmatch(name) is not None


def _address(meta: dict[str, Any]) -> str:
    """The address of the page, as a browser writes it."""
    path = escape_uri_path(f"{meta.get('SCRIPT_NAME', '').rstrip('/')}{meta.get('PATH_INFO', '')}")
    return f"{path}?{query}" if (query := meta.get("QUERY_STRING")) else path

"""The variants of a page: the rest of its name beside the path, for stores that Django reads.

A variant is the query string, of CACHING_QUERY in one spelling, and the language that LocaleMiddleware gives the
request. Other parameters of the visitor are taken away before the rendering, so that no page has them. Of the language,
LocaleMiddleware sees what the visitor said; a page with another language than its name, or with more reads, is private.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, QueryDict
from django.middleware.locale import LocaleMiddleware
from django.utils import translation

from benchapp.caching.conf import app_settings

LOCALE = "django.middleware.locale.LocaleMiddleware"
# The names in META of the address that the client wrote.
WRITTEN = ("REQUEST_URI", "RAW_URI")
_locale = LocaleMiddleware(lambda request: HttpResponse())


class Variant(NamedTuple):
    """One variant of a page, with an allowed content coding."""

    query: str
    language: str
    coding: str

    @property
    def key(self) -> str:
        """A text that no other variant has."""
        return f"{self.coding} {self.language} {self.query}" if self.query or self.language else self.coding


def query_of(request: HttpRequest) -> str | None:
    """The query string of the page's name: its named parameters by name, without the ignored ones.

    None for a request that no stored page serves: another parameter, or the same one twice.
    """
    if not request.META.get("QUERY_STRING"):
        return ""
    if request.encoding:
        # The client names another charset for the values.
        return None
    try:
        parameters = dict(request.GET.lists())
    except SuspiciousOperation:
        # Too many parameters.
        return None
    query = QueryDict(mutable=True)
    for name in sorted(parameters):
        if name in app_settings.CACHING_QUERY:
            if len(parameters[name]) > 1:
                return None
            query[name] = parameters[name][0]
        elif not _is_ignored(name):
            return None
    return query.urlencode()


def _is_ignored(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in app_settings.CACHING_QUERY_IGNORED)


def language_of(request: HttpRequest) -> str:
    """The language that LocaleMiddleware gives the request; empty without LocaleMiddleware.

    A subclass in the project may choose otherwise: then no page has a language in its name.
    """
    if LOCALE not in settings.MIDDLEWARE:
        return ""
    with translation.override(None):
        _locale.process_request(request)
    return request.LANGUAGE_CODE


def rendering_of(
    request: HttpRequest, variant: Variant, render: Callable[[], HttpResponse]
) -> Callable[[], HttpResponse]:
    """A function that renders this variant of a page, whatever other parameters the visitor has sent."""
    if variant.language:
        request.cache_language, request.cache_language_said = variant.language, _said_of_language(request)
    query = request.META.get("QUERY_STRING", "")
    if not query:
        return render

    def render_variant() -> HttpResponse:
        with _as_named(request, variant.query):
            response = render()
        # A redirect goes on with the parameters of the visitor.
        return render() if variant.query != query and response.has_header("Location") else response

    return render_variant


@contextlib.contextmanager
def _as_named(request: HttpRequest, query: str) -> Iterator[None]:
    """Let the request have this query string; afterwards the original one again, for logs."""
    meta = request.META
    before = {name: meta.get(name) for name in ("QUERY_STRING", *WRITTEN)}
    attributes: dict[str, Any] = {"GET": request.GET}
    if hasattr(request, "scope"):
        attributes["scope"] = request.scope
        request.scope = {**request.scope, "query_string": query.encode("ascii")}
    _set_query(request, query)
    try:
        yield
    finally:
        _restore(meta, before)
        vars(request).update(attributes)


def _set_query(request: HttpRequest, query: str) -> None:
    request.GET = QueryDict(query)
    request.META["QUERY_STRING"] = query
    for name in WRITTEN:
        if name in request.META:
            path = request.META[name].partition("?")[0]
            request.META[name] = f"{path}?{query}" if query else path


def _restore(meta: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Restore earlier values of names in META; None removes a name."""
    for name, value in before.items():
        if value is None:
            meta.pop(name, None)
        else:
            meta[name] = value


def _said_of_language(request: HttpRequest) -> tuple[str | None, str | None]:
    """The header and the cookie that LocaleMiddleware reads, besides the path."""
    return request.META.get("HTTP_ACCEPT_LANGUAGE"), request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME)


def has_named_language(request: HttpRequest) -> bool:
    """True if LocaleMiddleware has chosen the language of the page's name, by what the visitor said.

    Middleware before it may have written another language, as to ignore that of browsers.
    """
    kept = _said_of_language(request) == request.cache_language_said
    return kept and request.cache_language == request.LANGUAGE_CODE

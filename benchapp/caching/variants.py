"""The variants of a page: the rest of its name beside the path, for stores that Django reads.

A variant is the query string, of CACHING_QUERY in one spelling, and the language that LocaleMiddleware gives the
request. Other values of the visitor are taken away before the rendering, so that no page has them.
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
    """A function that renders this variant of a page, whatever else the visitor has said."""
    said = request.META.get("QUERY_STRING", "")
    if not said and not variant.language:
        return render

    def render_variant() -> HttpResponse:
        with _as_named(request, variant):
            response = render()
        # A redirect goes on with the parameters of the visitor.
        return render() if variant.query != said and response.has_header("Location") else response

    return render_variant


@contextlib.contextmanager
def _as_named(request: HttpRequest, variant: Variant) -> Iterator[None]:
    """Let the request have this query string and language; afterwards the original ones again, for logs."""
    meta = request.META
    before = {name: meta.get(name) for name in ("QUERY_STRING", "HTTP_ACCEPT_LANGUAGE", *WRITTEN)}
    attributes = {"GET": request.GET, "COOKIES": request.COOKIES}
    if hasattr(request, "scope"):
        attributes["scope"] = request.scope
        request.scope = {**request.scope, "query_string": variant.query.encode("ascii")}
    _set_query(request, variant.query)
    if variant.language:
        _set_language(request, variant.language)
    # They are made of META when they are read for the first time.
    vars(request).pop("headers", None)
    try:
        yield
    finally:
        restore(meta, before)
        vars(request).update(attributes)


def _set_query(request: HttpRequest, query: str) -> None:
    request.GET = QueryDict(query)
    request.META["QUERY_STRING"] = query
    for name in WRITTEN:
        if name in request.META:
            path = request.META[name].partition("?")[0]
            request.META[name] = f"{path}?{query}" if query else path


def _set_language(request: HttpRequest, language: str) -> None:
    # LocaleMiddleware looks at the cookie before the header.
    request.COOKIES = {**request.COOKIES, settings.LANGUAGE_COOKIE_NAME: language}
    # A view that reads the header gets the visitor's own, and its page is private.
    request.cache_language, request.accept_language = language, request.META.get("HTTP_ACCEPT_LANGUAGE")
    request.META["HTTP_ACCEPT_LANGUAGE"] = language


def restore(meta: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Restore earlier values of names in META; None removes a name."""
    for name, value in before.items():
        if value is None:
            meta.pop(name, None)
        else:
            meta[name] = value

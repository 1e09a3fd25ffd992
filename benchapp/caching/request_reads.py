"""One rule: whatever a response may depend on is part of the page's name, is taken away, or makes the page private.

No layer's key holds cookies, headers or addresses: each value would be another page. So the cookies, META, headers and
scope of a request are watched (`watched`) inside of the layers, in all middleware, the view and its templates. A page
whose rendering read one of them is marked as private, which keeps the page out of every layer, inside and outside of
Django. Exceptions are values that a page may show because no other request's page is stored (`hosts`, `cacheability`),
reads of Django's own middleware (`private_apis`), and reads that the site declares as harmless (`harmless`).

Not noticed: reads of middleware outside of CachingMiddleware; `manage.py check` names such middleware.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control

from benchapp.caching.conf import OUTER, app_settings
from benchapp.caching.harmless import COOKIE, harmless_middleware, harmless_names
from benchapp.caching.hosts import is_own_host, is_own_scheme
from benchapp.caching.private_apis import reads_of_django
from benchapp.caching.variants import LOCALE, has_named_language, language_of
from benchapp.caching.watched import Reads, Watch

GetResponse = Callable[[HttpRequest], HttpResponse]

# Requests with one of these bypass every cache (`cacheability`): all others are without it.
BYPASSING = frozenset({"authorization", "hx-request", "origin", "x-requested-with"})
# Of htmx, beside HX-Request; the page of a request that has one without is stored nowhere (`may_store_for`).
HTMX = frozenset({"hx-boosted", "hx-current-url", "hx-history-restore-request", "hx-prompt", "hx-target"})
HTMX |= {"hx-trigger", "hx-trigger-name"}
ABSENT = BYPASSING | HTMX


class MarkPrivate:
    """Middleware inside of the layers: pages outside of CACHING_PUBLIC, and pages with a watched read, are private.

    CACHING_PUBLIC = ["/", "/blog/"]: only these pages and pages below them may be cached; `/` is only the home page.
    Empty or absent: all pages.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        # Requests have their paths without percent-encoding.
        self.exact = frozenset(unquote(urlsplit(page).path) for page in app_settings.CACHING_PUBLIC)
        self.below = tuple(f"{path.rstrip('/')}/" for path in self.exact if path != "/")
        self.harmless = harmless_names()
        middleware = list(settings.MIDDLEWARE)
        inside = middleware[middleware.index(OUTER) :] if OUTER in middleware else middleware
        # The reads of harmless middleware are not counted.
        paused = harmless_middleware()
        self.of_django = reads_of_django([name for name in inside if name not in paused])
        self.counts_locale = LOCALE not in paused

    def __call__(self, request: HttpRequest) -> HttpResponse:
        shown = self._may_show(request)
        reads = request.cache_watch = Reads(self.of_django, ABSENT)
        request.not_public = bool(self.exact) and not self._is_public(request.path)
        watch = Watch(request, reads)
        if hasattr(request, "cache_language") and self.counts_locale:
            # LocaleMiddleware will read the same once more.
            language_of(request)
            reads.allow_so_far()
        try:
            response = self.get_response(request)
        finally:
            watch.end()
            del request.cache_watch
        request.cache_reads = reads.names - shown
        if request.not_public or read_cookie(request) or read_header(request, response):
            patch_cache_control(response, private=True)
        return response

    def _is_public(self, path: str) -> bool:
        return path in self.exact or path.startswith(self.below)

    def _may_show(self, request: HttpRequest) -> frozenset[str]:
        """The names that every page of this request may depend on."""
        shown = set(self.harmless)
        if is_own_host(request):
            shown.add("host")
        if is_own_scheme(request):
            shown.add("scheme")
        return frozenset(shown)


def watch_view(request: HttpRequest, get_response: GetResponse) -> HttpResponse:
    """The response of the view.

    Middleware on the way out may add to `request.view_varies_by`, the names in the view's own Vary.
    """
    reads = getattr(request, "cache_watch", None)
    if reads is None:
        return get_response(request)
    reads.is_paused = True
    is_as_named = not hasattr(request, "cache_language") or has_named_language(request)
    reads.is_paused = False
    if not is_as_named:
        reads.note("language")
    reads.has_reached_view = True
    response = get_response(request)
    request.view_varies_by = varies_by(response)
    # A response of harmless middleware leaves it paused.
    reads.is_paused = False
    return response


def read_cookie(request: HttpRequest) -> str:
    """A cookie that may have changed the page; empty if no cookie was read."""
    cookies = [name for name in getattr(request, "cache_reads", ()) if name.startswith(COOKIE)]
    return min(cookies, default="").removeprefix(COOKIE)


def read_header(request: HttpRequest, response: HttpResponse) -> str:
    """Another value that may have changed the page and is missing from Vary; else empty."""
    declared = varies_by(response) - {"cookie"}
    if hasattr(request, "cache_language"):
        # A layer may store what varies by it: the language is named, the rest of the header is not.
        declared -= {"accept-language"}
    read = getattr(request, "cache_reads", frozenset()) - declared
    return min((name for name in read if not name.startswith(COOKIE)), default="")


def varies_by(response: HttpResponse) -> frozenset[str]:
    """The names in Vary, lower case; a project's response class can send several lines."""
    return names_of(",".join(value for name, value in response.items() if name.lower() == "vary"))


def names_of(vary: str) -> frozenset[str]:
    """The names in a value of Vary, lower case."""
    return frozenset(name.strip().lower() for name in vary.split(",") if name.strip())

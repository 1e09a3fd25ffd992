"""Responses that Django's security advisories on caching are about: faulty caches stored them.

The headers are written by hand, because Django's helpers would tidy them. A response names its visitor where the
advisory is about visitors, so that a visitor recognises a response meant for another.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods

from bench.inside.rendered import probe_page
from benchapp.caching.django_cache import cache_public_page
from benchapp.caching.rendering import with_render_id

COOKIE = "probe"


@require_http_methods(["GET", "HEAD", "POST"])
@cache_public_page
@with_render_id
def advisory(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """The response of a kind; the page of a new `name` is not cached yet."""
    try:
        return KINDS[kind](request)
    except KeyError:
        raise Http404(f"no such kind: {kind}") from None


def _form(request: HttpRequest) -> HttpResponse:
    """A public page with a form, which holds the visitor's own CSRF token."""
    page = probe_page([("method", request.method)])
    form = '<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="{}"></form>'
    page.write(format_html(form, get_token(request)))
    return page


def _session(request: HttpRequest) -> HttpResponse:
    """A private page for the visitor with this session cookie, as a download."""
    page = probe_page([("session", request.COOKIES.get(settings.SESSION_COOKIE_NAME, "nobody"))])
    page.headers["Vary"] = "Cookie"
    page.headers["Cache-Control"] = "private"
    page.headers["Content-Disposition"] = 'attachment; filename="probe.html"'
    return page


def _echo_query(request: HttpRequest) -> HttpResponse:
    return probe_page([("query", request.META.get("QUERY_STRING", ""))])


def _saves_session(request: HttpRequest) -> HttpResponse:
    """A public page that sets a session cookie without `Vary: Cookie`."""
    page = probe_page([])
    page.headers["Set-Cookie"] = f"sessionid={secrets.token_hex(16)}; Path=/__probe__/; HttpOnly"
    return page


def _sets_cookie(request: HttpRequest) -> HttpResponse:
    """A page that varies with the cookie and sets one, whatever cookies the visitor has."""
    page = probe_page([])
    page.headers["Vary"] = "Cookie"
    page.set_cookie(COOKIE, secrets.token_hex(16), path="/__probe__/")
    return page


def _sets_cookie_spaced(request: HttpRequest) -> HttpResponse:
    page = _sets_cookie(request)
    # No space at either end: some servers refuse such a header, others strip it.
    page.headers["Vary"] = "Accept-Encoding ,  Cookie"
    return page


def _with(header: str, value: str) -> Callable[[HttpRequest], HttpResponse]:
    def answer(request: HttpRequest) -> HttpResponse:
        page = probe_page([])
        page.headers[header] = value
        return page

    return answer


def _authorized(request: HttpRequest) -> HttpResponse:
    """A page for the authorized visitor, without a header that says so."""
    return probe_page([("authorization", request.headers.get("Authorization", "nobody"))])


def _varies(request: HttpRequest) -> HttpResponse:
    """A page that varies with a header, and differs between an absent and an empty one."""
    value = request.META.get("HTTP_X_PROBE")
    page = probe_page([("x-probe", "absent" if value is None else f"[{value}]")])
    page.headers["Vary"] = "X-Probe"
    return page


KINDS: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    "form": _form,
    "session": _session,
    "query": _echo_query,
    "saves-session": _saves_session,
    "sets-cookie": _sets_cookie,
    "sets-cookie-spaced": _sets_cookie_spaced,
    "authorized": _authorized,
    "varies": _varies,
    "vary-any": _with("Vary", "*"),
    "vary-any-spaced": _with("Vary", "Accept-Encoding ,  *"),
    "private-upper": _with("Cache-Control", "PRIVATE"),
    "private-mixed": _with("Cache-Control", "max-age=60, Private"),
    "no-store-upper": _with("Cache-Control", "NO-STORE"),
    "no-cache-mixed": _with("Cache-Control", "No-Cache"),
}

"""Public pages. Each shows its request and the id of its rendering."""

from __future__ import annotations

import contextlib
import gzip
import uuid
from collections.abc import Callable, Iterable
from functools import wraps

from django.conf import settings
from django.core.cache import caches
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, UnreadablePostError
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import mark_safe
from django.views.decorators.cache import cache_page
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_cookie

View = Callable[..., HttpResponse]

# Above the default item limit of memcached, 1 MB.
LARGE_BYTES = 1_200_000
# Makes the page as long as a small page of the site.
FILLING = "These words make the page as long as a page is. " * 40
# The alias that Django's {% cache %} tag looks for by itself.
FRAGMENTS = "template_fragments"
# The account of who is not signed in.
NOBODY = "nobody"
# Whatever charset the project has for its own pages: names of pages have any letters.
HTML = "text/html; charset=utf-8"
# What an ordinary page shows of its request.
USUAL = ("user", "Authorization")

COMPRESS = {"gzip": gzip.compress}
with contextlib.suppress(ImportError):
    import brotli

    COMPRESS = {"br": brotli.compress} | COMPRESS


def view_cached(view: View) -> View:
    """The view in Django's `cache_page` under the layer view-cache, as in a project whose code has `cache_page`."""
    if not getattr(settings, "CACHING_VIEW_CACHE", False):
        return view
    return cache_page(settings.CACHE_MIDDLEWARE_SECONDS)(view)


def page(view: View) -> View:
    """A public page of a careful project: varies with the cookie, and is private for signed-in visitors."""

    @require_safe
    @view_cached
    @vary_on_cookie
    @wraps(view)
    def public(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if account_name(request) != NOBODY:
            patch_cache_control(response, private=True)
        return response

    return public


def cached_part(name: str, compute: Callable[[], str]) -> str:
    """A part of a page, cached as by Django's {% cache %} tag; computed each time if nothing caches fragments."""
    if FRAGMENTS not in caches.settings:
        return compute()
    key = f"probe.{name}"
    value = caches[FRAGMENTS].get(key)
    if value is None:
        value = compute()
        caches[FRAGMENTS].set(key, value)
    return value


def probe_page(lines: Iterable[tuple[str, object]]) -> HttpResponse:
    """A small and complete page of paragraphs, each an id with its text; the first is the id of the rendering, as in
    X-Render-Id.

    A cache may store only the body, so the body itself must prove a cache hit, and by its end that it is complete.
    """
    render_id = uuid.uuid4().hex
    body = format_html_join("\n", '<p id="{}">{}</p>', [("render-id", render_id), *lines, ("whole", render_id)])
    text = format_html('<!doctype html>\n<html lang="en">\n<title>Probe</title>\n{}\n</html>\n', body)
    return HttpResponse(text, HTML, headers={"X-Render-Id": render_id})


def account_name(request: HttpRequest) -> str:
    """The name of the logged-in account; NOBODY without one, and in a project without accounts."""
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return user.get_username()
    return NOBODY


def rendered(request: HttpRequest, body: str = FILLING, shows: Iterable[str] = USUAL) -> HttpResponse:
    """A page that shows its request: the method, path and query, and the chosen ones of `user`, `session`, `body`,
    `absolute`, `peer` (of ASGI), `cookie NAME`, `meta NAME`, `parameter NAME` and names of headers.
    """
    # The coding that the client accepts.
    path = request.path.removeprefix((settings.FORCE_SCRIPT_NAME or "").rstrip("/"))
    lines = [("method", request.method), ("path", path), ("query", request.META.get("QUERY_STRING", ""))]
    for name in shows:
        if name == "user":
            value = account_name(request)
        elif name == "session":
            value = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "nobody")
        elif name == "body":
            value = request.body.decode("utf-8", "replace")
        elif name == "absolute":
            value = request.build_absolute_uri("/")
        elif name == "peer":
            value = (getattr(request, "scope", {}).get("client") or ["none"])[0]
        elif name.startswith("cookie "):
            value = request.COOKIES.get(name.removeprefix("cookie "), "none")
        elif name.startswith("meta "):
            value = request.META.get(name.removeprefix("meta "), "none")
        elif name.startswith("parameter "):
            value = request.GET.get(name.removeprefix("parameter "), "none")
        else:
            # An empty header is not an absent one.
            value = "absent"
            if name in request.headers:
                value = f"[{request.headers[name]}]"
        lines.append((name, value))
    return probe_page([*lines, ("filling", mark_safe(body))])


@csrf_exempt
@page
def plain(request: HttpRequest, name: str) -> HttpResponse:
    """A page of any name: shows which URLs a cache can store. A form is refused unread, with any token or without."""
    return rendered(request)


@page
def large(request: HttpRequest, name: str) -> HttpResponse:
    """A page above 1 MB."""
    line = "0123456789 abcdefghij ABCDEFGHIJ and some words more\n"
    return rendered(request, line * (LARGE_BYTES // len(line) + 1))


@page
def coded(request: HttpRequest, name: str) -> HttpResponse:
    """A page that the application itself compresses with br or gzip, as the client accepts."""
    response = rendered(request)
    patch_vary_headers(response, ["Accept-Encoding"])
    accepted = {part.partition(";")[0].strip() for part in request.META.get("HTTP_ACCEPT_ENCODING", "").split(",")}
    for coding, compress in COMPRESS.items():
        if coding in accepted:
            response.content = compress(response.content)
            response.headers["Content-Encoding"] = coding
            break
    return response


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST", "PUT", "DELETE"])
def form(request: HttpRequest, name: str) -> HttpResponse:
    """A page that returns 200 to every method, and shows the method and the user name of a form."""
    if request.method in ("GET", "HEAD"):
        return page(rendered)(request)
    try:
        return rendered(request, FILLING + escape(request.POST.get("username", "")))
    except UnreadablePostError:
        return HttpResponseBadRequest("a body that cannot be read")

"""Public pages. Each shows the request it was rendered for and the id of its rendering."""

from __future__ import annotations

import contextlib
import gzip

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, UnreadablePostError
from django.utils.cache import patch_vary_headers
from django.utils.html import escape
from django.utils.safestring import mark_safe
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from bench.inside.rendered import account_name, probe_page
from benchapp.caching.rendering import public_page as page

# Above the default item limit of memcached, 1 MB.
LARGE_BYTES = 1_200_000
# Makes the page as long as a small page of the site.
FILLING = "These words make the page as long as a page is. " * 40

COMPRESS = {"gzip": gzip.compress}
with contextlib.suppress(ImportError):
    import brotli

    COMPRESS = {"br": brotli.compress} | COMPRESS


def rendered(request: HttpRequest, body: str = FILLING) -> HttpResponse:
    """A page that shows the request it was rendered for."""
    shown = {
        "method": request.method,
        "path": request.path,
        "query": request.META.get("QUERY_STRING", ""),
        "user": account_name(request),
        "authorization": request.META.get("HTTP_AUTHORIZATION", ""),
    }
    return probe_page([*shown.items(), ("filling", mark_safe(body))])


@page
def plain(request: HttpRequest, name: str) -> HttpResponse:
    """A page of any name: shows which URLs a cache can store."""
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
    """A page that answers every method with 200, and shows which one it was and the user name in a form."""
    if request.method in ("GET", "HEAD"):
        return page(rendered)(request)
    try:
        return rendered(request, FILLING + escape(request.POST.get("username", "")))
    except UnreadablePostError:
        return HttpResponseBadRequest("a body that cannot be read")

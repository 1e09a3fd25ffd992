"""Pages that a shared cache must not store, each for one reason, or may store only with all their headers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.middleware.csrf import get_token

from bench.inside.pages import rendered
from benchapp.caching.rendering import public_page as page

Change = Callable[[HttpRequest, HttpResponse], HttpResponse]


def with_status(status: int, headers: Mapping[str, str] | None = None) -> Change:
    """The page with another status."""

    def change(request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response.status_code = status
        return with_headers(headers or {})(request, response)

    return change


def with_headers(headers: Mapping[str, str]) -> Change:
    """The page with these headers."""

    def change(request: HttpRequest, response: HttpResponse) -> HttpResponse:
        for name, value in headers.items():
            response.headers[name] = value
        return response

    return change


def streaming(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The page as a stream."""
    text = response.content
    pieces = [text[start : start + 500] for start in range(0, len(text), 500)]
    return StreamingHttpResponse(pieces, headers=_id(response))


def breaking(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The page as a stream that breaks off: the rendering fails half way."""

    def pieces() -> Iterator[bytes]:
        yield response.content[: len(response.content) // 2]
        raise ConnectionAbortedError("a probe that breaks off on request")

    return StreamingHttpResponse(pieces(), headers=_id(response))


def set_cookie(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The page with a cookie for the visitor."""
    response.set_cookie("visitor", response.headers["X-Render-Id"])
    return response


def session(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The page of a view that begins a session."""
    request.session["seen"] = response.headers["X-Render-Id"]
    return response


def token(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The page with a CSRF token in its form."""
    field = f'<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="{get_token(request)}"></form>'
    response.content = response.content.replace(b"</html>", field.encode() + b"</html>")
    return response


def latin(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The page in another charset."""
    text = response.content.decode().replace("These words", "Ces mots d\u00e9j\u00e0 vus", 1)
    return HttpResponse(text.encode("latin-1"), "text/html; charset=iso-8859-1", headers=_id(response))


class TwoVaryLines(HttpResponse):
    """A response with a second Vary line, which no header of Django's can have."""

    def items(self) -> list[tuple[str, str]]:
        return [*super().items(), ("Vary", "*")]


def two_vary_lines(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The page with `Vary: Cookie` and a second line `Vary: *`, and a long lifetime of its own."""
    return TwoVaryLines(response.content, headers=_id(response) | {"Cache-Control": "public, max-age=600"})


def plain_text(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The page as plain text."""
    return HttpResponse(response.content, "text/plain; charset=utf-8", headers=_id(response))


def _id(response: HttpResponse) -> dict[str, str]:
    return {"X-Render-Id": response.headers["X-Render-Id"]}


CONTROLS = {
    "private": "private",
    "private-upper": "PRIVATE",
    "private-mixed": "max-age=600,Private",
    "private-spaced": "max-age=600 ,  private",
    "private-tabbed": "max-age=600,\tprivate",
    "private-fields": 'private="Set-Cookie"',
    "no-store": "no-store",
    "no-store-mixed": "No-Store",
    "no-store-last": "public, max-age=600, NO-STORE",
    "no-cache": "no-cache",
    "no-cache-mixed": "public,No-Cache",
    "max-age-0": "max-age=0",
    "max-age-0-upper": "MAX-AGE=0",
    "s-maxage-0": "public, max-age=600, s-maxage=0",
}
VARIES = {
    "vary-star": "*",
    "vary-star-last": "Cookie, *",
    "vary-star-spaced": "Accept-Encoding ,\t* ",
    "vary-language": "Cookie, Accept-Language",
    "vary-user-agent": "User-Agent",
}
STATUSES = {
    "status-201": with_status(201),
    "status-203": with_status(203),
    "status-301": with_status(301, {"Location": "/"}),
    "status-302": with_status(302, {"Location": "/"}),
    "status-307": with_status(307, {"Location": "/"}),
    "status-403": with_status(403),
    "status-404": with_status(404),
    "status-410": with_status(410),
    "status-500": with_status(500),
    "status-503": with_status(503),
}
# What pages say of their own lifetime: each is stale before a cached copy would be.
LIFETIMES = {
    "expires-past": {"Expires": "Sat, 01 Nov 2025 10:00:00 GMT"},
    "expires-zero": {"Expires": "0"},
    "aged": {"Age": "3000", "Cache-Control": "max-age=3005"},
    "max-age-5": {"Cache-Control": "max-age=5"},
    "max-age-negative": {"Cache-Control": "max-age=-5"},
    "must-revalidate": {"Cache-Control": "must-revalidate"},
    "must-revalidate-later": {"Cache-Control": "max-age=600, Must-Revalidate"},
}
# Headers that other pages of the site do not have: a cached copy has them too, or is not stored.
OWN_HEADERS = {
    "own-policy": with_headers({"Content-Security-Policy": "default-src 'none'"}),
    "own-headers": with_headers({"Content-Language": "fr", "X-Robots-Tag": "noindex", "Link": "</>; rel=canonical"}),
    "etag": with_headers({"ETag": '"an-etag"', "Last-Modified": "Sat, 01 Nov 2025 10:00:00 GMT"}),
    "lasting": with_headers({"Cache-Control": "public, max-age=600"}),
    "latin": latin,
    "plain-text": plain_text,
}
KINDS: dict[str, Change] = {
    **{name: with_headers({"Cache-Control": value}) for name, value in CONTROLS.items()},
    **{name: with_headers({"Vary": value}) for name, value in VARIES.items()},
    **{name: with_headers(headers) for name, headers in LIFETIMES.items()},
    **STATUSES,
    **OWN_HEADERS,
    "vary-two-lines": two_vary_lines,
    "streaming": streaming,
    "breaking": breaking,
    "set-cookie": set_cookie,
    "session": session,
    "token": token,
}


@page
def variant(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """A page with one property that no other page of the site has."""
    if kind not in KINDS:
        raise Http404("no such kind")
    return KINDS[kind](request, rendered(request))

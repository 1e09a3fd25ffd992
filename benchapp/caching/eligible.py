"""Which responses a shared cache may keep: one answer for every layer of this project that stores pages."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse

FORBIDDEN_DIRECTIVES = frozenset({"private", "no-store", "no-cache", "max-age=0", "s-maxage=0"})
VARY_ALLOWED = frozenset({"cookie", "accept-encoding"})


def request_may_be_stored(request: HttpRequest) -> bool:
    """Whether an answer to this request could be everybody's: a plain GET by nobody in particular.

    Whoever has a CSRF cookie is nobody in particular too: a page that holds their token sets the cookie anew, for
    which it is not stored (`response_may_be_stored`). Other cookies, of analytics and the like, the site never reads.
    """
    return request.method == "GET" and request_may_be_answered(request)


def request_may_be_answered(request: HttpRequest) -> bool:
    """Whether a stored page may answer this request: it may also be a HEAD.

    Dot segments are names of their own to this site, but Django and browsers take them out of an address: such a path
    would share the entry of another.
    """
    return (
        request.method in ("GET", "HEAD")
        and not request.META.get("QUERY_STRING")
        and "/." not in request.path
        and "HTTP_AUTHORIZATION" not in request.META
        and settings.SESSION_COOKIE_NAME not in request.COOKIES
    )


def response_may_be_stored(response: HttpResponse) -> bool:
    """Whether this response is a finished HTML page that says nothing against being shared."""
    return (
        response.status_code == 200
        and not response.streaming
        and response.get("Content-Type", "").lower().replace(" ", "") == "text/html;charset=utf-8"
        and not response.cookies
        and not any(response.has_header(name) for name in ("Set-Cookie", "Content-Encoding", "Content-Range"))
        and _directives(response).isdisjoint(FORBIDDEN_DIRECTIVES)
        and _varies_by(response) <= VARY_ALLOWED
    )


def says_only_what_all_say(response: HttpResponse) -> bool:
    """Whether a server that keeps the bytes of this page alone can say of it what the application says.

    It says what all pages of the site say, from its own file. A page that says more of itself, or something else, is
    not for such a server. (The other headers come from middleware further out, where no view has set its own.)
    """
    own = {name.lower() for name, _ in response.items()}
    return (
        own <= {"content-type", "content-length", "x-render-id", "vary", "x-frame-options"}
        and _varies_by(response) <= {"cookie"}
        and response.get("X-Frame-Options", settings.X_FRAME_OPTIONS) == settings.X_FRAME_OPTIONS
    )


def _directives(response: HttpResponse) -> frozenset[str]:
    """The directives of Cache-Control, lower case; one with a field list (`private="Set-Cookie"`) by its name."""
    found = set()
    for part in response.get("Cache-Control", "").lower().split(","):
        directive = part.strip().replace(" ", "")
        name, _, value = directive.partition("=")
        found.add(f"{name}={value.strip(chr(34))}" if name in ("max-age", "s-maxage") else name)
    return frozenset(found)


def _varies_by(response: HttpResponse) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in response.get("Vary", "").split(",") if name.strip())

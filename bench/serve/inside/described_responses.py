"""A page with a response that the client describes: one that a shared cache must not store, or only with all headers.

The address has the description, JSON in base64 (RFC 4648, section 5), and a name, so that no earlier request had it:

    status   of the response
    headers  [name, value] pairs, written unchanged: Django's helpers would tidy them
    lines    [name, value] pairs written past Django, which refuses some: a second one of a name, a line break
    does     names of ACTS
    shows    parts of its request that the page shows (bench.serve.inside.pages.rendered)
    bare     true leaves out `Vary: Cookie`, which other pages have
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, StreamingHttpResponse
from django.middleware.csrf import get_token
from django.utils.cache import patch_vary_headers
from django.utils.html import format_html
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_http_methods

from bench.serve.inside.pages import HTML, rendered, view_cached

Act = Callable[[HttpRequest, HttpResponse], HttpResponse]
COOKIE = "probe"


@require_http_methods(["GET", "HEAD", "POST"])
@view_cached
def described(request: HttpRequest, spelt: str, name: str) -> HttpResponse:
    """The response that the address describes."""
    try:
        description = json.loads(base64.urlsafe_b64decode(spelt + "=" * (-len(spelt) % 4)))
        # It reads the visitor's token, which makes a page private by itself.
        view = _described
        if "token" in description.get("does", []):
            view = csrf_protect(_described)
        return view(request, description)
    except (ValueError, KeyError, AttributeError):
        return HttpResponseBadRequest("the address describes no response")


def _described(request: HttpRequest, description: dict[str, Any]) -> HttpResponse:
    response = rendered(request, shows=description.get("shows", []))
    for act in description.get("does", []):
        response = ACTS[act](request, response)
    response.status_code = description.get("status", response.status_code)
    for header, value in description.get("headers", []):
        response.headers[header] = value
    if not description.get("bare"):
        patch_vary_headers(response, ["Cookie"])
    if "lines" in description:
        return WithLines(response, description["lines"])
    return response


def _streaming(request: HttpRequest, response: HttpResponse) -> StreamingHttpResponse:
    text = response.content
    pieces = (text[start : start + 500] for start in range(0, len(text), 500))
    return StreamingHttpResponse(pieces, content_type=HTML, headers=_id(response))


def _breaking(request: HttpRequest, response: HttpResponse) -> StreamingHttpResponse:
    """A stream with a rendering that fails half way."""

    def pieces() -> Iterator[bytes]:
        yield response.content[: len(response.content) // 2]
        raise ConnectionAbortedError("a probe that breaks off on request")

    return StreamingHttpResponse(pieces(), content_type=HTML, headers=_id(response))


def _cookie(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    response.set_cookie(COOKIE, secrets.token_hex(16), path="/__probe__/")
    return response


def _set_session(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """A session cookie without `Vary: Cookie`."""
    response.headers["Set-Cookie"] = f"sessionid={secrets.token_hex(16)}; Path=/__probe__/; HttpOnly"
    return response


def _session(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """A view that begins a session."""
    request.session["seen"] = response.headers["X-Render-Id"]
    return response


def _token(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """A form with the visitor's own CSRF token."""
    form = '<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="{}"></form>'
    field = format_html(form, get_token(request)).encode()
    response.content = response.content.replace(b"</html>", field + b"</html>")
    return response


def _nonce(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """A page with its policy in a tag only."""
    policy = b'<meta http-equiv="Content-Security-Policy" content="script-src \'nonce-c2VjcmV0\'">'
    response.content = response.content.replace(b"</title>", b"</title>" + policy)
    return response


def _latin(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Another charset."""
    text = response.content.decode().replace("These words", "Ces mots d\u00e9j\u00e0 vus", 1)
    return HttpResponse(text.encode("latin-1"), "text/html; charset=iso-8859-1", headers=_id(response))


def _plain(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return HttpResponse(response.content, "text/plain; charset=utf-8", headers=_id(response))


class WithLines(HttpResponse):
    """A response with further header lines, exactly as given, past Django's headers."""

    def __init__(self, response: HttpResponse, lines: Iterable[tuple[str, str]]):
        super().__init__(response.content, status=response.status_code, headers=response.headers)
        self._lines = [(name, value) for name, value in lines]

    def items(self) -> list[tuple[str, str]]:
        return [*super().items(), *self._lines]


def _two_vary_lines(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    bare = HttpResponse(response.content, HTML, headers=_id(response))
    return WithLines(bare, [("Vary", "*")])


def _id(response: HttpResponse) -> dict[str, str]:
    return {"X-Render-Id": response.headers["X-Render-Id"]}


ACTS: dict[str, Act] = {
    "stream": _streaming,
    "break": _breaking,
    "cookie": _cookie,
    "session": _session,
    "set-session": _set_session,
    "token": _token,
    "nonce": _nonce,
    "latin": _latin,
    "plain": _plain,
    "two-vary": _two_vary_lines,
}

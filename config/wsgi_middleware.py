"""WSGI middleware that makes the site answer alike behind every application server.

PEP 3333 says little about broken requests, and servers differ: some pass on a path that cannot be decoded, some lose a
chunked body, some send the body of a response to HEAD, some trust a client's claim of HTTPS. Some caches read only the
first of several Vary lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Environ = dict[str, Any]
Headers = list[tuple[str, str]]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
# A response sent while the client still writes may be lost with the connection: the rest of the body is read first.
MAX_DRAINED_BYTES = 8 * 1024 * 1024
CHUNK_BYTES = 64 * 1024


class NormalizeRequests:
    """A WSGI application that wraps another one.

    trusts_proxy  whether a reverse proxy overwrites the X-Forwarded-* headers; without one they are removed
    """

    def __init__(self, application: Application, trusts_proxy: bool):
        self.application = application
        self.trusts_proxy = trusts_proxy

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if problem := refusal(environ):
            drain(environ)
            return _refuse(problem, start_response)
        if not self.trusts_proxy:
            remove_forwarded_headers(environ)

        def start_joined(status: str, headers: Headers, *exc_info: Any) -> Any:
            return start_response(status, join_vary(headers), *exc_info)

        response = self.application(environ, start_joined)
        drain(environ)
        return _EmptyBody(response) if environ["REQUEST_METHOD"] == "HEAD" else response


def refusal(environ: Environ) -> tuple[str, str] | None:
    """The status and the reason to refuse a request with, or None for a good one.

    A chunked body has no length. Django reads exactly CONTENT_LENGTH bytes under WSGI, so a view would see an empty
    form and answer as if nothing had been sent (411). A length beside the chunks is how requests are smuggled past one
    server to another (400, RFC 9112 section 6.1).
    """
    if "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower():
        if environ.get("CONTENT_LENGTH"):
            return "400 Bad Request", "a request has either Content-Length or Transfer-Encoding, not both"
        return "411 Length Required", "send the body with Content-Length, not chunked"
    if BROKEN_ESCAPE.search(environ.get("REQUEST_URI", "").partition("?")[0]):
        return "400 Bad Request", "a % in the path begins an escape of two hexadecimal digits"
    if "HTTP_HOST" not in environ and environ.get("SERVER_PROTOCOL") == "HTTP/1.1":
        return "400 Bad Request", "a request of HTTP/1.1 needs a Host header"
    return None


def remove_forwarded_headers(environ: Environ) -> None:
    """Remove a client's X-Forwarded-* headers, and restore the scheme, which uWSGI takes from them anyway."""
    forwarded = [name for name in environ if name.startswith("HTTP_X_FORWARDED_")]
    for name in forwarded:
        del environ[name]
    if forwarded and "uwsgi.version" in environ:
        environ["wsgi.url_scheme"] = "https" if environ.get("HTTPS", "").lower() in ("on", "1") else "http"


def join_vary(headers: Headers) -> Headers:
    """The headers with one Vary in place of several: Nginx before 1.23 reads the first line alone."""
    values = [value for name, value in headers if name.lower() == "vary"]
    if len(values) < 2:
        return headers
    return [*(item for item in headers if item[0].lower() != "vary"), ("Vary", ", ".join(values))]


def drain(environ: Environ) -> None:
    """Read the unread rest of a body with a length, up to a limit."""
    length = environ.get("CONTENT_LENGTH", "")
    if not length.isdecimal() or not 0 < int(length) <= MAX_DRAINED_BYTES:
        return
    body = environ["wsgi.input"]
    try:
        while body.read(CHUNK_BYTES):
            pass
    except (OSError, ValueError):
        # The client has gone; the server notices by itself.
        return


def _refuse(problem: tuple[str, str], start_response: StartResponse) -> list[bytes]:
    status, reason = problem
    body = f"{status.partition(' ')[2]}: {reason}.\n".encode()
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
    return [body]


class _EmptyBody:
    """The response to HEAD: no body; the application's own body is closed in the end."""

    def __init__(self, response: Iterable[bytes]):
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return iter(())

    def close(self) -> None:
        close = getattr(self._response, "close", None)
        if close is not None:
            close()

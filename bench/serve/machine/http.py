"""The HTTP client of the instrument, which no timed measurement uses."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Mapping
from contextlib import closing
from urllib.parse import urlsplit

from bench.errors import BenchError

TIMEOUT_S = 10
CLOSE = {"Connection": "close"}


class VisitError(BenchError):
    """A request without status 200; one line names the request and its response."""


def get(base_url: str, path: str) -> bytes:
    """The body at `path`. Raises VisitError unless the status is 200."""
    return _get(base_url, path)[0]


def headers(base_url: str, path: str) -> http.client.HTTPMessage:
    """The headers of the response at `path`. Raises VisitError like `get`."""
    return _get(base_url, path)[1].headers


# By these statuses of its health check a site serves: there may be no page, and 204.
HEALTHY = range(200, 300)


def status(base_url: str, path: str, timeout_s: float = TIMEOUT_S) -> int | None:
    """The status of GET `path`, or None without a response."""
    try:
        return fetch(lambda: _connection(base_url, timeout_s), path, CLOSE)[1].status
    except VisitError:
        return None


def fetch(
    connect: Callable[[], http.client.HTTPConnection], path: str, headers: Mapping[str, str]
) -> tuple[bytes, http.client.HTTPResponse]:
    """The body at `path` and its response, over a new connection. Raises VisitError without a response."""
    try:
        with closing(connect()) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.read(), answer
    except TimeoutError:
        raise VisitError(f"GET {path}: no response in {TIMEOUT_S} s") from None
    except (OSError, http.client.HTTPException) as error:
        raise VisitError(f"GET {path}: {error or type(error).__name__}") from None


def _get(base_url: str, path: str) -> tuple[bytes, http.client.HTTPResponse]:
    body, answer = fetch(lambda: _connection(base_url, TIMEOUT_S), path, CLOSE)
    if answer.status != 200:
        raise VisitError(f"GET {path}: status {answer.status}, not 200")
    return body, answer


def _connection(base_url: str, timeout_s: float) -> http.client.HTTPConnection:
    parts = urlsplit(base_url)
    if parts.scheme == "https":
        # The certificate is the deployment's own, signed by nobody.
        context = ssl._create_unverified_context()
        return http.client.HTTPSConnection(parts.netloc, timeout=timeout_s, context=context)
    return http.client.HTTPConnection(parts.netloc, timeout=timeout_s)

"""Single unmeasured requests: the primer before a trial and the look after it."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterable
from urllib.parse import urlsplit

from bench.errors import BenchError

TIMEOUT_S = 10


class VisitError(BenchError):
    """A request that was not answered with status 200; one line that says which and how it was answered."""


def get(base_url: str, path: str) -> bytes:
    """The body at `path`, asked for on a connection of its own. Raises VisitError unless the status is 200."""
    return _get(base_url, path, {"Connection": "close"})[0]


def headers(base_url: str, path: str) -> http.client.HTTPMessage:
    """The headers of the answer at `path`. Raises VisitError like `get`."""
    return _get(base_url, path, {"Connection": "close"})[1].headers


def stays_open(base_url: str, path: str) -> bool:
    """Whether the server keeps a connection open after its answer when it may. Raises VisitError like `get`."""
    return not _get(base_url, path, {})[1].will_close


def _get(base_url: str, path: str, headers: dict[str, str]) -> tuple[bytes, http.client.HTTPResponse]:
    parts = urlsplit(base_url)
    if parts.scheme == "https":
        # The certificate is the deployment's own, signed by nobody.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(parts.netloc, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    except TimeoutError:
        raise VisitError(f"GET {path}: no answer in {TIMEOUT_S} s") from None
    except (OSError, http.client.HTTPException) as error:
        raise VisitError(f"GET {path}: {error or type(error).__name__}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise VisitError(f"GET {path}: status {answer.status}, not 200")
    return body, answer


def all_of(base_url: str, paths: Iterable[str]) -> dict[str, bytes]:
    """The body of every different path, requested once. Raises VisitError at the first not answered with 200."""
    return {path: get(base_url, path) for path in dict.fromkeys(paths)}

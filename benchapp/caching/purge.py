"""Telling a cache in front which pages are stale: one request each, PURGE for a path and BAN for all below a prefix.

**A slow rendering cannot bring old data back**: each purge gives a file a new generation, a random word. A rendering
notes it before it reads anything from the database, and is marked `X-Outdated`, which the cache does not keep, when
the word has changed meanwhile. What had left the site before, and had not arrived in the cache yet, is told of once
more a moment later; so is what the cache was given meanwhile by a web server that keeps a file open for a second.
"""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

from benchapp.caching.later import later
from benchapp.caching.staleness import Stale, pages_stale

TIMEOUT_S = 2
# Longer than a web server behind the cache looks away from a file (`open_file_cache_valid` of Nginx).
AGAIN_S = 1.2

logger = logging.getLogger(__name__)


class MarkOutdated:
    """Middleware that marks a response rendered across a purge, and one that is sent in pieces.

    A server that gathers the pieces gives them a length: if the rendering fails half way, the half looks whole.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if not settings.BENCHAPP_PURGE_GENERATION:
            raise MiddlewareNotUsed("BENCHAPP_PURGE_GENERATION is empty")
        self.get_response = get_response
        self.file = Path(settings.BENCHAPP_PURGE_GENERATION)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        before = _generation(self.file)
        response = self.get_response(request)
        if response.streaming or _generation(self.file) != before:
            response.headers["X-Outdated"] = "1"
        return response


def connect() -> None:
    """Purge on every write, if there is a cache to tell; called once, when the application is ready."""
    pages_stale.connect(_purge, dispatch_uid="purge")


def _purge(stale: Stale, **kwargs: object) -> None:
    if settings.BENCHAPP_PURGE_GENERATION:
        _renew(Path(settings.BENCHAPP_PURGE_GENERATION))
    if settings.BENCHAPP_PURGE_URL:
        send(settings.BENCHAPP_PURGE_URL, stale)
        later(AGAIN_S, send, settings.BENCHAPP_PURGE_URL, stale)


def send(url: str, stale: Stale) -> None:
    """Tell the cache at `url`; one that cannot be reached is logged, and its pages stay for their time to live."""
    connection = _connection(url)
    try:
        for method, paths in (("PURGE", stale.paths), ("BAN", stale.prefixes)):
            for path in sorted(paths):
                connection.request(method, path)
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    logger.error("%s %s at %s: status %d", method, path, url, answer.status)
    except (OSError, HTTPException) as error:
        logger.error("%s not told of %s: %s", url, stale, error)
    finally:
        connection.close()


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def _connection(url: str) -> HTTPConnection:
    if url.startswith("unix:"):
        return _UnixConnection(url.removeprefix("unix:"))
    address = urlsplit(url)
    return HTTPConnection(address.hostname or "", address.port or 80, timeout=TIMEOUT_S)


def _generation(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _renew(file: Path) -> None:
    """Give the file a new word, whole or not at all."""
    new = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        new.write_bytes(secrets.token_hex(16).encode("ascii"))
        new.replace(file)
    except OSError as error:
        logger.error("%s cannot be written: %s", file, error)

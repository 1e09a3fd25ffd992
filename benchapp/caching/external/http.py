"""Purging a cache in front over HTTP: PURGE for one path, BAN for everything below a prefix.

Each purge is sent twice: a response that had left the site before the write may reach the cache after the first one.
"""

from __future__ import annotations

import logging
import socket
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from benchapp.caching import registry
from benchapp.caching.external.cacheable_header import renew_generation
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import PAGE
from benchapp.caching.resilience import later

TIMEOUT_S = 2
# Longer than a response is on its way between two servers of a busy machine.
SECOND_PURGE_S = 1.2

logger = logging.getLogger(__name__)


def purge(stale: StalePages) -> None:
    """For the layer `varnish`: purge stale pages now and once more a moment later."""
    renew_generation("varnish")
    url = registry.options("varnish")["purge_url"]
    send(url, stale)
    later(SECOND_PURGE_S, send, url, stale)


def send(url: str, stale: StalePages) -> None:
    """Purge the cache at `url`. An unreachable cache is logged; its pages expire after their time to live."""
    connection = _connection(url)
    try:
        for method, names in (("PURGE", stale.paths), ("BAN", stale.prefixes)):
            # It stores no page of another name.
            for path in sorted(name for name in names if PAGE.fullmatch(name)):
                connection.request(method, path)
                response = connection.getresponse()
                response.read()
                if response.status != 200:
                    logger.error("%s %s at %s: status %d", method, path, url, response.status)
    except (OSError, HTTPException) as error:
        logger.error("%s: %s not purged: %s", url, stale, error)
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

"""Requests in another protocol than HTTP/1.1."""

from __future__ import annotations

from collections.abc import Iterator

from bench.verify import wire
from bench.verify.check import check
from bench.verify.context import Context
from bench.verify.finding import Mismatch, NotTried
from bench.verify.wire import Closed, Connection

REFUSED = range(400, 500)
# How an HTTP/2 connection begins, with an empty SETTINGS frame (RFC 9113 section 3.4).
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
# How one is asked for over HTTP/1.1 (RFC 7540 section 3.2).
UPGRADE = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQAAP__"}


@check("protocol-word")
def protocol_word(context: Context) -> Iterator[Mismatch]:
    """A request line with a word after the protocol is refused, or answered with a correct status line."""
    request = wire.build(context.target, "GET", context.site.url("home"), version="1.1 x")
    try:
        with Connection(context.target) as connection:
            connection.send(request)
            status = connection.read().status
    except (Closed, ConnectionResetError):
        return
    if status != 200 and status not in REFUSED:
        yield Mismatch("GET / HTTP/1.1 x: status 400 to 499, or 200", f"status {status}")


@check("plain-http2")
def plain_http2(context: Context) -> Iterator[Mismatch]:
    """A plain listener speaks HTTP/1 alone: it takes neither HTTP/2's preface nor an upgrade to it."""
    if context.target.scheme == "https":
        raise NotTried("with TLS, client and server agree on HTTP/2 before the first request")
    with Connection(context.target) as connection:
        connection.send(PREFACE)
        got = _first_bytes(connection)
    if got and not got.startswith(b"HTTP/1."):
        yield Mismatch("HTTP/2's preface: an answer of HTTP/1, or none", repr(got[:40]))
    with Connection(context.target) as connection:
        connection.send(wire.build(context.target, "GET", context.site.url("home"), UPGRADE))
        if b" 101 " in (got := _first_bytes(connection)[:20]):
            yield Mismatch("Upgrade: h2c: ignored", repr(got))


def _first_bytes(connection: Connection) -> bytes:
    """The first bytes of what comes, empty when the server closes the connection."""
    try:
        return connection.early_bytes()
    except ConnectionResetError:
        return b""

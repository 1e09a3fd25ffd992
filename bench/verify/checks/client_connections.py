"""Connections: keep-alive, pipelined, slow, in another protocol, and many at once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from ssl import SSLContext, SSLError, SSLSession, TLSVersion

from bench.serve.machine import http
from bench.serve.machine.http import BadResponse, ConnectionClosed, Target
from bench.verify import wire
from bench.verify.check import AFTER, check
from bench.verify.checks.bodies import MARK, form
from bench.verify.context import Context
from bench.verify.crowd import CROWD_S, Clients
from bench.verify.expect import REFUSED, Expectation, body, has, no_header, no_server_error, status, status_in
from bench.verify.hits import require_probes
from bench.verify.mismatch import Finding, Mismatch, NotTried
from bench.verify.wire import Connection, PageResponse

MAX_CLIENTS, MIN_CLIENTS = 100, 10
SLOW_PIECES = 6
SLOW_PAUSE_S = 0.05
SLOW_BUFFER = 65536
# A server may close a keep-alive connection at any time.
ENDED = (ConnectionClosed, BrokenPipeError, ConnectionResetError)
# Handshake of a WebSocket (RFC 6455 section 1.3).
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
# Start of an HTTP/2 connection, with an empty SETTINGS frame (RFC 9113 section 3.4).
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
# Upgrade to HTTP/2 over HTTP/1.1 (RFC 7540 section 3.2).
UPGRADE = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQAAP__"}


@check("keep-alive")
def keep_alive(context: Context) -> Iterator[Finding]:
    """Each request on a keep-alive connection gets the right response, until the server closes the connection."""
    with Connection(context.target) as connection:
        paths = [*_paths(context), *context.site.main_paths]
        yield from _in_turn(context, paths, lambda path: connection.exchange("GET", path), "of a connection")


@check("pipelining")
def pipelining(context: Context) -> Iterator[Finding]:
    """Pipelined requests get their responses in order, unless the server closes the connection."""
    paths = [*context.site.small_files, *_paths(context)]
    with Connection(context.target) as connection:
        connection.send(b"".join(http.build(context.target, "GET", path) for path in paths))
        yield from _in_turn(context, paths, lambda path: connection.read(), f"of {len(paths)} sent at once")


def _in_turn(context: Context, paths: list[str], read: Callable[[str], PageResponse], what: str) -> Iterator[Finding]:
    """Expect right responses on a connection until the server closes it, possibly after the first."""
    for number, path in enumerate(paths):
        try:
            response = read(path)
        except ENDED:
            if number == 0:
                raise
            return
        yield from _wrong(context, path, response, f"as request {number + 1} {what}")
        if not response.keeps_open:
            return


@check("http-1.0")
def http_1_0(context: Context) -> Iterator[Finding]:
    """An HTTP/1.0 client gets the whole page without chunks, and then the connection is closed."""
    for path in _paths(context):
        with Connection(context.target) as connection:
            response = connection.exchange("GET", path, version="1.0")
            yield from context.judge(response, no_header("Transfer-Encoding"), when="with HTTP/1.0")
            yield from _wrong(context, path, response, "with HTTP/1.0")
            if extra := connection.rest():
                yield response.wrong("nothing after a response to HTTP/1.0", f"{len(extra)} bytes")


@check("slow-request", require_probes)
def slow_request(context: Context) -> Iterator[Finding]:
    """A request that arrives in small pieces gets the right response."""
    home = context.site.url("home")
    response = _send_slowly(context, http.build(context.target, "GET", home))
    yield from _wrong(context, home, response, "in pieces")
    response = _send_slowly(context, form(context))
    yield from context.judge(response, status(200), has(MARK, what="the form as sent"), when="a form in pieces")


@check("slow-reader")
def slow_reader(context: Context) -> Iterator[Finding]:
    """A client that reads slowly gets the whole of a large file."""
    large = context.site.url("static_large")
    with Connection(context.target, receive_buffer=SLOW_BUFFER) as connection:
        connection.send(http.build(context.target, "GET", large, {"Connection": "close"}))
        # The kernels of both sides buffer the response; the pauses make the reader slow.
        response = connection.read(pause=lambda: time.sleep(SLOW_PAUSE_S))
    yield from context.judge(response, body(context.get(large).body, "the whole file"), when=f"GET {large} read slowly")


def _send_slowly(context: Context, request: bytes) -> PageResponse:
    """Send a request in pieces and return the response; raises BadResponse if one comes before the last piece."""
    size = len(request) // SLOW_PIECES + 1
    with Connection(context.target) as connection:
        for start in range(0, len(request), size):
            connection.send(request[start : start + size])
            if start + size < len(request) and not connection.quiet_for(SLOW_PAUSE_S):
                raise BadResponse(f"a response before the request was complete: {connection.early_bytes()[:60]!r}")
        return connection.read()


def _paths(context: Context) -> list[str]:
    """The main pages and a small static file, if the site has one."""
    return [*context.site.main_paths, *context.site.small_files]


@check("protocol-word")
def protocol_word(context: Context) -> Iterator[Finding]:
    """A request line with a word after the protocol is refused, or gets a correct status line."""
    request = http.Sent(context.target.origin, "GET", context.site.url("home"), version="1.1 x")
    try:
        with Connection(context.target) as connection:
            connection.send(request.encoded(context.target))
            response = connection.read()
    except (ConnectionClosed, ConnectionResetError):
        return
    yield from context.judge(response, status_in((200, *REFUSED), "status 200, or 400 to 499"), when="GET / HTTP/1.1 x")


@check("plain-http2")
def plain_http2(context: Context) -> Iterator[Finding]:
    """A plain listener speaks HTTP/1 only, and accepts neither HTTP/2's preface nor an upgrade."""
    if context.target.scheme == "https":
        raise NotTried("with TLS, client and server agree on HTTP/2 before the first request")
    with Connection(context.target) as connection:
        connection.send(PREFACE)
        if (got := connection.early_bytes()) and not got.startswith(b"HTTP/1."):
            yield Mismatch("HTTP/2's preface: a response of HTTP/1, or none", repr(got[:40]))
    with Connection(context.target) as connection:
        connection.send(http.build(context.target, "GET", context.site.url("home"), UPGRADE))
        if b" 101 " in (got := connection.early_bytes()[:20]):
            yield Mismatch("Upgrade: h2c: ignored", repr(got))


@check("websocket")
def websocket(context: Context) -> Iterator[Finding]:
    """A WebSocket handshake for an ordinary page gets a response at once: no 101, no 5xx, and the site goes on."""
    home = context.site.url("home")
    with Connection(context.target) as connection:
        response = connection.exchange("GET", home, HANDSHAKE)
    yield from context.judge(response, no_server_error)
    yield from context.expect(home, status(200), when="after a WebSocket's handshake")


@check("tls")
def tls(context: Context) -> Iterator[Finding]:
    """TLS 1.3 and 1.2 are spoken, 1.1 is not, and a second connection resumes the session of the first."""
    if not context.target.tls:
        raise NotTried("it speaks no TLS: give --set listener=tls")
    right = {TLSVersion.TLSv1_3: "spoken", TLSVersion.TLSv1_2: "spoken", TLSVersion.TLSv1_1: "refused"}
    for version, expected in right.items():
        got = "spoken"
        if _handshake(context.target, version) is None:
            got = "refused"
        if got != expected:
            yield Mismatch(f"{version.name}: {expected}", got)
    if first := _handshake(context.target, TLSVersion.TLSv1_2):
        ours, session = first
        connected = http.connected(context.target, http.TIMEOUT_S)
        with ours.wrap_socket(connected, server_hostname=context.target.host, session=session) as second:
            if not second.session_reused:
                yield Mismatch("a second connection resumes the first one's session", "a whole handshake")


def _handshake(target: Target, version: TLSVersion) -> tuple[SSLContext, SSLSession | None] | None:
    """A resumable session of a connection in this version of TLS; None if the server refuses the version."""
    with warnings.catch_warnings():
        # Old versions, which are to be refused.
        warnings.simplefilter("ignore", DeprecationWarning)
        ours = http.tls_context()
        ours.minimum_version = ours.maximum_version = version
        ours.set_ciphers("ALL:@SECLEVEL=0")
    try:
        with ours.wrap_socket(http.connected(target, http.TIMEOUT_S), server_hostname=target.host) as opened:
            return ours, opened.session
    except (SSLError, ConnectionError):
        return None


@check("concurrency", stage=AFTER)
def concurrency(context: Context) -> Iterator[Finding]:
    """Up to 100 clients at once, each requesting pages and files in turn, get no error and no wrong response.

    Fewer clients are used if a slow page would make the last of 100 wait beyond the servers' time limits.
    """
    context.site.require_database()
    # Pages without comments still equal their renderings in process.
    unchanged = [path for kind, path in context.site.urls.items() if kind.startswith("uncommented")]
    paths = [*context.site.small_files, *(unchanged or context.site.main_paths)]
    slowest_s = 0.0
    for path in dict.fromkeys(paths):
        begun = time.monotonic()
        wire.fetch(context.target, path)
        slowest_s = max(slowest_s, time.monotonic() - begun)
    number = crowd(slowest_s)
    own = Expectation(
        "its own page", lambda response: _right(context, str(response.sent and response.sent.path)).wrong(response)
    )
    # Each client has a keep-alive connection and gets all its responses in the end.
    with Clients(context, paths, number, status(200), own) as clients:
        time.sleep(context.load_s)
    yield from clients.wrong


def crowd(slowest_s: float) -> int:
    """Number of clients at once for pages of this duration, rendered one after another at worst."""
    return max(MIN_CLIENTS, min(MAX_CLIENTS, int(CROWD_S / 2 / slowest_s)))


def _right(context: Context, path: str) -> Expectation:
    known = path in context.site.pages
    if known:
        return context.as_rendered(path)
    return body(context.first(path).body, "the file")


def _wrong(context: Context, path: str, response: PageResponse, when: str) -> Iterator[Finding]:
    """Compare a response to GET `path`."""
    if not response.sent:
        when = f"GET {path} {when}"
    yield from context.judge(response, status(200), _right(context, path), when=when)

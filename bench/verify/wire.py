"""HTTP/1.x over a socket, with control over every byte of the request; h11 checks every byte of the response.

An ordinary client collapses dot segments, refuses odd bytes, and hides early closes of a connection: exactly the cases
of the checks.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import h11

from bench.errors import BenchError
from bench.serve.project.venv_overlay import servers_module
from bench.verify import page_parser
from bench.verify.finding import Mismatch, Sent

TIMEOUT_S = 10.0
# The longest block of headers of a response.
MAX_HEAD_BYTES = 1 << 20
PIECE_BYTES = 200_000
# Bytes shown of a response that came too early.
EARLY_BYTES = 80
# The paragraphs about the rendering are in the first bytes of a probe page.
PAGE_HEAD_BYTES = 8000
USUAL = (("User-Agent", "verify"), ("Accept", "*/*"), ("Accept-Encoding", "identity"))

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Route:
    """Real destination of connections to a target, such as a tunnel.

    tls      whether the destination speaks TLS
    headers  sent with each request, like the headers of a load balancer
    """

    host: str
    port: int
    tls: bool
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Target:
    """Address of the site: the front port of a deployment, or a site that is already running.

    source  the local address of connections; empty for any
    """

    scheme: str
    host: str
    port: int
    via: Route | None = None
    source: str = ""

    @classmethod
    def parse(cls, url: str) -> Target:
        """Parse `http://host:port/`; raises BenchError for another text."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise BenchError(f"--target {url}: not the address of a site; write it as http://127.0.0.1:8000/")
        return cls(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80))

    @property
    def netloc(self) -> str:
        """Host and port as in a Host header: without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = {"http": 80, "https": 443}[self.scheme]
        return host if self.port == default else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.netloc}"

    @property
    def tls(self) -> bool:
        """True if connections speak TLS."""
        return self.via.tls if self.via else self.scheme == "https"


class BadAnswer(Exception):
    """Bytes that are not one complete HTTP response; the text says why."""


class TooLate(BadAnswer):
    """The connection stayed open, and the rest of the response did not come."""


class ConnectionClosed(BadAnswer):
    """The connection ended before the first byte of a response."""


@dataclass(frozen=True)
class Answer:
    """One complete response. `body` is without its transfer coding and with its content coding.

    delimited  whether the end of the body was marked, other than by the end of the connection
    sent       the request, if built here
    """

    status: int
    version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    delimited: bool = True
    sent: Sent | None = None

    def header(self, name: str) -> str | None:
        """The value of the header, several joined with a comma, or None."""
        values = self.all(name)
        return ", ".join(values) if values else None

    def all(self, name: str) -> list[str]:
        name = name.lower()
        return [value for key, value in self.headers if key.lower() == name]

    def names(self, header: str) -> set[str]:
        """The names in a list header such as Vary or Connection, of all its lines, in lower case."""
        return {name.strip().lower() for name in ",".join(self.all(header)).split(",")} - {""}

    @property
    def content_type(self) -> str:
        """Media type and charset without spaces, in lower case; empty if absent."""
        return "".join((self.header("Content-Type") or "").lower().split())

    @property
    def render_id(self) -> str | None:
        return self.header("X-Render-Id")

    @property
    def coding(self) -> str:
        """The content coding, `identity` without one."""
        return (self.header("Content-Encoding") or "identity").strip().lower()

    @cached_property
    def content(self) -> bytes:
        """The body with its content coding removed; raises BadAnswer if the coding is wrong."""
        try:
            if self.coding == "gzip":
                return gzip.decompress(self.body)
            if self.coding == "br":
                return bytes(servers_module("brotli").decompress(self.body))
        except Exception as error:
            raise BadAnswer(f"a body that is not {self.coding}, unlike its Content-Encoding: {error}") from None
        if self.coding != "identity":
            raise BadAnswer(f"Content-Encoding {self.coding}, which was not requested")
        return self.body

    @cached_property
    def text(self) -> str:
        return page_parser.decoded(self.content, self.header("Content-Type") or "")

    @cached_property
    def paragraphs(self) -> dict[str, str]:
        """The paragraphs of a probe page, about its rendering and its request, by name."""
        head = self.content[:PAGE_HEAD_BYTES].decode("utf-8", "replace").replace("\0", "\ufffd")
        return page_parser.ParsedPage(head).paragraphs

    @property
    def redirects(self) -> bool:
        return 300 <= self.status < 400

    @property
    def keeps_open(self) -> bool:
        """True if the response's headers allow another request on the connection."""
        words = self.names("Connection")
        if not self.delimited or "close" in words:
            return False
        return self.version == "HTTP/1.1" or "keep-alive" in words

    def wrong(self, expected: str, got: str | None = None, what: str = "", excuse: str = "") -> Mismatch:
        """The mismatch of this response; `got` defaults to its status, `what` describes the request."""
        found = f"status {self.status}" if got is None else got
        return Mismatch(f"{what or self.sent}: {expected}", found, self.sent, excuse)


def pairs(headers: Headers) -> tuple[tuple[str, str], ...]:
    return tuple(headers.items() if isinstance(headers, Mapping) else headers)


def build(
    target: Target,
    method: str,
    path: str | bytes,
    headers: Headers = (),
    body: bytes | None = None,
    *,
    host: str | None = "",
    version: str = "1.1",
) -> bytes:
    """The bytes of one request.

    headers  a character from "\\udc80" to "\\udcff" stands for one byte that is not UTF-8
    host     the Host header: empty for the target's own, None for no such header
    """
    raw = path if isinstance(path, bytes) else path.encode("utf-8")
    lines = [method.encode() + b" " + raw + b" HTTP/" + version.encode()]
    if host is not None:
        lines.append(b"Host: " + (host or target.netloc).encode())
    given = [*(target.via.headers if target.via else ()), *pairs(headers)]
    names = {name.lower() for name, _ in given}
    given += [(name, value) for name, value in USUAL if name.lower() not in names]
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        given.append(("Content-Length", str(len(body))))
    lines += [f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in given]
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")


def chunked(data: bytes, size: int = 16) -> bytes:
    """`data` in the chunked transfer coding, `size` bytes a chunk."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


class Connection:
    """One connection to the target; closed by `with`."""

    def __init__(self, target: Target, timeout_s: float | None = None, receive_buffer: int | None = None):
        self.target = target
        self.socket = connected(target, timeout_s or TIMEOUT_S, receive_buffer)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.tls:
            self.socket = tls_context().wrap_socket(self.socket, server_hostname=target.host)
        # Bytes received and not yet read.
        self._left = b""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_anyway(self, data: bytes) -> bool:
        """Send all of `data`, even after an early response, as most clients do; False if the server stopped reading."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            return False
        return True

    def quiet_for(self, seconds: float) -> bool:
        """Wait; returns whether the server neither sent nor closed anything, except TLS's session ticket."""
        timeout = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        try:
            self._left += self.socket.recv(PIECE_BYTES)
        except TimeoutError:
            return True
        except OSError:
            return False
        finally:
            self.socket.settimeout(timeout)
        return False

    def early_bytes(self) -> bytes:
        """The first bytes received, or empty if the server closes the connection."""
        with contextlib.suppress(ConnectionResetError):
            self._left = self._left or self.socket.recv(PIECE_BYTES)
        return self._left[:EARLY_BYTES]

    def exchange(self, method: str, path: str | bytes, headers: Headers = (), **how: Any) -> Answer:
        """Send one request and read its response; exceptions carry the request as `sent`.

        how  body, host and version: see build
        """
        headers = pairs(headers)
        sent = Sent(self.target.origin, method, path, headers, **how)
        try:
            self.send(build(self.target, method, path, headers, **how))
            return self.read(method, sent=sent)
        except (BadAnswer, OSError) as error:
            error.sent = sent  # type: ignore[union-attr]
            raise

    def read(self, method: str = "GET", pause: Callable[[], None] | None = None, sent: Sent | None = None) -> Answer:
        """Read the response to a request made with `method`, with a `pause` before each piece of its body.

        Raises ConnectionClosed if the connection ends first, BadAnswer if the response is incomplete or late, OSError
        if the connection breaks.
        """
        try:
            return self._read(method, pause, sent)
        except TimeoutError:
            raise TooLate(f"no complete response within {self.socket.gettimeout():g} s") from None
        except h11.RemoteProtocolError as error:
            raise BadAnswer(f"not a complete HTTP response: {error}") from None

    def _read(self, method: str, pause: Callable[[], None] | None, sent: Sent | None) -> Answer:
        parser = h11.Connection(h11.CLIENT, MAX_HEAD_BYTES)
        parser.send(h11.Request(method=method, target="/", headers=[("Host", "of-the-target")]))
        parser.send(h11.EndOfMessage())
        empty, head, body = not self._left, None, bytearray()
        if self._left:
            parser.receive_data(self._left)
        while not isinstance(event := parser.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                if pause and head:
                    pause()
                parser.receive_data(self._received(empty))
                empty = False
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
        self._left = parser.trailing_data[0]
        assert head is not None
        return _answer(method, head, bytes(body), sent)

    def _received(self, empty: bool) -> bytes:
        """Receive more bytes; raises ConnectionClosed if the connection ends with nothing received."""
        try:
            data = self.socket.recv(PIECE_BYTES)
        except ConnectionResetError:
            if empty:
                raise ConnectionClosed("connection reset before a response") from None
            raise
        if empty and not data:
            raise ConnectionClosed("connection closed without a response")
        return data

    def rest(self) -> bytes:
        """All bytes until the server closes; raises BadAnswer if the connection stays open and silent."""
        try:
            while data := self.socket.recv(PIECE_BYTES):
                self._left += data
        except TimeoutError:
            raise BadAnswer("the connection stays open and silent") from None
        return self._left


def fetch(target: Target, path: str | bytes, headers: Headers = (), method: str = "GET", **how: Any) -> Answer:
    """Send one request on a new connection; `how` is body, host and version: see build."""
    with Connection(target) as connection:
        return connection.exchange(method, path, headers, **how)


def _answer(method: str, head: h11.Response, body: bytes, sent: Sent | None) -> Answer:
    """Build the response; raises BadAnswer if the body has two lengths."""
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers.raw_items())
    names = {name.lower() for name, _ in headers}
    if {"content-length", "transfer-encoding"} <= names:
        raise BadAnswer("two lengths for one body: Content-Length and Transfer-Encoding")
    bodiless = method == "HEAD" or head.status_code in (204, 304)
    delimited = bodiless or bool(names & {"content-length", "transfer-encoding"})
    return Answer(head.status_code, f"HTTP/{head.http_version.decode()}", headers, body, delimited, sent)


def connected(target: Target, timeout_s: float, receive_buffer: int | None = None) -> socket.socket:
    """Connect a socket to the real destination of the target."""
    error: OSError | None = None
    host, port = (target.via.host, target.via.port) if target.via else (target.host, target.port)
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        opened = socket.socket(family, kind, protocol)
        opened.settimeout(timeout_s)
        if receive_buffer:
            # Effective only before connecting.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            if target.source and family == socket.AF_INET:
                opened.bind((target.source, 0))
            opened.connect(address)
        except OSError as failure:
            opened.close()
            error = failure
        else:
            return opened
    raise error or OSError(f"no address for {host}")


def tls_context() -> ssl.SSLContext:
    """A TLS context without verification: deployments have self-signed certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context

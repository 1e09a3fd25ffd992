"""The HTTP client of the instrument, except for load: HTTP/1.x over a socket, with control over every byte of the
request; h11 checks every byte of the response.

An ordinary client collapses dot segments, refuses odd bytes, and hides early closes of a connection: exactly the cases
that `verify` checks.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar
from urllib.parse import urlsplit

import h11

from bench.errors import BenchError

PORTS = {"http": 80, "https": 443}
TIMEOUT_S = 10.0
# The longest block of headers of a response.
MAX_HEAD_BYTES = 1 << 20
PIECE_BYTES = 200_000
# Bytes shown of a response that came too early.
EARLY_BYTES = 80
USUAL = (("User-Agent", "verify"), ("Accept", "*/*"), ("Accept-Encoding", "identity"))
CLOSE = {"Connection": "close"}
# By these statuses of its health check a site serves: there may be no page, and 204.
HEALTHY = range(200, 300)
# Cookies of accounts and tokens are long and random; they mean nothing once the accounts are removed.
LONGEST_COOKIE = 24
LONGEST_PATH = 100
LONGEST_BODY = 200
# Headers sent with each form.
WITH_FORMS = ("Content-Type", "Origin", "Referer")
SECRET = ("authorization", "x-csrftoken")
SECRET_FIELDS = ("token", "password")

Headers = Mapping[str, str] | Iterable[tuple[str, str]]
# The class of the responses that a connection reads.
AnyResponse = TypeVar("AnyResponse", bound="Response")


@dataclass(frozen=True)
class Route:
    """Real destination of connections to a target, such as a tunnel.

    tls      whether the destination speaks TLS
    headers  sent with each request, like the headers of a load balancer
    trust    what its certificate is verified with; None: any certificate will do
    """

    host: str
    port: int
    tls: bool
    headers: tuple[tuple[str, str], ...] = ()
    trust: ssl.SSLContext | None = None


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
        if parts.scheme not in PORTS or not parts.hostname or parts.path not in ("", "/"):
            raise BenchError(f"{url}: not the address of a site; write it as http://127.0.0.1:8000/")
        return cls(parts.scheme, parts.hostname, port or PORTS[parts.scheme])

    @property
    def netloc(self) -> str:
        """Host and port as in a Host header: without the scheme's default port."""
        host = self.host
        if ":" in self.host:
            host = f"[{self.host}]"
        if self.port == PORTS[self.scheme]:
            return host
        return f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.netloc}"

    @property
    def tls(self) -> bool:
        """True if connections speak TLS."""
        if self.via:
            return self.via.tls
        return self.scheme == "https"


class BadResponse(Exception):
    """Bytes that are not one complete HTTP response; the text says why."""


class TooLate(BadResponse):
    """The connection stayed open, and the rest of the response did not come."""


class ConnectionClosed(BadResponse):
    """The connection ended before the first byte of a response."""


@dataclass(frozen=True)
class Sent:
    """One request; `origin` is the target, such as http://127.0.0.1:8000.

    headers  a character from "\\udc80" to "\\udcff" stands for one byte that is not UTF-8
    host     the Host header: empty for the target's own, None for no such header

    A curl command lets a reader repeat the failure.
    """

    origin: str
    method: str
    path: str | bytes
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    host: str | None = ""
    version: str = "1.1"

    def __str__(self) -> str:
        """The request in words, such as `GET /about/ with Accept-Encoding: gzip`."""
        path = self.path
        if isinstance(path, bytes):
            path = path.decode("ascii", "backslashreplace")
        if len(path) > LONGEST_PATH:
            path = f"{path[:40]}...{path[-40:]} ({len(path)} characters)"
        given = []
        if self.host is None:
            given.append("no Host")
        elif self.host:
            given.append(f"Host: {self.host[:40]}")
        for name, value in self.headers:
            if name not in WITH_FORMS:
                given.append(f"{name}: {_shown(name, value)[:60]}")
        text = ", ".join(given).encode("ascii", "backslashreplace").decode()
        if not text:
            return f"{self.method} {path}"
        return f"{self.method} {path} with {text}"

    def encoded(self, target: Target) -> bytes:
        """The bytes of the request to this target."""
        path = self.path
        if isinstance(path, str):
            path = path.encode("utf-8")
        lines = [b"%s %s HTTP/%s" % (self.method.encode(), path, self.version.encode())]
        if self.host is not None:
            lines.append(b"Host: " + (self.host or target.netloc).encode())
        given = [*self.headers]
        if target.via:
            given = [*target.via.headers, *given]
        names = {name.lower() for name, _ in given}
        given += [(name, value) for name, value in USUAL if name.lower() not in names]
        if self.body is not None and not names & {"content-length", "transfer-encoding"}:
            given.append(("Content-Length", str(len(self.body))))
        lines += [f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in given]
        return b"\r\n".join(lines) + b"\r\n\r\n" + (self.body or b"")

    @property
    def command(self) -> str:
        """The curl command for bash, with the bytes of the path unchanged."""
        path = self.path
        if isinstance(path, bytes):
            path = path.decode("utf-8", "surrogateescape")
        headers = [*self.headers]
        if self.host != "":
            headers.insert(0, ("Host", self.host or ""))
        words = ["curl", "-i", "--path-as-is"]
        if self.origin.startswith("https:"):
            words.append("-k")
        if self.version == "1.0":
            words.append("--http1.0")
        if self.method == "HEAD":
            words += ["--head"]
        elif self.method != "GET":
            words += ["-X", self.method]
        for name, value in headers:
            # curl leaves a header out that ends with a colon, and sends an empty one for a semicolon.
            header = f"{name};"
            if value:
                header = f"{name}: {_shown(name, value)}"
            elif name == "Host" and self.host is None:
                header = "Host:"
            words += ["-H", header]
        # In an address curl would refuse some bytes, and take others for a pattern or a fragment.
        plain = path.startswith("/") and re.fullmatch(r"[!-~]*", path) and not re.search(r"[][{}#]", path)
        address = [f"{self.origin}{path}"]
        if not plain:
            address = ["--request-target", path, f"{self.origin}/"]
        return " ".join([*map(_quoted, words), *self._data(), *map(_quoted, address)])

    def _data(self) -> list[str]:
        """Arguments for the body: a short body without secrets, otherwise one of the same length."""
        if self.body is None:
            return []
        text = self.body.decode("utf-8", "surrogateescape")
        if any(word in text.lower() for word in SECRET_FIELDS):
            return ["--data", "..."]
        if len(text) > LONGEST_BODY:
            return ["--data-binary", f"@<(head -c {len(self.body)} /dev/zero)"]
        return ["--data-raw", _quoted(text)]


def _quoted(word: str) -> str:
    """Quote a word for bash, with unprintable bytes escaped."""
    if word.isascii() and word.isprintable():
        return shlex.quote(word)
    raw = word.encode("utf-8", "surrogateescape")
    quoted = ""
    for byte in raw:
        if 32 <= byte < 127 and byte not in b"'\\":
            quoted += chr(byte)
        else:
            quoted += f"\\x{byte:02x}"
    return f"$'{quoted}'"


def _shown(name: str, value: str) -> str:
    """A header's value without secrets."""
    if name.lower() in SECRET:
        return "..."
    if name.lower() == "cookie":
        return re.sub(rf"=[^;]{{{LONGEST_COOKIE},}}", "=...", value)
    return value


@dataclass(frozen=True)
class Response:
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
        if not values:
            return None
        return ", ".join(values)

    def all(self, name: str) -> list[str]:
        name = name.lower()
        return [value for key, value in self.headers if key.lower() == name]

    def names(self, header: str) -> set[str]:
        """The names in a list header such as Vary or Connection, of all its lines, in lower case."""
        return {name.strip().lower() for name in ",".join(self.all(header)).split(",")} - {""}

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


def pairs(headers: Headers) -> tuple[tuple[str, str], ...]:
    if isinstance(headers, Mapping):
        return tuple(headers.items())
    return tuple(headers)


def build(
    target: Target,
    method: str,
    path: str | bytes,
    headers: Headers = (),
    body: bytes | None = None,
    host: str | None = "",
) -> bytes:
    """The bytes of one request; see Sent."""
    return Sent(target.origin, method, path, pairs(headers), body, host).encoded(target)


def chunked(data: bytes, size: int = 16) -> bytes:
    """`data` in the chunked transfer coding, `size` bytes a chunk."""
    body = bytearray()
    for start in range(0, len(data), size):
        piece = data[start : start + size]
        body += b"%x\r\n%s\r\n" % (len(piece), piece)
    return bytes(body) + b"0\r\n\r\n"


class ClientConnection(Generic[AnyResponse]):
    """One connection to the target; closed by `with`. A subclass names the class of its responses."""

    response: type[AnyResponse]

    def __init__(self, target: Target, timeout_s: float | None = None, receive_buffer: int | None = None):
        self.target = target
        self.socket = connected(target, timeout_s or TIMEOUT_S, receive_buffer)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.tls:
            context = (target.via and target.via.trust) or tls_context()
            self.socket = context.wrap_socket(self.socket, server_hostname=target.host)
        # Bytes received and not yet read.
        self._left = b""

    def __enter__(self) -> Self:
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

    def exchange(self, method: str, path: str | bytes, headers: Headers = (), **how: Any) -> AnyResponse:
        """Send one request and read its response; exceptions carry the request as `sent`.

        how  body, host and version: see Sent
        """
        sent = Sent(self.target.origin, method, path, pairs(headers), **how)
        try:
            self.send(sent.encoded(self.target))
            return self.read(method, sent=sent)
        except (BadResponse, OSError) as error:
            error.sent = sent  # type: ignore[union-attr]
            raise

    def read(
        self, method: str = "GET", pause: Callable[[], None] | None = None, sent: Sent | None = None
    ) -> AnyResponse:
        """Read the response to a request made with `method`, with a `pause` before each piece of its body.

        Raises ConnectionClosed if the connection ends first, BadResponse if the response is incomplete or late, OSError
        if the connection breaks.
        """
        try:
            return self._read(method, pause, sent)
        except TimeoutError:
            raise TooLate(f"no complete response within {self.socket.gettimeout():g} s") from None
        except h11.RemoteProtocolError as error:
            raise BadResponse(f"not a complete HTTP response: {error}") from None

    def _read(self, method: str, pause: Callable[[], None] | None, sent: Sent | None) -> AnyResponse:
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
        return self._response(method, head, bytes(body), sent)

    def _response(self, method: str, head: h11.Response, body: bytes, sent: Sent | None) -> AnyResponse:
        """Build the response; raises BadResponse if the body has two lengths."""
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers.raw_items())
        names = {name.lower() for name, _ in headers}
        if {"content-length", "transfer-encoding"} <= names:
            raise BadResponse("two lengths for one body: Content-Length and Transfer-Encoding")
        bodiless = method == "HEAD" or head.status_code in (204, 304)
        delimited = bodiless or bool(names & {"content-length", "transfer-encoding"})
        version = f"HTTP/{head.http_version.decode()}"
        return self.response(head.status_code, version, headers, body, delimited, sent)

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
        """All bytes until the server closes; raises BadResponse if the connection stays open and silent."""
        try:
            while data := self.socket.recv(PIECE_BYTES):
                self._left += data
        except TimeoutError:
            raise BadResponse("the connection stays open and silent") from None
        return self._left


def connected(target: Target, timeout_s: float, receive_buffer: int | None = None) -> socket.socket:
    """Connect a socket to the real destination of the target."""
    error: OSError | None = None
    destination = target.via or target
    host, port = destination.host, destination.port
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


class PlainConnection(ClientConnection[Response]):
    """A connection with responses as they are."""

    response = Response


class VisitError(BenchError):
    """A request without status 200; one line names the request and its response."""


def visit(target: Target, path: str, timeout_s: float = TIMEOUT_S) -> Response:
    """The response to GET `path` over a new connection.

    Raises ssl.SSLCertVerificationError if the target has a certificate that its `trust` did not sign, VisitError
    without a response.
    """
    try:
        with PlainConnection(target, timeout_s) as connection:
            return connection.exchange("GET", path, CLOSE)
    except ssl.SSLCertVerificationError:
        raise
    except (TimeoutError, TooLate):
        raise VisitError(f"GET {path}: no response in {timeout_s:g} s") from None
    except (OSError, BadResponse) as error:
        raise VisitError(f"GET {path}: {error or type(error).__name__}") from None


def page(base_url: str, path: str) -> Response:
    """The response to GET `path`. Raises VisitError unless the status is 200."""
    response = visit(Target.parse(base_url), path)
    if response.status != 200:
        raise VisitError(f"GET {path}: status {response.status}, not 200")
    return response


def get(base_url: str, path: str) -> bytes:
    """The body at `path`. Raises VisitError like `page`."""
    return page(base_url, path).body


def status(base_url: str, path: str, timeout_s: float = TIMEOUT_S) -> int | None:
    """The status of GET `path`, or None without a response."""
    try:
        return visit(Target.parse(base_url), path, timeout_s).status
    except VisitError:
        return None

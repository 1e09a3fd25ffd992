"""HTTP/1.x over a socket, with control over every byte of the request and a check of every byte of the answer.

An ordinary client collapses dot segments, refuses odd bytes, and hides a connection that was closed too early. The
checks need exactly these.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import select
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from bench.verify import curl
from bench.verify.target import Target as Target

TIMEOUT_S = 10.0
MAX_LINE = 65536
MAX_HEADERS = 200
# Bytes that a slow reader takes at a time.
PIECE_BYTES = 200_000

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


class BadAnswer(Exception):
    """Bytes that are not one complete HTTP answer; the text says why."""


class TooLate(BadAnswer):
    """The connection stayed open, and the rest of the answer did not come."""


class Closed(BadAnswer):
    """The connection ended before the first byte of an answer."""


@dataclass(frozen=True)
class Answer:
    """One complete answer. `body` is without its transfer coding and with its content coding."""

    status: int
    version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    delimited: bool = True

    def header(self, name: str) -> str | None:
        """The value of the header, several joined with a comma, or None."""
        values = self.all(name)
        return ", ".join(values) if values else None

    def all(self, name: str) -> list[str]:
        name = name.lower()
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def content_type(self) -> str:
        """Media type and charset without spaces, in lower case; empty when there is none."""
        return "".join((self.header("Content-Type") or "").lower().split())

    @property
    def render_id(self) -> str | None:
        return self.header("X-Render-Id")

    @property
    def content(self) -> bytes:
        """The body with its content coding removed; raises BadAnswer when it does not match its header."""
        coding = (self.header("Content-Encoding") or "identity").strip().lower()
        try:
            if coding == "gzip":
                return gzip.decompress(self.body)
            if coding == "deflate":
                return zlib.decompress(self.body)
            if coding == "br":
                import brotli  # type: ignore[import-untyped]

                return bytes(brotli.decompress(self.body))
        except Exception as error:
            raise BadAnswer(f"a body that is not {coding}, unlike its Content-Encoding: {error}") from None
        if coding != "identity":
            raise BadAnswer(f"Content-Encoding {coding}, which was not requested")
        return self.body

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    @property
    def keeps_open(self) -> bool:
        """Whether the answer's headers allow another request on the connection."""
        words = {word.strip().lower() for word in (self.header("Connection") or "").split(",")}
        if not self.delimited or "close" in words:
            return False
        return self.version == "HTTP/1.1" or "keep-alive" in words


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

    headers  a character from "\\udc80" to "\\udcff" stands for one byte that is no UTF-8
    host     the Host header: empty for the target's own, None for no such header
    """
    raw = path if isinstance(path, bytes) else path.encode("utf-8")
    lines = [method.encode() + b" " + raw + b" HTTP/" + version.encode()]
    if host is not None:
        lines.append(b"Host: " + (host or target.netloc).encode())
    given = [
        *(target.via.headers if target.via else ()),
        *(headers.items() if isinstance(headers, Mapping) else headers),
    ]
    names = {name.lower() for name, _ in given}
    for name, value in (("User-Agent", "verify"), ("Accept", "*/*"), ("Accept-Encoding", "identity")):
        if name.lower() not in names:
            given.append((name, value))
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        given.append(("Content-Length", str(len(body))))
    lines += [f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in given]
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")


# Bytes shown of an answer that came too early.
EARLY_BYTES = 80


class Connection:
    """One connection to the target; closed by `with`."""

    def __init__(self, target: Target, timeout_s: float | None = None, receive_buffer: int | None = None):
        self.target = target
        self.used = False
        self.socket = _connected(target, timeout_s or TIMEOUT_S, receive_buffer)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.tls:
            self.socket = _tls().wrap_socket(self.socket, server_hostname=target.host)
        self.reader = self.socket.makefile("rb")

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.reader.close()
        with contextlib.suppress(OSError):
            self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_anyway(self, data: bytes) -> bool:
        """Send all of `data`, even after an early answer, as most clients do; False if the server stopped reading."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            return False
        return True

    def quiet_for(self, seconds: float) -> bool:
        """Wait; returns whether the server neither sent nor closed anything."""
        deadline = time.monotonic() + seconds
        while select.select([self.socket], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if not self.target.tls or self._has_data():
                return False
        return True

    def _has_data(self) -> bool:
        """Whether TLS brought data or the end, and not only a session ticket."""
        timeout = self.socket.gettimeout()
        self.socket.settimeout(0)
        try:
            self.reader.peek(1)
        except ssl.SSLWantReadError:
            return False
        except OSError:
            return True
        finally:
            self.socket.settimeout(timeout)
        return True

    def early_bytes(self) -> bytes:
        """The first bytes of an answer that came too early."""
        return self.reader.peek(1)[:EARLY_BYTES]

    def exchange(
        self,
        method: str,
        path: str | bytes,
        headers: Headers = (),
        body: bytes | None = None,
        *,
        host: str | None = "",
        version: str = "1.1",
    ) -> Answer:
        """Send one request and read its answer."""
        curl.note(curl.Sent(self.target.scheme, method, path, curl.pairs(headers), body is not None, host))
        self.send(build(self.target, method, path, headers, body, host=host, version=version))
        return self.read(method)

    def read(self, method: str = "GET", pause: Callable[[], None] | None = None) -> Answer:
        """Read the answer to a request made with `method`, with a `pause` before each piece of its body.

        Raises Closed when the connection ends first, BadAnswer when the bytes are not one complete answer or come too
        late, OSError when the connection breaks.
        """
        self.used = True
        try:
            answer = read_answer(self.reader, method, pause)
        except TimeoutError:
            raise TooLate(f"no complete answer within {self.socket.gettimeout():g} s") from None
        return answer

    def rest(self) -> bytes:
        """All bytes until the server closes; raises BadAnswer when it stays open and silent."""
        try:
            return self.reader.read()
        except TimeoutError:
            raise BadAnswer("the connection stays open and silent") from None


def fetch(
    target: Target,
    path: str | bytes,
    headers: Headers = (),
    *,
    method: str = "GET",
    body: bytes | None = None,
    host: str | None = "",
) -> Answer:
    """The answer to one request on a connection of its own."""
    with Connection(target) as connection:
        return connection.exchange(method, path, headers, body, host=host)


def read_answer(reader: io.BufferedReader, method: str = "GET", pause: Callable[[], None] | None = None) -> Answer:
    """Read one answer; see Connection.read for what it raises."""
    while True:
        version, status = _status_line(reader)
        headers = _headers(reader)
        if status >= 200:
            break
    lengths = {value.strip() for key, value in headers if key.lower() == "content-length"}
    chunked = any(key.lower() == "transfer-encoding" and "chunked" in value.lower() for key, value in headers)
    if len(lengths) > 1 or (lengths and chunked):
        raise BadAnswer(f"two lengths for one body: {sorted(lengths)}{', chunked' if chunked else ''}")
    if method == "HEAD" or status in (204, 304):
        return Answer(status, version, headers, b"")
    if chunked:
        return Answer(status, version, headers, _chunks(reader))
    if lengths:
        (length,) = lengths
        if not length.isdecimal():
            raise BadAnswer(f"Content-Length {length!r}")
        return Answer(status, version, headers, _exactly(reader, int(length), pause))
    return Answer(status, version, headers, reader.read(), delimited=False)


def _status_line(reader: io.BufferedReader) -> tuple[str, int]:
    try:
        line = reader.readline(MAX_LINE)
    except ConnectionResetError:
        raise Closed("connection reset before an answer") from None
    if not line:
        raise Closed("connection closed without an answer")
    words = line.decode("latin-1").split(None, 2)
    if len(words) < 2 or words[0] not in ("HTTP/1.0", "HTTP/1.1") or not words[1].isdecimal():
        raise BadAnswer(f"not an HTTP answer: {line[:80]!r}")
    return words[0], int(words[1])


def _headers(reader: io.BufferedReader) -> tuple[tuple[str, str], ...]:
    headers: list[tuple[str, str]] = []
    for _ in range(MAX_HEADERS):
        line = reader.readline(MAX_LINE)
        if line in (b"\r\n", b"\n"):
            return tuple(headers)
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or not name.strip() or not line.endswith(b"\n"):
            raise BadAnswer(f"not a header: {line[:80]!r}")
        headers.append((name, value.strip()))
    raise BadAnswer(f"more than {MAX_HEADERS} headers")


def _exactly(reader: io.BufferedReader, length: int, pause: Callable[[], None] | None = None) -> bytes:
    body = reader.read(length) if pause is None else b"".join(_pieces(reader, length, pause))
    if len(body) != length:
        raise BadAnswer(f"a body of {len(body)} bytes where {length} were announced")
    return body


def _pieces(reader: io.BufferedReader, length: int, pause: Callable[[], None]) -> Iterator[bytes]:
    while length > 0:
        pause()
        piece = reader.read(min(length, PIECE_BYTES))
        if not piece:
            return
        length -= len(piece)
        yield piece


def _chunks(reader: io.BufferedReader) -> bytes:
    body = bytearray()
    while True:
        line = reader.readline(MAX_LINE)
        try:
            size = int(line.split(b";")[0].strip() or b"?", 16)
        except ValueError:
            raise BadAnswer(f"not a chunk size: {line[:40]!r}") from None
        if size == 0:
            while reader.readline(MAX_LINE) not in (b"\r\n", b"\n", b""):
                pass
            return bytes(body)
        body += _exactly(reader, size)
        if reader.readline(MAX_LINE) not in (b"\r\n", b"\n"):
            raise BadAnswer("a chunk longer than its size says")


def chunked(data: bytes, size: int = 16) -> bytes:
    """`data` in the chunked transfer coding, `size` bytes a chunk."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _connected(target: Target, timeout_s: float, receive_buffer: int | None) -> socket.socket:
    error: OSError | None = None
    host, port = (target.via.host, target.via.port) if target.via else (target.host, target.port)
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        opened = socket.socket(family, kind, protocol)
        opened.settimeout(timeout_s)
        if receive_buffer:
            # It has an effect only before the connection is made.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            opened.connect(address)
        except OSError as failure:
            opened.close()
            error = failure
        else:
            return opened
    raise error or OSError(f"no address for {host}")


def _tls() -> ssl.SSLContext:
    # Deployments have self-signed certificates.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context

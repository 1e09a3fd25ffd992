"""A connection that never blocks, its request, and its HTTP/1.1 response, received in any pieces."""

from __future__ import annotations

import re
import socket
import ssl
import time

PIECE_BYTES = 65536
HEAD, LENGTH, CHUNKED, TRAILER, UNTIL_END = range(5)
# Responses that have no body, whatever length their head names (RFC 9112, 6.3).
BODILESS = (204, 304)
MAX_HEAD_BYTES = 65536
# The header fields that determine the end of a response.
FIELDS = re.compile(rb"\r\n(connection|content-length|transfer-encoding):[ \t]*([^\r]*)", re.IGNORECASE)


class ResponseError(Exception):
    """The bytes received are not an HTTP response."""


class ResponseReader:
    """Reader of one response: its status and the size of its body.

    status  of the response, 0 before its head
    size    bytes of the body so far, as sent: without the frames of chunks
    closes  whether the connection ends after the response
    pieces  of the body, if `wanted`; else None
    """

    __slots__ = ("_buffer", "_left", "_state", "closes", "pieces", "size", "status")

    def __init__(self, wanted: bool = False) -> None:
        self.status = 0
        self.pieces: list[bytes] | None = None
        if wanted:
            self.pieces = []
        self.size = 0
        self.closes = False
        self._state = HEAD
        self._buffer = b""
        self._left = 0

    def feed(self, data: bytes) -> bool:
        """Read a piece; true if the response is complete.

        Raises ResponseError for anything except a single response: no further request was sent yet.
        """
        while self._state == HEAD:
            data = self._buffer + data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > MAX_HEAD_BYTES:
                    raise ResponseError("no end of the head")
                self._buffer = data
                return False
            self._read_head(data[:end])
            self._buffer = b""
            data = data[end + 4 :]
        if self._state in (CHUNKED, TRAILER):
            return self._feed_chunks(data)
        self._add(data)
        if self._state == LENGTH and self.size > self._left:
            raise ResponseError("more than one response")
        return self._state == LENGTH and self.size == self._left

    def ended(self) -> bool:
        """True if the end of the connection completes the response."""
        return self._state == UNTIL_END

    def _add(self, data: bytes) -> None:
        self.size += len(data)
        if self.pieces is not None:
            self.pieces.append(data)

    def _read_head(self, head: bytes) -> None:
        if not head.startswith(b"HTTP/1.") or not head[9:12].isdigit():
            raise ResponseError(f"no HTTP response: {head[:40]!r}")
        status = int(head[9:12])
        if 100 <= status < 200:
            # Early hints and the like: the response itself is still to come.
            return
        self.status = status
        fields = {name.lower(): value.lower() for name, value in FIELDS.findall(head)}
        connection_header, length = fields.get(b"connection", b""), fields.get(b"content-length")
        self.closes = b"close" in connection_header or (
            head.startswith(b"HTTP/1.0") and b"keep-alive" not in connection_header
        )
        if status in BODILESS:
            self._state, self._left = LENGTH, 0
        elif b"chunked" in fields.get(b"transfer-encoding", b""):
            # Chunks count even with a length (RFC 9112, 6.3).
            self._state = CHUNKED
            self._left = -1
        elif length is not None:
            self._state = LENGTH
            self._left = _size(length, 10)
        else:
            self._state, self.closes = UNTIL_END, True

    def _feed_chunks(self, data: bytes) -> bool:
        """Chunks: a line with the size, so many bytes, an empty line. The last chunk has size 0 and no bytes; header
        fields may follow, ended by an empty line. -1: a line is expected."""
        data = self._buffer + data
        while True:
            if self._left < 0:
                end = data.find(b"\r\n")
                if end < 0:
                    self._buffer = data
                    return False
                line, data = data[:end], data[end + 2 :]
                if self._state == TRAILER:
                    if line:
                        continue
                    if data:
                        raise ResponseError("more than one response")
                    return True
                self._left = _size(line.split(b";")[0], 16)
                if self._left == 0:
                    self._state, self._left = TRAILER, -1
                    continue
            if len(data) < self._left + 2:
                self._buffer = data
                return False
            self._add(data[: self._left])
            data = data[self._left + 2 :]
            self._left = -1


def _size(text: bytes, base: int) -> int:
    """Parse a number of bytes. Raises ValueError."""
    if (size := int(text, base)) < 0:
        raise ValueError(f"a negative size: {text!r}")
    return size


class LoadConnection:
    """One TCP connection, optionally with TLS.

    ready     connected, and the handshake done
    busy      the response is not complete yet
    fresh     no response has come on this connection yet
    since     start of the request's latency
    left      time of sending the request
    again     number of earlier attempts, on idle connections closed by the server
    page      index of the requested path
    unsent    the unsent part of the request
    response  the part received so far
    """

    __slots__ = (
        *("_name", "_tls", "_wanted", "again", "busy", "fresh", "left", "page", "ready", "response", "since", "sock"),
        "unsent",
    )

    def __init__(self, tls: ssl.SSLContext | None, name: str, wanted: bool = False) -> None:
        """`name` is the host's name for TLS; bodies of responses are kept if `wanted`."""
        self._name, self._tls, self._wanted = name, tls, wanted
        self.ready = False
        self.busy = False
        self.fresh = True
        self.since = 0.0
        self.left = 0.0
        self.again = 0
        self.page = 0
        self.unsent = b""
        self.response = ResponseReader()
        self.sock: socket.socket

    def connect(self, address: tuple[str, int]) -> None:
        """Begin to connect. Raises OSError if the system refuses at once."""
        self.sock = socket.socket()
        try:
            self.sock.setblocking(False)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock.connect(address)
        except BlockingIOError:
            pass
        except OSError:
            self.sock.close()
            raise

    def begin(self, request: bytes, page: int, since: float, again: int = 0) -> None:
        """Assign a request to the connection; nothing is sent yet."""
        self.busy, self.since, self.page, self.again = True, since, page, again
        self.left = time.monotonic()
        self.unsent = request
        self.response = ResponseReader(self._wanted)

    def connected(self) -> None:
        """Continue to connect: the socket is readable or writable.

        Raises ssl.SSLWantReadError or ssl.SSLWantWriteError while a handshake waits, another OSError if it failed.
        """
        if error := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, "cannot connect")
        if self._tls:
            if not isinstance(self.sock, ssl.SSLSocket):
                self.sock = self._tls.wrap_socket(self.sock, do_handshake_on_connect=False, server_hostname=self._name)
            self.sock.do_handshake()
        self.ready = True

    def send(self) -> None:
        """Send as much as the socket takes now. Raises OSError if the connection is broken."""
        try:
            sent = self.sock.send(self.unsent)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return
        self.unsent = self.unsent[sent:]

    def receive(self) -> bytes | None:
        """The bytes received; empty if the connection has ended, None if nothing came.

        Raises OSError if the connection broke: without a length, the response is then incomplete.
        """
        sock = self.sock
        try:
            data = sock.recv(PIECE_BYTES)
            if isinstance(sock, ssl.SSLSocket):
                while data and sock.pending():
                    data += sock.recv(PIECE_BYTES)
            return data
        except (BlockingIOError, ssl.SSLWantReadError):
            return None

"""A connection that never blocks, and the request on it."""

from __future__ import annotations

import socket
import ssl
import time

from bench.load.openloop.answer import Answer

PIECE_BYTES = 65536


class Connection:
    """One TCP connection, with TLS where asked.

    ready   connected, and the handshake done
    busy    its request has no whole answer yet
    fresh   no answer has come on it yet
    since   when the latency of its request begins
    left    when its request was given to it
    again   how often its request was sent before, on connections that the server closed as they were idle
    page    which path it requests
    unsent  what is left to send of the request
    answer  the part received so far
    """

    __slots__ = (
        *("_name", "_tls", "_wanted", "again", "answer", "busy", "fresh", "left", "page", "ready", "since", "sock"),
        "unsent",
    )

    def __init__(self, tls: ssl.SSLContext | None, name: str, wanted: bool = False) -> None:
        """`name` is the host's for TLS, the bodies of answers are kept where they are `wanted`."""
        self._name, self._tls, self._wanted = name, tls, wanted
        self.ready = False
        self.busy = False
        self.fresh = True
        self.since = 0.0
        self.left = 0.0
        self.again = 0
        self.page = 0
        self.unsent = b""
        self.answer = Answer()
        self.sock: socket.socket

    def connect(self, address: tuple[str, int]) -> None:
        """Begin to connect. Raises OSError when the system refuses at once."""
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
        self.answer = Answer(self._wanted)

    def connected(self) -> None:
        """Continue to connect: the socket is readable or writable.

        Raises ssl.SSLWantReadError or ssl.SSLWantWriteError while a handshake waits, another OSError when it failed.
        """
        if error := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, "cannot connect")
        if self._tls:
            if not isinstance(self.sock, ssl.SSLSocket):
                self.sock = self._tls.wrap_socket(self.sock, do_handshake_on_connect=False, server_hostname=self._name)
            self.sock.do_handshake()
        self.ready = True

    def send(self) -> None:
        """Send what the socket takes now. Raises OSError when the connection is broken."""
        try:
            sent = self.sock.send(self.unsent)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return
        self.unsent = self.unsent[sent:]

    def receive(self) -> bytes | None:
        """The bytes received; empty when the connection has ended, None when there are none."""
        sock = self.sock
        try:
            data = sock.recv(PIECE_BYTES)
            if isinstance(sock, ssl.SSLSocket):
                while data and sock.pending():
                    data += sock.recv(PIECE_BYTES)
            return data
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        except OSError:
            return b""

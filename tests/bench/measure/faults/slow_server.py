"""A server of three threads, each with one client until request and response are complete."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from bench.serve.machine.http import Target

THREADS = 3
LARGE_BYTES = 10_000_000


@contextmanager
def slow_server() -> Iterator[Target]:
    """The server's target. The last word of a path selects the response: a status, `large`, `garbage`, `close` or
    `wait`. Below `/later/` the response has a Retry-After.

    It waits for the end of a request without one: of one that posts, and of one for `/end`.
    """
    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    _respond(connection, over)

    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(THREADS):
            pool.submit(serve)
        try:
            yield Target("http", *listener.getsockname())
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def _respond(connection: socket.socket, over: threading.Event) -> None:
    request = b""
    while not request.endswith(b"\r\n\r\n") or b"POST" in request or b"/end" in request:
        if not (piece := connection.recv(10_000)):
            break
        request += piece
    if b"POST" in request or not request:
        return
    word = request.split()[1].rpartition(b"/")[2]
    if word == b"wait":
        over.wait()
    elif word == b"garbage":
        connection.sendall(b"what\r\n")
    elif word != b"close":
        status, size = word if word.isdigit() else b"200", LARGE_BYTES if word == b"large" else 1
        later = b"Retry-After: 5\r\n" if b"/later/" in request else b""
        head = b"HTTP/1.1 %s Words\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n" % (status, later, size)
        connection.sendall(head + b"x" * size)

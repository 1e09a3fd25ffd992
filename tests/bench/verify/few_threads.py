"""A server of three threads, each with one client until its request and the answer are through."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench.verify.wire import Target

THREADS = 3
LARGE_BYTES = 10_000_000


@contextmanager
def few_threads() -> Iterator[Target]:
    """Where it listens."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads = [threading.Thread(target=_serve, args=(listener,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        yield Target("http", *listener.getsockname())
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in threads:
            thread.join()


def _serve(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            _answer(connection)


def _answer(connection: socket.socket) -> None:
    request = b""
    while not request.endswith(b"\r\n\r\n") or b"POST" in request:
        if not (piece := connection.recv(10_000)):
            return
        request += piece
    body = b"x" * (LARGE_BYTES if b"/large/" in request else 1)
    try:
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    except OSError:
        return

"""Slow clients hold what serves them, until their block ends."""

from __future__ import annotations

import socket
import threading

import pytest

from bench.verify import slow
from bench.verify.slow import SlowClients
from bench.verify.wire import Target

THREADS = 3


@pytest.fixture
def target():
    """A server of three threads, each with a client until its request and the answer are through."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                _answer(connection)

    threads = [threading.Thread(target=serve) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    yield Target("http", *listener.getsockname())
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for thread in threads:
        thread.join()


def _answer(connection: socket.socket) -> None:
    request = b""
    while not (request.endswith(b"\r\n\r\n") and b"POST" not in request):
        if not (piece := connection.recv(10_000)):
            return
        request += piece
    body = b"x" * (10_000_000 if b"/large/" in request else 1)
    try:
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    except OSError:
        return


@pytest.mark.parametrize("how", [slow.headers, slow.bodies, slow.readers], ids=lambda how: how.__name__)
def test_as_many_as_there_are_threads_hold_up_all_others(target, how, monkeypatch):
    monkeypatch.setattr(slow, "LIMIT_S", 0.2)
    with SlowClients(target, how(target, "/large/")) as clients:
        clients.grow(THREADS - 1)
        assert slow.held_up(target, ["/"]) is None
        clients.grow(THREADS)
        assert clients.count == THREADS
        path, why = slow.held_up(target, ["/"])
        assert (path, why) == ("/", "no complete answer within 0.2 s")
    assert slow.held_up(target, ["/"]) is None

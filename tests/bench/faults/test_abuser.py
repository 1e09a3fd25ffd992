"""What comes back for malformed requests is counted by kind, and the pace is kept."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from bench.faults.abuser import send_all
from bench.faults.malformed import Malformed
from bench.machine.ports import free_port
from bench.verify.wire import Target

# Each needs seconds of requests, or starts several programs.
pytestmark = pytest.mark.servers

ANSWER = b"HTTP/1.1 %s Words\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def server():
    """A server that answers with what a request names in its first word; `close` and `wait` are other answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def answer(connection: socket.socket) -> None:
        word = connection.recv(100).split()[0]
        held.append(connection)
        if word.isdigit():
            connection.sendall(ANSWER % word)
        elif word == b"end":
            # It waits for the end of the request.
            assert connection.recv(100) == b""
            connection.sendall(ANSWER % b"400")
        elif word == b"garbage":
            connection.sendall(b"what\r\n")
        if word != b"wait":
            connection.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(5)
            answer(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    yield Target("http", *listener.getsockname())
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
    for connection in held:
        connection.close()


def sent(target: Target, *words: str, per_second: float = 1000, limit_s: float = 10):
    requests = [Malformed(word, word.encode() + b" x\r\n\r\n", word == "end") for word in words]
    return send_all(target, iter(requests), per_second, limit_s)


def test_answers_are_counted_and_refusals_are_no_failures(server):
    answers = sent(server, "400", "400", "501", "505", "502", "end")
    assert answers.statuses == {400: 3, 501: 1, 505: 1, 502: 1}
    assert answers.server_errors == {"502": 1}
    assert answers.sent == 6


def test_what_gets_no_answer_is_counted_by_how(server):
    answers = sent(server, "close", "wait", "garbage")
    assert (answers.refused, answers.silent, answers.unopened) == (1, 2, 0)


def test_a_server_that_is_gone_is_counted():
    answers = sent(Target("http", "127.0.0.1", free_port()), "400", "400")
    assert answers.unopened == 2


def test_the_pace_and_the_time_are_bounds(server):
    begun = time.monotonic()
    assert sent(server, *["400"] * 10, per_second=20).sent == 10
    assert time.monotonic() - begun >= 0.45
    assert 1 <= sent(server, *["400"] * 1000, per_second=10, limit_s=0.2).sent <= 3

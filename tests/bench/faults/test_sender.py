"""What comes back for malformed requests is said for each, and the pace is kept."""

from __future__ import annotations

import time

import pytest

from bench.faults.malformed import Malformed
from bench.faults.sender import CLOSED, SILENT, UNOPENED, send_all
from bench.machine.ports import free_port
from bench.verify.wire import Target
from tests.bench.faults.slow_server import slow_server

# Each needs seconds of requests, or starts several programs.
pytestmark = pytest.mark.servers


def sent(target: Target, *words: str, per_second: float = 1000, limit_s: float = 10):
    requests = [Malformed(word, f"GET /{word} x\r\n\r\n".encode(), word == "end") for word in words]
    return send_all(target, iter(requests), per_second, limit_s)


def test_what_each_request_gets_is_said_beside_its_kind():
    words = ("400", "501", "502", "end", "close", "garbage", "wait")
    with slow_server() as target:
        got = dict(sent(target, *words))
    assert got == dict(zip(words, (400, 501, 502, 200, CLOSED, SILENT, SILENT), strict=True))


def test_a_server_that_is_gone_opens_no_connection():
    assert sent(Target("http", "127.0.0.1", free_port()), "400") == [("400", UNOPENED)]


def test_the_pace_and_the_time_are_bounds():
    with slow_server() as target:
        begun = time.monotonic()
        assert len(sent(target, *["400"] * 10, per_second=20)) == 10
        assert time.monotonic() - begun >= 0.45
        assert 1 <= len(sent(target, *["400"] * 1000, per_second=10, limit_s=0.2)) <= 3


def test_a_signal_stops_it_at_once():
    def stopped():
        raise KeyboardInterrupt

    requests = (Malformed("400", b"GET /400 x\r\n\r\n") for _ in range(1000))
    begun = time.monotonic()
    with slow_server() as target, pytest.raises(KeyboardInterrupt):
        send_all(target, requests, 10, 100, stopped)
    assert time.monotonic() - begun < 5

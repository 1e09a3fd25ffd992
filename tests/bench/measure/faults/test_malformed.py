"""Malformed requests follow from their seed; each result is returned, and the pace is kept."""

from __future__ import annotations

import collections
import re
import time

import pytest

from bench.measure.faults.malformed import CHOICES, CLOSED, KINDS, SILENT, UNOPENED, Malformed, requests, send_all
from bench.serve.machine.http import Target
from bench.serve.machine.ports import free_port
from tests.bench.measure.faults.slow_server import slow_server

NETLOC = "127.0.0.1:8000"
HOST = b"Host: 127.0.0.1:8000\r\n"


def test_the_same_seed_makes_the_same_requests():
    one, same, other = (list(requests(seed, 500, NETLOC)) for seed in (7, 7, 8))
    assert one == same
    assert one != other


def test_every_kind_is_among_them_about_as_often():
    kinds = collections.Counter(request.kind for request in requests(1, 2_000, NETLOC))
    assert len(kinds) == len(KINDS)
    assert min(kinds.values()) > 2_000 / len(KINDS) / 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_many_forms(kind):
    assert len({request.data for request in requests(3, 2_000, NETLOC) if request.kind == kind}) >= 4


def test_every_word_is_filled_in():
    words = rb"<(?:%s|form|host|length|noise|cut)>" % b"|".join(CHOICES)
    assert [request for request in requests(1, 2_000, NETLOC) if re.search(words, request.data)] == []


def test_a_pair_has_two_lengths_and_another_request_behind_it():
    pairs = [request for request in requests(4, 1_000, NETLOC) if request.kind == "smuggling pair"]
    for pair in pairs:
        head, _, rest = pair.data.partition(b"\r\n\r\n")
        assert b"Content-Length: " in head and b"ransfer" in head and pair.waits
        assert rest.startswith(b"0\r\n\r\nGET /hidden/")
        assert rest.endswith(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")


def test_what_is_cut_off_says_so():
    unfinished = [request for request in requests(5, 3_000, NETLOC) if request.data.endswith(b"\r\n3\r\na=1\r\n")]
    assert unfinished and all(request.waits for request in unfinished)


def sent(target: Target, *words: str, per_second: float = 1000, limit_s: float = 10):
    requests = [Malformed(word, f"GET /{word} x\r\n\r\n".encode(), word == "end") for word in words]
    return send_all(target, iter(requests), per_second, limit_s)


@pytest.mark.servers
def test_what_each_request_gets_is_printed_beside_its_kind():
    words = ("400", "501", "502", "end", "close", "garbage", "wait")
    with slow_server() as target:
        got = dict(sent(target, *words))
    assert got == dict(zip(words, (400, 501, 502, 200, CLOSED, SILENT, SILENT), strict=True))


@pytest.mark.servers
def test_a_server_that_is_gone_opens_no_connection():
    assert sent(Target("http", "127.0.0.1", free_port()), "400") == [("400", UNOPENED)]


@pytest.mark.servers
def test_the_pace_and_the_time_are_bounds():
    with slow_server() as target:
        begun = time.monotonic()
        assert len(sent(target, *["400"] * 10, per_second=20)) == 10
        assert time.monotonic() - begun >= 0.45
        assert 1 <= len(sent(target, *["400"] * 1000, per_second=10, limit_s=0.2)) <= 3


@pytest.mark.servers
def test_a_signal_stops_it_at_once():
    def stopped():
        raise KeyboardInterrupt

    requests = (Malformed("400", b"GET /400 x\r\n\r\n") for _ in range(1000))
    begun = time.monotonic()
    with slow_server() as target, pytest.raises(KeyboardInterrupt):
        send_all(target, requests, 10, 100, stopped)
    assert time.monotonic() - begun < 5

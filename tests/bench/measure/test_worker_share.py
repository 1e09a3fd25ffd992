"""How requests spread over workers, asked for as the load is made."""

from __future__ import annotations

import json
import socket

import pytest

from bench.measure.worker_share import EACH, requests_per_worker
from tests.bench.measure.numbered_site import site


def by_connection(handler):
    body = json.dumps({"process_id": handler.number % 2}).encode()
    return body, {"Content-Length": str(len(body))}


def test_keep_alive_connections_stick_to_a_worker_and_are_counted():
    with site(by_connection) as target:
        assert requests_per_worker(target.url, 4, budget_s=20) == {"1": 2 * EACH, "0": 2 * EACH}
        assert target.server.connections == 4


def test_without_keep_alive_each_request_has_a_connection():
    with site(by_connection) as target:
        assert sum(requests_per_worker(target.url, 2, keep_alive=False, budget_s=20).values()) == 2 * EACH
        assert target.server.connections == 2 * EACH


@pytest.mark.parametrize("ending", ["chunked", "end of the connection"])
def test_bodies_without_a_length_are_understood(ending):
    def answer(handler):
        body = b'{"process_id": 7}'
        if ending == "chunked":
            return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), {"Transfer-Encoding": "chunked"}
        handler.close_connection = True
        return body, {"Connection": "close"}

    with site(answer) as target:
        assert requests_per_worker(target.url, 1, budget_s=20) == {"7": EACH}


@pytest.mark.parametrize("body", [b"<p>a page</p>", b"[]", b"{}"])
def test_a_site_that_does_not_tell_is_not_measured(body):
    with site(lambda handler: (body, {"Content-Length": str(len(body))})) as target:
        assert requests_per_worker(target.url, 3) is None


def test_a_site_that_is_gone_or_hangs_is_not_measured():
    assert requests_per_worker("http://127.0.0.1:9", 3) is None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert requests_per_worker(f"http://127.0.0.1:{listener.getsockname()[1]}", 3, budget_s=0.2) is None

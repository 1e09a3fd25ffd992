"""What a load leaves behind, how it spreads over workers, and how many queries a request takes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace

import pytest

from bench.host import processes
from bench.host.processes import Usage
from bench.measure import queries, resource_usage
from bench.measure.worker_share import EACH, spread
from benchmarks import observer

ME = {"server": os.getpid()}


# ------------------------------------------------------------------------------------------ connections


def test_a_connection_that_only_the_client_has_closed_is_counted():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with server:
            assert resource_usage.close_wait(ME) == {"server": 0}
            client.close()
            assert resource_usage.until(lambda: resource_usage.close_wait(ME) == {"server": 1}, 5)
            other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            assert resource_usage.close_wait({"other": other.pid}) == {"other": 0}
            other.communicate(b"\n")
        assert resource_usage.until(lambda: resource_usage.close_wait(ME) == {"server": 0}, 5)


def test_connections_about_to_be_closed_are_waited_for(monkeypatch):
    found = iter([{"server": 3}, {"server": 1}, {"server": 0}, {"server": 9}])
    monkeypatch.setattr(resource_usage, "close_wait", lambda pids: next(found))
    assert resource_usage.settled_close_wait(ME) == {"server": 0}


def test_a_server_that_does_not_come_back_is_given_up_in_time():
    began = time.monotonic()
    assert resource_usage.until(lambda: False, 0.2) is False
    assert 0.2 <= time.monotonic() - began < 10


def test_a_database_that_ends_and_begins_processes_replaces_no_worker(monkeypatch):
    usage = {"app": Usage((), None, 1.0, 2, replaced=1), "database": Usage((), None, 1.0, 9, replaced=7)}
    monkeypatch.setattr(resource_usage.Sampler, "stop", lambda self: usage)
    running = SimpleNamespace(
        pids={"app": os.getpid(), "database": os.getpid()},
        servers=("app",),
        memory_idle_bytes={},
        oom_kills=lambda: None,
        answers=lambda: True,
    )
    watching = resource_usage.Observer(running)
    watching.start()
    watching.stop()
    assert watching.costs.aftermath["restarts"] == 1
    watching._sampler._stop.set()
    watching._sampler._thread.join()


# ------------------------------------------------------------------------------------------ spread


@contextmanager
def site(answer):
    """A server whose `answer(handler)` gives body and headers; each connection has a number."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def setup(self):
            super().setup()
            self.server.connections += 1
            self.number = self.server.connections

        def do_GET(self):
            self.server.asked[self.path] += 1
            body, headers = answer(self)
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.connections, server.asked = 0, Counter()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", server=server)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def by_connection(handler):
    body = json.dumps({"process_id": handler.number % 2}).encode()
    return body, {"Content-Length": str(len(body))}


def test_kept_connections_stick_and_their_requests_are_counted():
    with site(by_connection) as target:
        assert spread(target.url, 4, budget_s=20) == {"1": 2 * EACH, "0": 2 * EACH}
        assert target.server.connections == 4


def test_without_keep_alive_each_request_has_a_connection():
    with site(by_connection) as target:
        assert sum(spread(target.url, 2, keep_alive=False, budget_s=20).values()) == 2 * EACH
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
        assert spread(target.url, 1, budget_s=20) == {"7": EACH}


@pytest.mark.parametrize("body", [b"<p>a page</p>", b"[]", b"{}"])
def test_a_site_that_does_not_tell_is_not_measured(body):
    with site(lambda handler: (body, {"Content-Length": str(len(body))})) as target:
        assert spread(target.url, 3) is None


def test_a_site_that_is_gone_or_hangs_is_not_measured():
    assert spread("http://127.0.0.1:9", 3) is None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert spread(f"http://127.0.0.1:{listener.getsockname()[1]}", 3, budget_s=0.2) is None


# ------------------------------------------------------------------------------------------ queries


def test_queries_are_weighed_by_the_workload_and_none_where_a_cache_answers(monkeypatch):
    def answer(handler):
        rendered = "same" if handler.path == "/kept/" else str(handler.number)
        headers = {} if handler.path == "/file/" else {"X-Render-Id": rendered}
        return b"x", {"Content-Length": "1", "Content-Type": "text/html; charset=utf-8", **headers}

    counted = {page: {"cold": 10, "warm": 4} for page in ("/", "/kept/", "/file/")}
    monkeypatch.setattr(queries, "count", lambda env, pages: counted)
    counter = queries.QueryCounter()
    addresses = ("/", "/", "/kept/", "/file/", "/static/a.css")
    with site(answer) as target:
        running = SimpleNamespace(url=target.url, env={})
        assert counter.per_request(running, "one", "none", addresses) == 8 / 5
        asked = target.server.asked.total()
        assert counter.per_request(running, "one", "none", addresses) == 8 / 5
        assert target.server.asked.total() == asked, "what is known is not asked again"
        assert counter.per_request(running, "one", "none", addresses, "cold") == 40 / 5
        assert counter.per_request(running, "one", "none", ("/static/a.css",)) == 0


def test_what_cannot_be_told_is_not_measured(monkeypatch):
    running = SimpleNamespace(url="http://127.0.0.1:9", env={"DATABASE_URL": "sqlite:////nowhere/at/all"})
    counter = queries.QueryCounter()
    monkeypatch.setattr(queries, "count", lambda env, pages: {"/": {"cold": 1, "warm": 1}})
    assert counter.per_request(running, "one", "none", ("/",)) is None, "nobody answers"


# ------------------------------------------------------------------------------------------ the observer's own price


def test_the_observers_benchmark_says_what_it_found():
    measured = observer.Measured(shares=[0.004, 0.006, 0.005])
    for number, disturbance in enumerate((0.9, 1.0, 1.1), 1):
        measured.rates[False][number] = 100 * disturbance
        measured.rates[True][number] = 90 * disturbance
        measured.prices[False][number] = measured.prices[True][number] = 5.0
    assert observer.as_text(measured).splitlines() == [
        "requests/s: observed 90.00, not observed 100.00 (medians of 3 rounds); "
        "ratio 0.9000, 95 % interval 0.9000 to 0.9000",
        "CPU seconds per 1,000 requests: observed 5.00, not observed 5.00 (medians of 3 rounds); "
        "ratio 1.0000, 95 % interval 1.0000 to 1.0000",
        "the observer took 0.50 % of one core (largest 0.60 %)",
    ]
    assert measured.compared(measured.rates).verdict == "slower"


def test_a_tree_has_used_its_processor_time():
    before = processes.cpu_seconds(os.getpid())
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    assert 0.05 < processes.cpu_seconds(os.getpid()) - before < 10

"""Slow clients hold threads, until others wait; malformed requests are divided among the rounds."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench.measure.faults import clients, fault_threads
from bench.measure.faults.clients import BODIES, HEADERS, READERS
from bench.measure.faults.malformed import UNOPENED
from bench.verify.wire import Connection
from tests.bench.measure.faults.scenes import run, scene
from tests.bench.measure.faults.slow_server import THREADS, slow_server

# Each needs a second or more of requests.
pytestmark = pytest.mark.servers


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Other visitors send requests for a shorter time, and wait less."""
    monkeypatch.setattr(clients, "OTHERS_S", 0.3)
    monkeypatch.setattr(clients, "LIMIT_S", 0.2)


@pytest.mark.parametrize(
    "how", [HEADERS, BODIES, replace(READERS, sends="GET /large HTTP/1.1\r\n\r\n")], ids=lambda how: how.name
)
def test_as_many_as_there_are_threads_hold_up_all_others(how):
    with slow_server() as target:
        with ExitStack() as slow:
            for _ in range(THREADS):
                assert clients.others_wait(target, ("/",)) == ""
                client = slow.enter_context(Connection(target, receive_buffer=how.buffer))
                client.send(how.sends.encode())
            time.sleep(clients.SETTLED_S)
            assert clients.others_wait(target, ("/",)) == "GET /: no complete response within 0.2 s"
        assert clients.others_wait(target, ("/",)) == ""


@pytest.mark.parametrize(("steps", "stops_at"), [((1, 2), None), ((2, THREADS, 20), THREADS)])
def test_slow_clients_come_until_they_stop_it(monkeypatch, steps, stops_at):
    monkeypatch.setattr(clients, "STEPS", steps)
    with slow_server() as target:
        context = scene(url=target.origin)
        run("slow-headers", context)
        assert clients.others_wait(target, ("/",)) == "", "all of them are gone"
    assert context.figures == {"stops_at": stops_at}
    message = f"{stops_at} unfinished header blocks stop it: GET "
    assert [words.startswith(message) for words in context.wrong] == [True] * bool(stops_at)


# Takes bodies, and keeps them or not until their end; then it responds, or not.
TAKER = """
import socketserver, sys


class Taker(socketserver.StreamRequestHandler):
    def handle(self):
        size, kept = 0, []
        while (line := self.rfile.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        while size:
            piece = self.rfile.read1(min(size, 65536))
            size -= len(piece)
            if "keeps" in sys.argv:
                kept.append(piece)
        if "loses" not in sys.argv:
            self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")


class Server(socketserver.ThreadingTCPServer):
    request_queue_size = 100


with Server(("127.0.0.1", 0), Taker) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""


@pytest.mark.parametrize(
    ("how", "wrong"),
    [
        ("streams", None),
        ("keeps", r"20 bodies of 9,000,000 bytes: the memory of front grew by \d+(\.\d)? MB, 60 MB are allowed"),
        ("loses", "4 of 4 uploads were lost: 4x .*closed.*"),
    ],
)
def test_large_bodies_must_not_fill_the_memory_of_a_server_nor_get_lost(how, wrong):
    with subprocess.Popen([sys.executable, "-c", TAKER, how], stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int(server.stdout.readline())
            context = scene(url=f"http://127.0.0.1:{port}", pids={"front": server.pid}, servers=("front",))
            context.supervisor.wait = lambda until, seconds: time.sleep(seconds)
            clients._large_bodies(context)
        finally:
            server.kill()
    assert context.figures["memory_growth_mb"] is not None
    assert len(context.wrong) == (wrong is not None)
    assert wrong is None or re.fullmatch(wrong, context.wrong[0])


def test_a_signal_ends_what_some_clients_have_begun(monkeypatch):
    """The third of 20 uploads is interrupted; nobody waits for the first two."""

    class Interrupted(ThreadPoolExecutor):
        begun = itertools.count(1)

        def submit(self, *arguments):
            if next(self.begun) == 3:
                raise KeyboardInterrupt
            return super().submit(*arguments)

    monkeypatch.setattr(fault_threads, "ThreadPoolExecutor", Interrupted)
    monkeypatch.setattr(clients, "_upload", lambda target, finishes, over: str(over.wait(60)))
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        clients._large_bodies(scene(pids={}, servers=()))
    assert time.monotonic() - begun < 60


def test_of_readers_the_memory_of_the_servers_in_front_counts():
    context = scene(servers=("app", "app-2", "application", "front"))
    assert clients.in_front(context) == ["application", "front"]


def test_malformed_requests_are_sent_and_counted(monkeypatch):
    monkeypatch.setattr(clients, "MALFORMED", 20)
    sizes = iter([100, 700])
    with slow_server() as target:
        context = scene(url=target.origin, log_bytes=lambda: next(sizes), chain=SimpleNamespace(servers=[]))
        run("malformed", context)
    assert (context.figures["malformed_requests"], context.figures["log_bytes_per_request"]) == (20, 30)
    assert context.wrong == []


def test_the_rounds_share_the_malformed_requests_and_failures_are_reported(monkeypatch):
    monkeypatch.setattr(clients, "MALFORMED", 20)
    shares = []

    def send_all(target, share, *_):
        shares.append(list(share))
        return [("chunks", 502), ("chunks", 400), ("target", 501), ("target", UNOPENED)]

    monkeypatch.setattr(clients, "send_all", send_all)
    for number in (1, 2, 3):
        context = scene(url="http://127.0.0.1:1", log_bytes=lambda: 0, chain=SimpleNamespace(servers=[]))
        context.round, context.rounds = number, 3
        run("malformed", context)
    every = list(clients.requests(clients.SEED, 20, "127.0.0.1:1"))
    assert shares == [every[0::3], every[1::3], every[2::3]]
    assert len(context.wrong) == 2 and context.figures["server_errors"] == 1


@pytest.mark.parametrize(
    ("word", "grown_mb", "wrong"),
    [("431", 1, 0), ("close", 1, 0), ("200", 1, 2), ("wait", 1, 2), ("502", 1, 2), ("431", 100, 2)],
)
def test_copies_of_a_header_are_refused_and_leave_the_servers_as_they_were(monkeypatch, word, grown_mb, wrong):
    sizes = itertools.count(100, grown_mb)
    monkeypatch.setattr(clients, "_known_memory_mb", lambda scene: next(sizes))
    monkeypatch.setattr(clients, "OTHERS_PAGE", f"/{word}")
    monkeypatch.setattr(clients, "FLOOD_S", 1.0)
    with slow_server() as target:
        context = scene(url=target.origin, chain=SimpleNamespace(servers=[]))
        run("copied-headers", context)
    assert len(context.wrong) == wrong and context.figures["memory_growth_mb"] >= grown_mb


def test_a_body_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(clients, "CHUNKS", 3)
    monkeypatch.setattr(clients, "FLOOD_S", 0.5)
    with slow_server() as target:
        context = scene(url=target.origin, chain=SimpleNamespace(servers=[]), pids={})
        run("endless-body", context)
    # The server reads on, and never responds.
    assert context.wrong == ["200 MB in chunks: no response in time"]

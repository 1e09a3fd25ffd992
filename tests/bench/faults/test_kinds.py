"""What the faults of the groups hung, starved and abused do, and what they note."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from bench.faults.abuser import Answers
from bench.faults.kinds import abused, hung, starved
from bench.faults.scene import CannotFault
from bench.machine import http
from bench.machine.small_disk import CannotMount
from bench.verify import slow
from tests.bench.verify.few_threads import THREADS, few_threads

# Each needs a second or more of requests or of other programs.
pytestmark = pytest.mark.servers


def scene(**running) -> SimpleNamespace:
    """What the faults use of a scene; time does not pass in it."""
    made = SimpleNamespace(running=SimpleNamespace(**running), rate=200, figures={}, wrong=[], log=[])
    made.round, made.rounds = 1, 1
    made.site = SimpleNamespace(url={"home": "/", "login": "/login/", "health": "/health"}.__getitem__, has_rows=True)
    made.supervisor = SimpleNamespace(step=lambda: None)
    made.strike = lambda: made.log.append("strike")
    made.end = lambda: made.log.append("end")
    made.wait = lambda seconds, until=lambda: False: made.log.append("wait")
    return made


def run(fault, scene) -> None:
    """All of a fault, with its pauses for visitors."""
    for _ in fault.run(scene):
        scene.log.append("pause")


def test_every_instance_of_a_server_hangs_and_goes_on():
    made = scene(processes=[SimpleNamespace(name=name) for name in ("cheroot-1", "cheroot-2", "nginx")])
    made.running.case = SimpleNamespace(servers=[SimpleNamespace(name="cheroot"), SimpleNamespace(name="nginx")])

    @contextmanager
    def hangs(name):
        made.log.append(f"{name} hangs")
        yield
        made.log.append(f"{name} goes on")

    made.running.hung = hangs
    run(hung.application_server_hangs, made)
    assert made.log == [
        *("pause", "strike", "cheroot-1 hangs", "cheroot-2 hangs", "wait"),
        *("cheroot-2 goes on", "cheroot-1 goes on", "end"),
    ]


def test_a_health_page_that_waits_for_the_database_is_wrong(monkeypatch):
    monkeypatch.setattr(http, "status", lambda *_: None)
    monkeypatch.setattr(hung.time, "monotonic", iter([0.0, 1.0, 6.5, 6.5]).__next__)
    made = scene(url="http://x", services=SimpleNamespace(database="postgresql"), hung=lambda name: nullcontext())
    run(hung.database_hangs, made)
    assert made.figures == {"health_page_s": 5.5}
    assert made.wrong == ["GET /health meanwhile: no answer after 5.5 s"]


def test_a_request_that_fails_as_connections_end_is_of_the_fault(monkeypatch):
    @contextmanager
    def held(running):
        made.log.append("connections end")
        yield "97 connections are held"

    made = scene(url="http://x", services=SimpleNamespace(database="postgresql"))
    monkeypatch.setattr(hung.hold, "connections", held)
    monkeypatch.setattr(http, "status", lambda *_: 200)
    run(hung.database_connections, made)
    assert made.log == ["pause", "strike", "connections end", "wait", "wait", "end"]


@pytest.mark.parametrize(
    ("fault", "running", "why"),
    [
        (hung.database_hangs, {"services": SimpleNamespace(database=None)}, "give --database postgresql"),
        (hung.database_connections, {"services": SimpleNamespace(database=None)}, "only a private database server"),
        (hung.write_lock, {"env": {"DATABASE_URL": "postgresql://x"}}, "only SQLite has one lock"),
        (starved.memory, {"group": None}, "give --size bronze"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_cannot_be_made_says_what_it_needs(fault, running, why):
    with pytest.raises(CannotFault, match=why):
        run(fault, scene(**running))


@pytest.mark.parametrize(("kills", "wrong"), [([3, 5], []), ([3, 3], ["no process was killed at the limit of memory"])])
def test_kills_for_want_of_memory_are_counted(monkeypatch, kills, wrong):
    asked = []
    monkeypatch.setattr(http, "status", lambda url, path, timeout_s: asked.append(path))
    group = SimpleNamespace(memory_limit=lambda: 268_435_456)
    made = scene(url="http://x", group=group, oom_kills=iter(kills).__next__)
    run(starved.memory, made)
    assert asked == ["/__probe__/memory/268/"] * 2
    assert (made.figures["oom_kills"], made.wrong) == (kills[1] - kills[0], wrong)


def test_a_disk_is_full_and_has_room_again(tmp_path):
    made = scene(logs=tmp_path)
    disk = SimpleNamespace(fill=lambda: made.log.append("full"), free=lambda: made.log.append("room"))
    made.running.on_small_disk = lambda folder: nullcontext(disk)
    run(starved.full_logs, made)
    assert made.log == ["pause", "strike", "full", "wait", "room", "end", "pause"]


def test_a_disk_that_cannot_be_mounted_is_said(tmp_path):
    @contextmanager
    def refused(folder):
        raise CannotMount("only root can mount a small disk to fill")
        yield

    with pytest.raises(CannotFault, match="only root"):
        run(starved.full_logs, scene(logs=tmp_path, on_small_disk=refused))


def test_a_store_without_files_cannot_be_full(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "status", lambda *_: 200)
    made = scene(url="http://x", store=tmp_path, on_small_disk=lambda folder: nullcontext())
    with pytest.raises(CannotFault, match="no server here stores pages in files"):
        run(starved.full_store, made)


@pytest.mark.parametrize(("steps", "stops_at"), [((1, 2), None), ((2, THREADS, 20), THREADS)])
def test_slow_clients_come_until_they_stop_it(monkeypatch, steps, stops_at):
    monkeypatch.setattr(slow, "LIMIT_S", 0.2)
    monkeypatch.setattr(abused, "STEPS", steps)
    with few_threads() as target:
        made = scene(url=target.origin)
        run(abused.slow_bodies, made)
        assert slow.held_up(target, ["/"]) is None, "all of them are gone"
    assert made.figures == {"stops_at": stops_at}
    assert (
        made.wrong
        == [f"{stops_at} slow bodies stop it: GET {abused.ASKED}: no complete answer within 0.2 s"][: bool(stops_at)]
    )


def test_malformed_requests_are_sent_and_counted(monkeypatch):
    monkeypatch.setattr(abused, "MALFORMED", 20)
    sizes = iter([100, 700])
    with few_threads() as target:
        made = scene(url=target.origin, log_bytes=lambda: next(sizes), chain=SimpleNamespace(servers=[]))
        run(abused.malformed, made)
    assert made.figures["malformed_requests"] == 20
    assert made.figures["log_bytes_per_request"] == 30
    assert made.wrong == []


def test_the_rounds_share_the_malformed_requests(monkeypatch):
    monkeypatch.setattr(abused, "MALFORMED", 20)
    shares = []
    monkeypatch.setattr(abused, "send_all", lambda target, share, *_: shares.append(list(share)) or Answers())
    for number in (1, 2, 3):
        made = scene(url="http://127.0.0.1:1", log_bytes=lambda: 0, chain=SimpleNamespace(servers=[]))
        made.round, made.rounds = number, 3
        run(abused.malformed, made)
    every = list(abused.requests(abused.SEED, 20, "127.0.0.1:1"))
    assert shares == [every[0::3], every[1::3], every[2::3]]


def test_failures_of_the_servers_are_said():
    made = scene()
    answers = Answers(Counter({502: 3, 400: 7}), server_errors=Counter({"many headers": 2, "chunks": 1}))
    abused._note(made, answers, 4, 1000)
    assert made.figures["server_errors"] == 3 and made.figures["workers_ended"] == 4
    assert made.wrong == [
        "3 malformed requests got a 5xx: 2 for many headers, 1 for chunks",
        "4 worker processes ended",
    ]

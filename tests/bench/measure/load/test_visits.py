"""The log of an open loop: each visitor's request, connection, and mark of the page."""

from __future__ import annotations

import threading

import pytest

from bench import programs
from bench.measure import load
from bench.measure.load import LoadError, LoadJob
from bench.measure.load.visits import Visit, visits
from bench.measure.run.load_process import run
from tests.bench.measure.load.load_target import target
from tests.waiting import until

TOOL, PROGRAM = load.choose([("/",)], programs.find, mode="open")
CLOSE = "Connection: close\r\n"


@pytest.fixture
def site():
    with target() as running:
        running.body = b"<p>version=7 account=me</p>"
        yield running


def logged(url, folder, paths, headers=(), enough=None, seconds=1, rate=20, **how):
    folder.mkdir()
    job = LoadJob(url, paths, 100, seconds, rate=rate, headers=headers, mark=r"version=(\d+) account=(\w+)", **how)
    return visits(run(TOOL.command(str(PROGRAM), job), 100, folder / "load", 30, enough=enough)[0])


@pytest.mark.servers
def test_every_request_is_logged_with_the_mark_of_its_page(site, tmp_path):
    # A low rate, so that each request is over before the next is due: otherwise a new connection would open.
    visits = logged(site.url, tmp_path / "load", ("/1", "/2"), ("", CLOSE), seconds=3, rate=4)
    assert [visit.page for visit in visits] == [0, 1] * 6
    assert {visit.mark for visit in visits} == {("7", "me")}
    assert {visit.size for visit in visits} == {len(site.body)}
    # Every second request closes its connection, so that the next one opens another.
    assert [visit.keep_alive for visit in visits] == [False, True] * 6
    assert all(visit.is_good and visit.due <= visit.left <= visit.end for visit in visits)
    assert [visit.due - visits[0].due for visit in visits] == pytest.approx(
        [number / 4 for number in range(12)], abs=1e-3
    )


@pytest.mark.servers
def test_failures_are_logged_by_their_kind(site, tmp_path):
    visits = logged(site.url, tmp_path / "load", ("/drop", "/503", "/hang"), timeout_s=1)
    kinds = {visit.page: (visit.failure or visit.status) for visit in visits}
    assert kinds == {0: "read", 1: 503, 2: "timeout"}
    assert not any(visit.is_good for visit in visits)
    refused = logged("http://127.0.0.1:1", tmp_path / "refused", ("/",))
    assert {(visit.failure, visit.keep_alive) for visit in refused} == {("connect", False)}


@pytest.mark.servers
def test_the_visits_end_when_it_is_enough(site, tmp_path):
    enough = threading.Event()

    def after_some() -> None:
        until(lambda: len(site.order) > 5, "some requests")
        enough.set()

    waiting = threading.Thread(target=after_some)
    waiting.start()
    visits = logged(site.url, tmp_path / "load", ("/",), enough=enough, seconds=60)
    waiting.join()
    # 1,200 would leave in all of its time.
    assert 5 < len(visits) < 600
    assert all(visit.is_good for visit in visits)


def test_output_without_a_log_is_refused():
    with pytest.raises(LoadError, match="no log of its visits"):
        visits('{"answers": 3}\n')
    assert visits(
        '{"visits": [[2.0, 2.0, 2.1, 0, true, 0, 200, "", 5, ["a"]], [1.0, 1.0, 1.1, 1, false, 1, 0, "read", 0, []]]}\n'
    ) == [
        Visit(1.0, 1.0, 1.1, 1, False, 1, 0, "read", 0, ()),
        Visit(2.0, 2.0, 2.1, 0, True, 0, 200, "", 5, ("a",)),
    ]

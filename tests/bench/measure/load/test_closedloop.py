"""The closed loop: as many requests in progress as connections, by the server's count, within the time."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from bench import programs
from bench.measure import load
from bench.measure.load import LoadJob
from bench.measure.load.openloop.counts import VARYING_BYTES
from bench.measure.load.openloop.loop import ClosedLoop
from bench.measure.run.load_process import run
from tests.bench.measure.load.load_target import BODY, SLOW_S, target
from tests.waiting import until

pytestmark = pytest.mark.servers
# A tool that never waits would keep both cores busy.
PAUSE_S = 0.01
TOOL, PROGRAM = load.choose([("/",)], programs.find, wanted="closedloop")


def measured(url, folder, paths=("/",), **how):
    folder.mkdir()
    job = LoadJob(url, paths, **{"connections": 4, "seconds": 1, **how})
    command = TOOL.command(str(PROGRAM), job)
    return TOOL.parse(*run(command, job.connections, folder / "load", job.seconds + 30))


@pytest.fixture
def site():
    with target(PAUSE_S) as running:
        yield running


def test_processes_share_the_connections_and_count_what_the_server_counts(site, tmp_path):
    figures = measured(site.url, tmp_path / "load", ("/1", "/2"), connections=5, threads=2)
    assert (figures.failure(), figures.duration_s, site.connections) == (None, 1, 5)
    # A request of each connection may be under way at the end: served and not counted.
    assert 0 <= len(site.order) - figures.requests_total <= 5
    assert figures.requests_total == sum(figures.thirds)
    assert figures.statuses == {"200": figures.requests_total}
    assert figures.bytes_per_second > len(BODY) * figures.requests_per_second


def test_processes_begin_at_different_places_of_the_list(site, tmp_path):
    # At 10 ms a request, no process comes from its own beginning to the other's within the second.
    measured(site.url, tmp_path / "load", [f"/{number}" for number in range(1000)], connections=2, threads=2)
    assert {"/0", "/500"} <= set(site.order)


def test_there_are_no_more_processes_than_connections(site, tmp_path):
    measured(site.url, tmp_path / "load", connections=3, threads=8)
    assert site.connections == 3


def test_a_connection_requests_the_addresses_in_turn_and_responses_are_counted_by_status(site, tmp_path):
    paths = ("/", "/503", "/302", "/slow")
    figures = measured(site.url, tmp_path / "load", paths, connections=1, seconds=2)
    assert figures.requests_total > 4
    assert site.order == [paths[i % 4] for i in range(len(site.order))]
    assert set(figures.statuses) == {"200", "503", "302"}
    assert figures.responses_not_2xx == figures.statuses["503"] + figures.statuses["302"]
    assert figures.failure() == f"{figures.responses_not_2xx} responses with a status outside 200 to 299"
    assert figures.latency_max_ms >= SLOW_S * 1000


def test_a_server_that_closes_its_connections_gets_one_for_each_request(site, tmp_path):
    figures = measured(site.url, tmp_path / "load", ("/close",))
    assert figures.failure() is None
    assert 0 <= site.connections - figures.requests_total <= 4


def test_broken_connections_are_counted_and_opened_again(site, tmp_path):
    figures = measured(site.url, tmp_path / "load", ("/drop",))
    assert figures.requests_total == 0
    # Again and again, but not as fast as it can.
    assert 4 < figures.errors_read <= 4 * 11
    assert 0 <= site.requests["/drop"] - figures.errors_read <= 4


@pytest.mark.parametrize(("change", "share"), [(VARYING_BYTES, 0), (VARYING_BYTES + 1, 1)])
def test_responses_of_another_length_are_a_problem(site, change, share):
    """The first with one body, the others with a longer one."""
    first = len(site.body)
    job = LoadJob(site.url, ("/",), connections=1, seconds=1)
    loop = ClosedLoop(job, 0, time.monotonic())
    free = loop._free

    def changes(connection, now):
        site.body = b"a" * (first + change)
        free(connection, now)

    loop._free = changes
    outcome = loop.run()
    assert outcome.answers > 1
    assert outcome.resized == share * (outcome.answers - 1)


def test_an_interrupted_load_leaves_no_process_behind(site, tmp_path):
    """A warm-up is interrupted: none of its processes may run on beside the measured load."""
    job = LoadJob(site.url, ("/",), connections=4, seconds=20, threads=2)
    # A busy machine needs longer until the load has begun.
    for interrupt_after_s in (1.5, 5, 15):
        run(TOOL.command(str(PROGRAM), job), 4, tmp_path / "warmup", 60, interrupt_after_s=interrupt_after_s)
        if site.order:
            break
    assert site.order
    assert [it.pid for it in psutil.process_iter(["cwd"]) if it.info["cwd"] == str(tmp_path)] == []


def test_killed_it_leaves_no_process_behind(site, tmp_path):
    job = replace(LoadJob(site.url, ("/",), connections=4, seconds=20), threads=2)
    command = TOOL.command(sys.executable, job)
    for name, content in command.files.items():
        (tmp_path / name).write_text(content)
    process = subprocess.Popen(command.argv, cwd=tmp_path, env=command.env, stderr=subprocess.DEVNULL)
    until(lambda: site.order, "the first request")
    loaders = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    assert loaders
    assert psutil.wait_procs(loaders, timeout=60)[1] == []

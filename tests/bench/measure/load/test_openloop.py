"""The open loop: requests leave on schedule, a stall shows in the latency, unsent requests are counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from bench import programs
from bench.measure import load
from bench.measure.load import LoadJob
from bench.measure.load.engine import OPEN_LOOP
from bench.measure.run.load_process import run
from bench.measure.stats import histogram
from bench.serve.machine import ports
from bench.serve.machine.supervise import Address
from tests.bench.measure.load.load_target import target
from tests.waiting import until

pytestmark = pytest.mark.servers
TOOL, PROGRAM = load.choose([("/",)], programs.find, mode="open")


def measured(url, folder, paths=("/",), **how):
    folder.mkdir()
    job = LoadJob(url, paths, **{"connections": 1000, "seconds": 1, "rate": 100, **how})
    command = TOOL.command(str(PROGRAM), job)
    return TOOL.parse(*run(command, job.connections, folder / "load", job.seconds + job.timeout_s + 30))


@pytest.fixture(scope="module")
def site():
    with target() as running:
        yield running


@pytest.fixture
def frozen_server():
    """A site in a separate process, and a function to freeze it."""
    port = ports.free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.measure.load.load_target", str(port)])
    try:
        until(lambda: Address("127.0.0.1", port).accepts(), "the site listens")
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.kill()
        process.wait()


def test_requests_leave_at_their_times(site, tmp_path):
    figures = measured(site.url, tmp_path / "times", paths=("/", "/"), seconds=1, rate=4, times=(0.0, 0.05, 0.1, 0.7))
    assert (figures.requests_total, figures.failure()) == (4, None)
    assert figures.thirds == (3, 0, 1)


def test_the_freeze_test(frozen_server, tmp_path):
    """A stall of 1 s in 4 s must show in the 99th percentile."""
    url, pid = frozen_server

    def freeze():
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(pid, signal.SIGCONT)

    timer = threading.Timer(1.5, freeze)
    timer.start()
    try:
        figures = measured(url, tmp_path / "load", rate=300, seconds=4)
    finally:
        timer.join()
    assert figures.failure() is None
    # All due requests got a response, including those during the freeze.
    assert (figures.requests_total, figures.requests_dropped) == (1200, 0)
    # A quarter of the requests were due in the freeze and waited up to a second for its end: 1 in 100 nearly all of it.
    assert figures.latency_p99_ms > 850
    assert figures.latency_max_ms >= figures.latency_p99_ms * 0.99


@pytest.mark.parametrize("processes", [1, 2])
def test_every_request_is_sent_once_and_the_addresses_in_turn(site, tmp_path, processes):
    paths = [f"/{processes}/{number}" for number in (1, 2, 3)]
    figures = measured(site.url, tmp_path / "load", tuple(paths), rate=150, threads=processes)
    assert figures.requests_total == 150
    assert [site.requests[path] for path in paths] == [50, 50, 50]
    assert figures.statuses == {"200": 150}
    assert sum(figures.thirds) <= 150
    assert histogram.merged([figures.histogram]).total_count == 150


def test_the_load_of_several_processes_lasts_its_time(site, tmp_path):
    """The last request leaves before the end: the pause afterwards belongs to the load, or its rate would be too
    high."""
    figures = measured(site.url, tmp_path / "load", rate=10, threads=2)
    assert (figures.requests_total, figures.duration_s >= 1) == (10, True)


def test_requests_that_find_no_connection_count_as_dropped(site, tmp_path):
    figures = measured(site.url, tmp_path / "load", ("/hang",), rate=20, connections=1, timeout_s=1)
    assert figures.requests_dropped > 0
    assert figures.errors_timeout >= 1
    assert figures.requests_total + figures.requests_dropped + figures.errors_timeout == 20


def test_it_prints_its_version():
    assert programs.version((str(PROGRAM), *OPEN_LOOP.version))

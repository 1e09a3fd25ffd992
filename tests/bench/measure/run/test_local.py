"""Costs and remains of a load."""

from __future__ import annotations

import os
import time

import pytest

from bench.measure.run import local
from bench.serve.machine.processes import Usage
from tests.bench.measure.run.fake_sites import fake_case, fake_running


@pytest.fixture
def observer():
    """For a server and a database that do not respond any more."""
    pids = {"app": os.getpid(), "database": os.getpid()}
    return local.Observer(fake_running(fake_case("app", "none"), pids=pids, servers=("app",), is_healthy=lambda: False))


def test_a_server_that_does_not_come_back_is_given_up_in_time(observer, monkeypatch):
    monkeypatch.setattr(local, "COME_BACK_S", 0.2)
    began = time.monotonic()
    observer.record_effects()
    assert observer.condition.came_back is False
    assert 0.2 <= time.monotonic() - began < 10


def test_a_database_that_ends_and_begins_processes_replaces_no_worker(observer, monkeypatch):
    usage = {"app": Usage((), None, 1.0, 2, replaced=1), "database": Usage((), None, 1.0, 9, replaced=7)}
    monkeypatch.setattr(local.Sampler, "stop", lambda self: usage)
    observer.start()
    observer.stop()
    assert observer.condition.restarts == 1
    observer._sampler._stop.set()
    observer._sampler._thread.join()


@pytest.mark.parametrize(
    ("usage", "workers"),
    [
        # A resource tracker beside the four workers does not count.
        ({"server of app": Usage((), None, 9.0, 6, below=(3.0, 2.0, 1.0, 1.0, 0.0))}, (3.0, 2.0, 1.0, 1.0)),
        ({"server of app": Usage((), None, 2.0, 1), "server of app-2": Usage((), None, 3.0, 1)}, (3.0, 2.0)),
        ({"server of app": Usage((), None, 2.0, 1)}, None),
    ],
    ids=["under a master", "instances", "one process"],
)
def test_workers_are_the_processes_of_the_application_server(usage, workers):
    case = fake_case("app", "none")
    assert case.settings["processes"] == 4
    assert local._workers(case, usage) == workers

"""Actions, notes and requirements of each fault."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from bench.errors import BenchError
from bench.measure.faults import crashes, database_outages, deploys, kinds
from bench.measure.faults.fault_context import FaultNotApplicable
from bench.measure.faults.kinds import FAULTS
from bench.serve.catalog.sizes import UNLIMITED
from bench.serve.deployment.database import Database
from bench.serve.machine import http
from bench.serve.machine.small_disk import CannotMount
from tests import clock
from tests.bench.measure.faults.scenes import SITE, run, scene
from tests.bench.measure.faults.slow_server import slow_server


@pytest.fixture(autouse=True)
def commands(monkeypatch):
    """The executed commands of the site."""
    ran = []
    monkeypatch.setattr(deploys.commands, "manage", lambda project, words, *_, **__: ran.extend(words))
    monkeypatch.setattr(deploys.render, "server_files", lambda server, case: {f"{server.name}.conf": None})
    return ran


@pytest.fixture
def context(monkeypatch):
    """A scene with restarts of killed processes."""

    def kill(pid, number):
        context.log.append(f"kill {pid}")
        name = next((name for name, its in context.running.pids.items() if its == pid), "")
        context.supervisor.deaths.append(
            SimpleNamespace(name=name, at_s=context.moments.struck, again_s=context.moments.struck + 1)
        )

    context = scene()
    monkeypatch.setattr(os, "kill", kill)
    clock.change(monkeypatch, database_outages, sleep=lambda seconds: context.log.append(f"sleep {seconds:.0f}"))
    monkeypatch.setattr(deploys.ssl, "get_server_certificate", lambda place: "old")
    monkeypatch.setattr(deploys, "make_certificate", lambda folder: None)
    monkeypatch.setattr(crashes.http, "get", lambda url, path: b'{"process_id": 99}')
    return context


@pytest.mark.parametrize(
    ("name", "done"),
    {
        "configuration": "|, reload",
        "application": "new, |, switch to 2, reload app",
        "cache-after-deploy": "new, |, switch to 2, reload app",
        "broken-application": "new broken, |, switch to 2, reload application, wait, switch to 1, reload application",
        "certificate": "|, reload front",
        "worker": "|, kill 99",
        "application-server": "|, kill 11, wait",
        "front-server": "|, kill 12, wait",
        "database": "|, kill 14, sleep 5, wait, db",
        "application-server-hangs": "|, app-1 hangs, app-2 hangs, wait, app-2 goes on, app-1 goes on",
        "front-server-hangs": "|, front hangs, wait, front goes on",
        "full-logs": "small disk for logs, |, full, wait, room, |, disk",
    }.items(),
)
def test_what_is_done_before_visitors_come_while_they_visit_and_once_they_have_gone(context, name, done):
    assert run(name, context) == done.split(", ")


def test_a_deploy_invalidates_cached_pages(context, commands):
    run("application", context)
    assert context.moments.deployed >= context.moments.struck and commands == ["invalidatepages"]
    context.running.case.caches = "nothing"
    run("application", context)
    assert commands == ["invalidatepages"]


@pytest.mark.parametrize(("status", "wrong"), [("200", []), ("502", ["the slow request: 502"])])
def test_a_slow_request_that_a_deploy_breaks_off_is_wrong(context, monkeypatch, status, wrong):
    paths = []
    monkeypatch.setattr(deploys, "status_of", lambda target, path, limit_s: paths.append(path) or status)
    done = run("deploy-under-slow-requests", context)
    assert [word for word in done if word != "wait"] == ["new", "|", "switch to 2", "reload app"]
    assert (context.wrong, len(paths)) == (wrong, 1) and paths[0].startswith("/__probe__/slow/10000/")


def test_a_broken_version_is_rolled_back_by_restarts_if_nothing_reloads(context):
    context.running.chain.reloads = False
    assert run("broken-application", context).count("restart app") == 2
    assert (context.operator, context.versions.word) == ("roll back, reload", "release-1")


def test_a_certificate_that_is_not_taken_over_is_noticed(context):
    run("certificate", context)
    assert context.wrong == ["front still serves the old certificate"]


@pytest.mark.parametrize(("ended", "message"), [([0, 1, 2], ""), ([0, 0, 0], "no worker was replaced")])
def test_workers_are_recycled_by_the_visitors_requests(monkeypatch, ended, message):
    looks = iter(ended)
    workers = SimpleNamespace(ended=ended[-1], update=lambda: next(looks, ended[-1]))
    monkeypatch.setattr(deploys, "Workers", lambda running: workers)
    monkeypatch.setattr(deploys, "RECYCLED_S", 0.01)
    context = scene()
    with pytest.raises(FaultNotApplicable, match=message) if message else nullcontext():
        run("recycled-workers", context)
    assert context.figures == {"workers_replaced": ended[-1]}
    assert FAULTS["recycled-workers"].changes == {"max_requests": 200}


def test_what_is_not_started_again_is_an_error(context, monkeypatch):
    monkeypatch.setattr(os, "kill", lambda *_: None)
    with pytest.raises(BenchError, match="app was not started again within 15 s"):
        run("application-server", context)


def test_no_worker_is_killed_if_there_is_none_beside_its_master(context, monkeypatch):
    monkeypatch.setattr(crashes.http, "get", lambda url, path: b'{"process_id": 11}')
    with pytest.raises(FaultNotApplicable, match="no worker processes under a master"):
        run("worker", context)


@pytest.mark.parametrize(
    ("name", "running"),
    [("database-hangs", {}), ("write-lock", {"env": {"DATABASE_URL": "sqlite:////tmp/x"}})],
)
def test_a_health_page_that_waits_for_the_database_is_wrong(monkeypatch, name, running):
    monkeypatch.setattr(database_outages, "AWAY_S", 0.0)
    monkeypatch.setattr(database_outages, "locked", lambda url: nullcontext())
    monkeypatch.setattr(
        database_outages, "Visitor", lambda target: SimpleNamespace(token=lambda path: "", cookie_header=dict)
    )
    context = scene(**running)
    context.site = SimpleNamespace(**vars(SITE), remove_probes=lambda: None)
    run(name, context)
    assert len(context.wrong) == 1 and context.wrong[0].startswith("GET /health: [Errno 111] Connection refused")


@pytest.mark.parametrize(
    ("page", "health", "wrong"),
    [
        ("/later/503", "/200", []),
        ("/503", "/200", ["/503"]),
        ("/later/500", "/200", ["/later/500"]),
        ("/wait", "/200", ["/wait"]),
        ("/later/503", "/503", ["/503"]),
    ],
)
def test_without_the_database_a_page_says_at_once_when_to_come_again_and_the_health_page_is_well(
    context, page, health, wrong
):
    strict = SimpleNamespace(strict=True)
    context.site = SimpleNamespace(
        url=lambda *kinds: health if kinds == ("health",) else page, session_cookie="sessionid", description=strict
    )
    with slow_server() as target:
        context.running.url = target.origin
        run("database", context)
    assert [sentence.split(":")[0].removeprefix("GET ") for sentence in context.wrong] == wrong


def test_a_request_that_fails_as_connections_end_is_of_the_fault(monkeypatch):
    context, struck = scene(), []

    @contextmanager
    def connections(url):
        struck.append(context.moments.struck)
        yield 97

    monkeypatch.setattr(database_outages, "all_connections", connections)
    run("database-connections", context)
    assert 0 < struck[0] < context.moments.over


@pytest.mark.parametrize(("kills", "wrong"), [([3, 5], []), ([3, 3], ["no process was killed at the limit of memory"])])
def test_kills_for_lack_of_memory_are_counted(monkeypatch, kills, wrong):
    paths = []
    monkeypatch.setattr(http, "status", lambda url, path, timeout_s: paths.append(path))
    context = scene(oom_kills=iter(kills).__next__)
    run("memory", context)
    assert paths == ["/__probe__/memory/268/"] * 2
    assert (context.figures["oom_kills"], context.wrong) == (kills[1] - kills[0], wrong)


@contextmanager
def refused(folder):
    raise CannotMount("only root can mount a small disk to fill")
    yield


@pytest.mark.parametrize(
    ("name", "running", "why"),
    [
        ("full-logs", {"on_small_disk": refused}, "only root"),
        ("full-disk", {"on_small_disk": lambda folder: nullcontext()}, "no server here stores pages in files"),
    ],
)
def test_what_cannot_be_made_says_what_it_needs(monkeypatch, tmp_path, name, running, why):
    monkeypatch.setattr(http, "status", lambda *_: 200)
    with pytest.raises(FaultNotApplicable, match=why):
        run(name, scene(logs=tmp_path, store=tmp_path, **running))


@pytest.mark.parametrize(
    ("name", "lacks", "why"),
    [
        ("front-server", {"servers": [SimpleNamespace(name="app")]}, "the application server is itself in front"),
        ("front-server-hangs", {"servers": [SimpleNamespace(name="app")]}, "the application server is itself in front"),
        ("caching-service", {"services": ()}, "no layer here uses a caching service"),
        ("cache-after-deploy", {"caches": "parts"}, "no layer here caches pages"),
        ("memory", {"size": UNLIMITED}, "give --size bronze"),
        ("database", {"database": Database("sqlite")}, "give --database postgresql"),
        ("database-hangs", {"database": Database("postgresql", "postgresql://x")}, "give --database postgresql"),
        ("database-connections", {"database": Database("sqlite")}, "give --database postgresql"),
        ("write-lock", {"database": Database("postgresql", service="db")}, "only SQLite has one lock"),
    ],
)
def test_a_case_that_lacks_something_says_what(name, lacks, why):
    case = scene().running.case
    assert FAULTS[name].misfit(case) == ""
    vars(case).update(lacks)
    assert why in FAULTS[name].misfit(case)


def test_faults_are_chosen_by_name_and_by_group():
    assert {item.group for item in kinds.named(("killed",))} == {"killed"}
    assert [item.name for item in kinds.named(("worker", "application"))] == ["application", "worker"]
    assert kinds.named(()) == list(FAULTS.values())

"""One fault on a fake deployment with fake visitors: the order of things, and the outcome."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest

from bench.errors import DeploymentError
from bench.faults import judge, trial
from bench.faults.fault import Expected, Fault
from bench.faults.scene import CannotFault, Scene
from bench.faults.trial import Asked, make
from bench.results.faults import FaultOutcome
from tests.bench.faults.seen import PAGES, visit

BEFORE = FaultOutcome("id", "one", "none", "s", "sqlite", "x", "replaced", 1, "", "ok")


class FakeVisitors:
    """Visitors that see what they were told to, around the moment of the fault."""

    log: list[str]
    seen: tuple = ()
    scene: Scene

    def __init__(self, url, asked, rate, directory):
        self.pages = PAGES

    def start(self):
        self.log.append("visitors ask")

    def finish(self):
        self.log.append("visitors stop")
        return [
            replace(one, **{name: getattr(one, name) + self.scene.struck - 10 for name in ("due", "left", "end")})
            for one in self.seen
        ]


class FakeFollower:
    """A visitor who finds no static file of so many pages."""

    missing = 0

    def __init__(self, url, path):
        assert path == PAGES[0].path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """It waits for nothing."""


@pytest.fixture
def stage(monkeypatch):
    """A scene without waits, and what happened in it; the machine is idle."""
    log = []
    settings = {"cache_seconds": 60}
    running = SimpleNamespace(
        url="http://127.0.0.1:1", answers=lambda: True, case=SimpleNamespace(settings=settings, caches="nothing")
    )
    supervisor = SimpleNamespace(deaths=[], wait=lambda until, seconds: log.append("time passes"))
    scene = Scene(running, supervisor, SimpleNamespace(word="release-1"), SimpleNamespace())
    monkeypatch.setattr(trial, "Visitors", FakeVisitors)
    monkeypatch.setattr(trial, "Follower", FakeFollower)
    monkeypatch.setattr(trial.http, "status", lambda url, path: 200)
    monkeypatch.setattr(trial.Interference, "share", lambda self, ours_s: 0.0)
    monkeypatch.setattr(trial.time, "time", trial.time.monotonic)
    monkeypatch.setattr(FakeVisitors, "log", log, raising=False)
    monkeypatch.setattr(FakeVisitors, "scene", scene, raising=False)
    monkeypatch.setattr(FakeVisitors, "seen", (visit(9.0, rendered=1e12), visit(10.5, rendered=1e12)))
    return SimpleNamespace(scene=scene, log=log, running=running)


def made(stage, run, outcome=BEFORE, bounds=judge.BOUNDS, **how):
    fault = Fault("x", run, "X.", "replaced", **how)
    return make(fault, stage.scene, Asked("http://x", PAGES, 20, None), outcome, bounds)


def test_a_fault_is_prepared_before_the_visitors_and_put_back_after_them(stage):
    def run(scene):
        stage.log.append("prepared")
        yield
        scene.strike()
        stage.log.append("struck")
        yield
        stage.log.append("put back")

    outcome = made(stage, run)
    waits = ["time passes"]
    assert stage.log == [
        "prepared", "visitors ask", *waits, "struck", *waits * 2, "visitors stop", "put back"
    ]  # fmt: skip
    assert (outcome.status, outcome.operator, outcome.failed) == ("ok", "nothing", 0)
    assert (outcome.rate_per_second, outcome.requests_new) == (20.0, 1)


def struck(scene):
    yield
    scene.strike()


def test_what_cannot_be_done_here_is_skipped(stage):
    def run(scene):
        raise CannotFault("no master")
        yield

    outcome = made(stage, run)
    assert (outcome.status, outcome.reason, stage.log) == ("skipped", "no master", [])


def test_a_fault_that_goes_wrong_fails_after_the_visitors_were_asked(stage):
    def run(scene):
        yield
        scene.strike()
        raise DeploymentError("nginx exited")

    outcome = made(stage, run)
    assert (outcome.status, outcome.reason) == ("failed", "nginx exited")
    assert outcome.requests_new == 1


@pytest.mark.parametrize("error", [ProcessLookupError("No such process"), psutil.NoSuchProcess(7)])
def test_a_process_that_is_gone_fails_the_fault_and_not_the_run(stage, error):
    def run(scene):
        yield
        raise error

    outcome = made(stage, run)
    assert (outcome.status, outcome.reason) == ("failed", str(error))


def test_cleanup_comes_whatever_happens(stage):
    def run(scene):
        try:
            yield
            scene.strike()
            raise RuntimeError("a defect of the fault")
        finally:
            stage.log.append("cleaned up")

    with pytest.raises(RuntimeError):
        made(stage, run)
    assert stage.log[-2:] == ["cleaned up", "visitors stop"]


def test_what_is_not_expected_fails_unless_it_is_declared(stage, monkeypatch):
    monkeypatch.setattr(FakeVisitors, "seen", (visit(10.1, failure="connect"), visit(10.5, rendered=1e12)))
    outcome = made(stage, struck)
    assert (outcome.status, outcome.word) == ("failed", "FAIL")
    assert outcome.reason == "1 of 2 requests failed (1x connect), 0 expected"
    assert outcome.request == "curl -i --path-as-is http://127.0.0.1:8000/anonymous/"
    declared = made(stage, struck, replace(BEFORE, declared="it refuses"))
    assert (declared.status, declared.declared, declared.word) == ("ok", "it refuses", "declared")
    assert made(stage, struck, expected=Expected(lost=1)).word == "pass"


def test_a_declaration_that_was_not_needed_is_not_shown(stage):
    assert made(stage, struck, replace(BEFORE, declared="it refuses")).word == "pass"


def test_what_cannot_reload_is_restarted_and_may_lose_requests(stage, monkeypatch):
    monkeypatch.setattr(FakeVisitors, "seen", (visit(10.1, failure="connect"), visit(10.5, rendered=1e12)))

    def run(scene):
        yield
        scene.strike()
        scene.servers["x"] = "restarted"

    outcome = made(stage, run)
    assert (outcome.status, outcome.operator) == ("ok", "restart, 1 requests refused")


def test_a_busy_machine_voids_unless_it_is_asked_not_to(stage, monkeypatch):
    monkeypatch.setattr(trial.Interference, "share", lambda self, ours_s: 0.6)
    outcome = made(stage, struck)
    assert (outcome.status, outcome.reason) == ("voided", "interference: other processes took 60% of the machine")
    outcome = made(stage, struck, bounds={})
    assert (outcome.status, outcome.other_cpu_share) == ("ok", 0.6)


def test_static_files_that_pages_name_are_asked_for(stage, monkeypatch):
    monkeypatch.setattr(trial.http, "status", lambda url, path: 404)
    outcome = made(stage, struck)
    assert (outcome.missing_static, outcome.reason) == (1, "1 static files that pages name are not there")


def test_static_files_that_were_missing_for_a_while_count(stage, monkeypatch):
    monkeypatch.setattr(FakeFollower, "missing", 3)
    assert made(stage, struck).reason == "3 static files that pages name are not there"


def test_sentences_of_the_fault_itself_fail_it(stage):
    def run(scene):
        yield
        scene.strike()
        scene.wrong.append("it still serves the old certificate")

    assert made(stage, run).reason == "it still serves the old certificate"

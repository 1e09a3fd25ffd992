"""A fault on a made-up deployment with made-up visitors: its outcome, and sign-ins."""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from bench.errors import DeploymentError
from bench.measure.faults import fault_session, judge, kinds, visitors
from bench.measure.faults.fault import Expected, Fault
from bench.measure.faults.fault_context import FaultNotApplicable
from bench.measure.faults.fault_session import FaultItem, FaultSession
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.run.plan import Deployment
from bench.serve.project.description import Description, Login
from bench.verify.site import Site
from bench.verify.target_site import NO_COMMANDS
from tests import clock
from tests.bench.measure.faults.scenes import SITE, scene
from tests.bench.measure.faults.seen import PAGES, visit

BEFORE = FaultOutcome("id", "one", "none", "s", "sqlite", "x", "replaced", 1, "", "ok")
RIGHT = (visit(9.0, rendered=1e12), visit(10.5, rendered=1e12))
LOST = (visit(10.1, failure="connect"), visit(10.5, rendered=1e12))


class Seen:
    """Visits around the moment of the fault, and missing static files of pages."""

    def __init__(self, log):
        self.log, self.visits, self.missing, self.scene = log, RIGHT, [], None

    @contextmanager
    def requesting(self, *_):
        self.log.append("visitors come")
        seen = []
        try:
            yield seen
        finally:
            self.log.append("visitors stop")
        later = self.scene.moments.struck - 10
        seen += [replace(it, due=it.due + later, left=it.left + later, end=it.end + later) for it in self.visits]


@pytest.fixture
def make_fault(monkeypatch):
    """Makes a fault; the machine is idle, no time passes. `make_fault.log` has the events."""
    given = scene()
    given.log.clear()
    seen = Seen(given.log)
    monkeypatch.setattr(fault_session, "background_load", seen.requesting)
    monkeypatch.setattr(fault_session, "watch_static_links", lambda url, path: nullcontext(seen.missing))
    monkeypatch.setattr(visitors, "pages", lambda *_: PAGES)
    monkeypatch.setattr(fault_session, "_first_mark", lambda running, token: ("/static/x.css",))
    monkeypatch.setattr(fault_session.http, "status", lambda url, path: 200)
    monkeypatch.setattr(fault_session.Interference, "share", lambda self, ours_s: 0.0)
    clock.change(monkeypatch, fault_session, time=time.monotonic)

    def make(run, outcome=BEFORE, bounds=judge.BOUNDS, **how):
        def watched(scene):
            seen.scene = scene
            yield from run(scene)

        monkeypatch.setitem(kinds.FAULTS, "x", Fault("x", "replaced", "X.", watched, **how))
        up = FaultSession(
            given.running, given.supervisor, given.versions, SITE, [], [], [], Path(), bounds, capacity=60.0
        )
        return up.make(FaultItem(outcome, Deployment(up.running.case, 1)), 1)

    make.log, make.seen = given.log, seen
    return make


def struck(scene):
    yield
    with scene.cause():
        pass


def test_a_fault_is_prepared_before_the_visitors_and_put_back_after_them(make_fault):
    def run(scene):
        make_fault.log.append("prepared")
        yield
        with scene.cause():
            make_fault.log.append("struck")
        yield
        make_fault.log.append("put back")

    outcome = make_fault(run)
    order = [word for word in make_fault.log if word != "wait"]
    assert order == ["prepared", "visitors come", "struck", "visitors stop", "put back"]
    assert (outcome.status, outcome.operator, outcome.failed) == ("ok", "nothing", 0)
    assert (outcome.rate_per_second, outcome.requests_new, outcome.capacity_per_second) == (20.0, 1, 60.0)


@pytest.mark.parametrize(
    ("before", "error", "status", "requests"),
    [
        (True, FaultNotApplicable("no master"), "skipped", None),
        (False, FaultNotApplicable("no worker was replaced"), "skipped", None),
        (True, DeploymentError("no release"), "failed", None),
        (False, DeploymentError("nginx exited"), "failed", 1),
        (False, ProcessLookupError("No such process"), "failed", 1),
        (False, psutil.NoSuchProcess(7), "failed", 1),
    ],
)
def test_what_goes_wrong_is_of_the_fault_and_not_of_the_run(make_fault, before, error, status, requests):
    def run(scene):
        if before:
            raise error
        yield
        raise error

    outcome = make_fault(run)
    assert (outcome.status, outcome.reason, outcome.requests_new) == (status, str(error), requests)


def test_cleanup_comes_whatever_happens(make_fault):
    def run(scene):
        try:
            yield
            raise RuntimeError("a defect of the fault")
        finally:
            make_fault.log.append("cleaned up")

    with pytest.raises(RuntimeError):
        make_fault(run)
    assert make_fault.log[-2:] == ["cleaned up", "visitors stop"]


def test_what_is_not_expected_fails_unless_it_is_declared(make_fault, monkeypatch):
    declared = replace(BEFORE, known_limitation="it refuses")
    # A declaration that was not needed is not shown.
    assert make_fault(struck, declared).word == "passed"
    make_fault.seen.visits = LOST
    outcome = make_fault(struck)
    assert (outcome.word, outcome.reason) == ("failed", "1 of 2 requests failed (1x connect), 0 expected")
    assert outcome.request == "curl -i --path-as-is http://127.0.0.1:8000/anonymous/"
    assert make_fault(struck, declared).word == "known limitation"
    assert make_fault(struck, expected=Expected(lost=1)).word == "passed"


def test_what_cannot_reload_is_restarted_and_may_lose_requests(make_fault, monkeypatch):
    make_fault.seen.visits = LOST

    def run(scene):
        yield
        with scene.cause():
            pass
        scene.servers["x"] = "restarted"

    outcome = make_fault(run)
    assert (outcome.status, outcome.operator) == ("ok", "restart, 1 requests refused")


def test_a_busy_machine_discards_unless_an_option_forbids_it(make_fault, monkeypatch):
    monkeypatch.setattr(fault_session.Interference, "share", lambda self, ours_s: 0.6)
    assert (make_fault(struck).status, make_fault(struck, bounds={}).status) == ("discarded", "ok")
    # The reason is the machine, not what the server declares.
    discarded = make_fault(struck, replace(BEFORE, known_limitation="it refuses"))
    assert discarded.known_limitation is None and "other processes" in discarded.reason


def test_static_files_that_are_missing_now_or_were_for_a_while_count(make_fault, monkeypatch):
    make_fault.seen.missing = [True, False, True, True]
    assert make_fault(struck).missing_static == 3
    monkeypatch.setattr(fault_session.http, "status", lambda url, path: 404)
    assert (make_fault(struck).missing_static, make_fault(struck).status) == (4, "failed")


def test_sentences_of_the_fault_itself_fail_it(make_fault):
    def run(scene):
        yield
        with scene.cause():
            pass
        scene.wrong.append("it still serves the old certificate")

    assert make_fault(run).reason == "it still serves the old certificate"


def test_without_leave_to_write_nobody_is_signed_in_and_a_note_says_so(make_fault):
    site = Site({"login": "/in/"}, {}, Path(), "/static/", NO_COMMANDS, description=Description(login=Login("/in/")))
    notes = []
    with fault_session._accounts(site, SimpleNamespace(), notes) as cookies:
        assert cookies == []
    assert len(notes) == 1 and notes[0].startswith("no visitor is signed in: ")

"""A plan's faults in order, on fake deployments: repetitions, restarts and resumed runs."""

from __future__ import annotations

import io
import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby

import pytest

from bench.errors import DeploymentError
from bench.interrupt import Interrupts, Stopped
from bench.measure.faults import fault_session, prepare_faults, test_bed
from bench.measure.faults.fault import Fault
from bench.measure.faults.prepare_faults import faults_of
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.folder import read_faults
from bench.measure.records.records import Plan
from bench.measure.run.session import Session
from bench.printer import Printer
from bench.serve.deployment.case import CannotRun, Case
from tests.bench.measure.records.run_data import ENVIRONMENT, INFO
from tests.bench.measure.run.fake_sites import fake_case


def nothing(scene):
    """Nothing."""
    yield


class Changed(Case):
    """A case of nothing, servable with other values, except unknown ones."""

    declares, breaks = (), {}

    def changed(self, changes):
        return CannotRun("it has no TLS") if self.layer_name == "plain" else self


PLAIN = Fault("plain", "replaced", "Nothing.", nothing)
OTHER = Fault("other", "killed", "Nothing.", nothing)
PICKY = Fault("picky", "replaced", "Nothing.", nothing, misfit=lambda case: "it does not fit")
TLS = Fault("tls", "replaced", "Nothing.", nothing, changes={"listener": "tls"})


def plan(**changes) -> Plan:
    return replace(INFO.plan, **{"workloads": (), "levels": (), "faults": ("plain",), "guards": {}, **changes})


def resolved(stack, layer):
    if stack == "gone":
        return CannotRun("not installed")
    return Changed(**vars(fake_case(stack, layer)))


def test_every_deployment_comes_once_a_round_with_all_its_faults():
    planned, skipped = faults_of(plan(stacks=("one", "two"), rounds=2), [PLAIN, OTHER, PICKY], resolved)
    deployments = [deployment for deployment, _ in groupby(item.deployment for item in planned)]
    rounds = [(deployment.stack, deployment.round) for deployment in deployments]
    assert rounds == [("one", 1), ("two", 1), ("one", 2), ("two", 2)]
    assert [item.key for item in planned[:2]] == [f"one~none~unlimited~sqlite~{name}~r1" for name in ("plain", "other")]
    assert (skipped[0].fault_id, skipped[0].reason) == ("one~none~unlimited~sqlite~picky~r1", "it does not fit")


def test_faults_that_need_other_values_have_their_own_deployment():
    planned, _ = faults_of(plan(), [PLAIN, TLS, PLAIN], resolved)
    assert [item.outcome.fault for item in planned] == ["plain", "plain", "tls"]
    assert planned[0].deployment is planned[1].deployment is not planned[2].deployment


@pytest.mark.parametrize(
    ("changes", "faults", "reason"),
    [({"stacks": ("gone",)}, [PLAIN, PICKY], "not installed"), ({"layers": ("plain",)}, [TLS], "it has no TLS")],
)
def test_what_cannot_run_is_skipped_with_its_reason(changes, faults, reason):
    planned, skipped = faults_of(plan(**changes), faults, resolved)
    assert (planned, {outcome.reason for outcome in skipped}) == ([], {reason})


class FakeUp:
    """Deployments with a given outcome for every fault, `ok` by default.

    log  actions in order
    """

    def __init__(self):
        self.log = []
        self.outcomes = {}
        self.ruined_by = set()
        self.notes = []
        self.meanwhile = lambda: None
        self.is_usable = True

    @contextmanager
    def __call__(self, case, directory, *how):
        self.log.append("up")
        self.is_usable = True
        (directory / "visits").mkdir(parents=True)
        (directory / "visits" / "openloop.json").write_text("sessionid=1")
        (directory / "visits" / "visits.out").write_text("{}")
        yield self
        self.log.append("down")

    def make(self, item, attempt):
        fault = item.outcome.fault
        self.log.append(f"{fault}~{attempt}")
        self.meanwhile()
        status = self.outcomes.get(fault, "ok")
        self.is_usable = fault not in self.ruined_by
        return replace(item.outcome, status=status, reason=None if status == "ok" else "interference: others")


@pytest.fixture
def up(monkeypatch):
    fake = FakeUp()
    monkeypatch.setattr(fault_session, "open_session", fake)
    return fake


def run_faults(directory, chosen, **options):
    """Make these faults in a folder; returns the output."""
    planned, skipped = faults_of(plan(**options), chosen, resolved)
    prepared = prepare_faults.PreparedFaults(
        info=replace(INFO, plan=plan(**options)),
        faults=planned,
        skipped=skipped,
        environment=lambda: ENVIRONMENT,
        before=read_faults(directory) if directory.exists() else None,
    )
    printer = Printer(printed := io.StringIO())
    replay = prepared.replay()
    journal, progress = prepared.journal(directory, replay), test_bed.FaultsProgress(printer)
    for outcome in prepared.newly_skipped:
        journal.folder.append(outcome)
    bed = test_bed.FaultsTestBed(journal, printer, allow_writes=False)
    session = Session(journal, replay, bed, progress, [outcome.key for outcome in prepared.recorded])
    with Interrupts() as interrupts:
        session.go(interrupts, keep_going=True)
    return printed.getvalue()


def words(directory):
    return [(outcome.fault, outcome.round, outcome.status) for outcome in read_faults(directory).outcomes]


def test_one_deployment_serves_for_all_its_faults_until_one_ruins_it(up, tmp_path):
    printed = run_faults(tmp_path / "f", [PLAIN, OTHER, PICKY])
    assert up.log == ["up", "plain~1", "other~1", "down"]
    assert words(tmp_path / "f") == [("picky", 1, "skipped"), ("plain", 1, "ok"), ("other", 1, "ok")]
    assert "one with layer none, plain: passed\n" in printed
    assert read_faults(tmp_path / "f").info.finished_at
    # The visits stay, the visitors' cookies do not.
    assert [path.name for path in (tmp_path / "f" / "raw").rglob("*.*")] == ["visits.out"]
    up.log.clear()
    up.ruined_by.add("plain")
    run_faults(tmp_path / "g", [PLAIN, OTHER])
    assert up.log == ["up", "plain~1", "down", "up", "other~1", "down"]


def test_discarded_faults_are_made_once_more_and_stop_no_table(up, tmp_path):
    up.outcomes["plain"] = "discarded"
    run_faults(tmp_path / "g", [PLAIN, OTHER])
    assert up.log == ["up", "plain~1", "plain~2", "other~1", "down"]


def stopped(then):
    """A signal comes, and its handling fails like `then`."""
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        then()


def failing():
    raise DeploymentError("accounts cannot be removed: the database is gone")


def swallowing():
    with suppress(Stopped):
        stopped(lambda: None)


@pytest.mark.parametrize("meanwhile", [lambda: stopped(failing), swallowing], ids=["failing", "swallowing"])
def test_a_signal_stops_it_also_where_cleaning_up_fails_and_it_can_go_on(up, tmp_path, meanwhile):
    up.meanwhile = meanwhile
    with pytest.raises(Stopped):
        run_faults(tmp_path / "f", [PLAIN, OTHER])
    assert words(tmp_path / "f") == []
    up.meanwhile = lambda: None
    run_faults(tmp_path / "f", [PLAIN, OTHER])
    assert words(tmp_path / "f") == [("plain", 1, "ok"), ("other", 1, "ok")]


def test_whose_database_it_is_is_printed_once(up, tmp_path):
    up.notes = ["database: the project's own, as it is"]
    printed = run_faults(tmp_path / "f", [PLAIN, OTHER], rounds=2)
    assert up.log.count("up") == 2
    assert printed.count("note: database: the project's own, as it is\n") == 1


def test_a_line_says_what_visitors_noticed():
    ids = ("id", "one", "none", "unlimited", "sqlite", "application", "replaced", 1, "now", "ok")
    seen = {"requests_new": 5, "requests_kept": 5, "failed_new": 2, "failed_kept": 1, "longest_gap_s": 30.94}
    noticed = FaultOutcome(*ids, operator="reload", **seen)
    assert test_bed.line(noticed) == (
        "one with layer none, application: passed; 3 of 10 requests failed; gap 30.9 s, recovery never; "
        "operator: reload"
    )
    skipped = FaultOutcome(*ids[:-1], "skipped", reason="SQLite is a file")
    assert test_bed.line(skipped) == "one with layer none, application: skipped; SQLite is a file"

"""A session on fake deployments: what is made again, brought up again, skipped, written and resumed."""

from __future__ import annotations

import io
import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from bench.errors import DeploymentError, GlobalFault
from bench.faults.fault import Fault
from bench.faults.plan import Ledger, batches
from bench.faults.session import Session
from bench.interrupt import Interrupts, Stopped
from bench.measure.printer import Printer
from bench.results.faults import FORMAT, FaultsFolder, FaultsInfo, read_faults
from tests.bench.faults.test_plan import PICKY, PLAIN, nothing, plan, resolved
from tests.bench.results.run_data import ENVIRONMENT

OTHER = Fault("other", nothing, "Nothing.", "killed")


class FakeUp:
    """Deployments on which every fault has the outcome that was said before, `ok` when nothing was.

    log  what was done, in order
    """

    def __init__(self):
        self.log = []
        self.outcomes = {}
        self.ruined_by = set()
        self.refuses = None
        self.notes = []
        self.meanwhile = lambda: None

    @contextmanager
    def __call__(self, case, directory, interrupts, progress):
        self.log.append("up")
        if self.refuses:
            raise self.refuses
        (directory / "conf").mkdir(parents=True)
        (directory / "visits" / "x").mkdir(parents=True)
        (directory / "visits" / "x" / "openloop.json").write_text("sessionid=1")
        (directory / "visits" / "x" / "visits.out").write_text("{}")
        self.whole = True
        with interrupts.released_at_end():
            yield self
        self.log.append("down")

    def make(self, fault, outcome, name):
        self.log.append(name)
        self.meanwhile()
        status = self.outcomes.get(fault.name, ["ok"])
        self.whole = fault.name not in self.ruined_by
        return replace(outcome, status=status.pop(0) if len(status) > 1 else status[0])

    def is_whole(self):
        return self.whole


@pytest.fixture
def up():
    return FakeUp()


def made(up, directory, faults, **asked):
    """Make these faults in a folder; what was printed."""
    asked = plan(**asked)
    folder = FaultsFolder(directory)
    if directory.exists():
        ledger = Ledger(read_faults(directory).outcomes)
        info = read_faults(directory).info
    else:
        ledger, info = Ledger(), FaultsInfo(FORMAT, (), "now", None, asked, ENVIRONMENT)
        folder.create(info)
    printed = io.StringIO()
    with Interrupts() as interrupts:
        Session(folder, info, ledger, up, Printer(printed)).go(batches(asked, faults, resolved), interrupts)
    return printed.getvalue()


def words(directory):
    return [(outcome.fault, outcome.round, outcome.status) for outcome in read_faults(directory).outcomes]


def test_one_deployment_serves_for_all_its_faults(up, tmp_path):
    printed = made(up, tmp_path / "f", [PLAIN, OTHER])
    assert up.log == ["up", "plain~1", "other~1", "down"]
    assert words(tmp_path / "f") == [("plain", 1, "ok"), ("other", 1, "ok")]
    assert printed.splitlines()[0] == "one with layer none, plain: pass"
    assert read_faults(tmp_path / "f").info.finished_at


def test_a_ruined_deployment_is_brought_up_again(up, tmp_path):
    up.ruined_by.add("plain")
    made(up, tmp_path / "f", [PLAIN, OTHER])
    assert up.log == ["up", "plain~1", "down", "up", "other~1", "down"]


def test_a_voided_fault_is_made_again(up, tmp_path):
    up.outcomes["plain"] = ["voided", "ok"]
    made(up, tmp_path / "f", [PLAIN])
    assert up.log == ["up", "plain~1", "plain~2", "down"]
    assert [status for *_, status in words(tmp_path / "f")] == ["voided", "ok"]
    assert [outcome.status for outcome in read_faults(tmp_path / "f").latest.values()] == ["ok"]


def test_a_fault_that_stays_void_is_made_three_times(up, tmp_path):
    up.outcomes["plain"] = ["voided"]
    made(up, tmp_path / "f", [PLAIN, OTHER])
    assert up.log == ["up", "plain~1", "plain~2", "plain~3", "other~1", "down"]


def test_what_does_not_come_up_fails_every_fault_with_the_reason(up, tmp_path):
    up.refuses = DeploymentError("nginx exited with status 1")
    made(up, tmp_path / "f", [PLAIN, OTHER])
    assert {outcome.reason for outcome in read_faults(tmp_path / "f").outcomes} == {"nginx exited with status 1"}
    assert words(tmp_path / "f") == [("plain", 1, "failed"), ("other", 1, "failed")]


def test_a_fault_of_the_machine_stops_all(up, tmp_path):
    up.refuses = GlobalFault("the database is gone")
    with pytest.raises(GlobalFault):
        made(up, tmp_path / "f", [PLAIN])
    assert words(tmp_path / "f") == []


def stopped(then):
    """A signal comes, and what is done about it fails as `then` does."""
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
def test_a_signal_stops_it_also_where_cleaning_up_fails(up, tmp_path, meanwhile):
    up.meanwhile = meanwhile
    with pytest.raises(Stopped):
        made(up, tmp_path / "f", [PLAIN, OTHER])
    assert words(tmp_path / "f") == []


def test_what_cannot_be_made_is_skipped(up, tmp_path):
    made(up, tmp_path / "f", [PICKY])
    (outcome,) = read_faults(tmp_path / "f").outcomes
    assert (outcome.status, outcome.reason, up.log) == ("skipped", "it does not fit", [])


def test_what_is_done_is_not_made_again_by_resume(up, tmp_path):
    made(up, tmp_path / "f", [PLAIN])
    made(up, tmp_path / "f", [PLAIN, OTHER], rounds=2)
    assert words(tmp_path / "f") == [("plain", 1, "ok"), ("other", 1, "ok"), ("plain", 2, "ok"), ("other", 2, "ok")]


def test_whose_database_it_is_is_said_once(up, tmp_path):
    up.notes = ["database: the project's own, as it is"]
    printed = made(up, tmp_path / "f", [PLAIN, OTHER], rounds=2)
    assert up.log.count("up") == 2
    assert printed.count("note: database: the project's own, as it is\n") == 1


def test_logs_stay_and_cookies_do_not(up, tmp_path):
    made(up, tmp_path / "f", [PLAIN])
    left = {str(path.relative_to(tmp_path / "f" / "raw")) for path in (tmp_path / "f" / "raw").rglob("*.*")}
    assert left == {"one~none~plain~r1/visits/x/visits.out"}

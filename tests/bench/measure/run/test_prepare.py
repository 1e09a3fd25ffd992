"""Requests of a run: unknown names are refused in one line and leave no folder."""

from __future__ import annotations

import pytest

from bench.errors import BenchError
from bench.measure.records.records import warmup_s
from bench.measure.run import plan
from bench.measure.stats.rate_search import Limit
from bench.serve.catalog import catalog
from bench.serve.deployment.database import Database
from tests.bench.measure.run.fake_sites import FakeSites
from tests.cases import kit


def test_nothing_that_can_run_here_is_an_error(go, sites):
    sites.misfits["one", "none"] = "program not installed: server"
    with pytest.raises(BenchError, match="nothing to measure here: one with layer none: program not installed: server"):
        go("--stack", "one")


SQLITE = Database("sqlite", is_created=True)


@pytest.mark.parametrize(
    "words, message",
    [
        (["--size", "bronce"], "--size bronce: no such size; did you mean bronze?"),
        (["--workload", "homes"], "no workload called 'homes'; did you mean home?"),
        (["--rate", "5", "--tool", "wrk"], "--tool wrk makes no open loop"),
    ],
)
def test_an_unknown_name_is_one_line_and_leaves_no_folder(go, tmp_path, words, message):
    with pytest.raises(BenchError) as error:
        go("--stack", "one", *words)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_a_server_could_not_work_in_is_refused(go, tmp_path):
    with pytest.raises(BenchError) as error:
        go("--stack", "one", to="a b#$c")
    message = "not every server can work in a folder with a space # $ in its name; use another"
    assert str(error.value) == f"{tmp_path / 'a b#$c'}: {message}"
    assert not (tmp_path / "a b#$c").exists()


def test_what_fails_before_the_first_record_leaves_no_folder(go, tmp_path, monkeypatch):
    def programs(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeSites, "programs", programs)
    with pytest.raises(KeyboardInterrupt):
        go("--stack", "one")
    assert not (tmp_path / "run").exists()


def test_historic_stacks_are_measured_only_if_they_are_named():
    assert plan.make_plan(plan.Request(kit(), SQLITE)).stacks == catalog.read().usual_stacks
    assert plan.make_plan(plan.Request(kit(), SQLITE, stacks=("cherokee-flup",))).stacks == ("cherokee-flup",)


def test_the_defaults_are_those_of_the_contract():
    defaults = plan.make_plan(plan.Request(kit(), SQLITE))
    assert (defaults.mode, defaults.levels, defaults.rounds, defaults.duration_s) == ("closed", (16,), 5, 10)
    assert plan.make_plan(plan.Request(kit(), SQLITE, capacity=Limit("p95", 1000.0))).duration_s == 5
    assert (warmup_s(10), warmup_s(5)) == (2, 1)

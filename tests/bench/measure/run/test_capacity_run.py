"""Capacity runs: records, output, and trials of a resumed run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.measure.run import local
from tests.bench.measure.records.run_data import TRIAL, at_rate, failed


@pytest.fixture
def holds(monkeypatch):
    """Trials without any load: each stack holds rates up to a given one."""
    capacities = {"one": 480, "two": 120}
    keys: list[str] = []

    def measure(item, *rest):
        keys.append(item.key)
        latency = 20.0 if item.level <= capacities[item.case.stack] else 900.0
        identity = replace(TRIAL, **{name: getattr(item.case, name) for name in ("case_id", "stack", "layer")})
        return at_rate(item.level, latency, item.round, identity)

    monkeypatch.setattr(local, "measure", measure)
    measure.capacities, measure.keys = capacities, keys
    return measure


def test_each_case_climbs_to_its_capacity_and_later_rounds_begin_there(go, holds, capsys):
    status, recorded = go("--stack", "one", "--stack", "two", "--capacity", "p95=200ms", "--rounds", "2")
    assert (status, recorded.info.plan.mode, recorded.info.plan.levels) == (0, "open", ())
    assert str(recorded.info.plan.capacity) == "p95=200ms"
    assert recorded.info.plan.margin == 0.11, "a step of the staircase is no difference"
    levels = {(trial.stack, trial.round): [] for trial in recorded.trials}
    for trial in recorded.trials:
        levels[trial.stack, trial.round].append(trial.level)
    assert levels["one", 1][:3] == [50, 200, 800]
    assert levels["one", 2] == [475, 500, 500, 475], "both ends twice"
    assert levels["two", 2] == [118, 125, 125, 118]
    output = capsys.readouterr().out
    assert "each case: the highest rate with p95 within 200 ms, 2 rounds of 1 s" in output
    assert "one, layer none, home, 475 requests/s due: 475 requests/s, p95 20.0 ms, holds; " in output
    assert "due: 500 requests/s, p95 900.1 ms, does not hold; " in output
    assert (
        "capacity of one, layer none, home: 475 requests/s (475 to 500) with p95 within 200 ms, "
        "1,710,000 visitors an hour, each for 1 page" in output
    )


def test_a_resumed_run_goes_on_with_the_next_step(go, holds, unfinished):
    folder = unfinished("--capacity", "p95=200ms", "--rounds", "2", trials=4)
    before = list(holds.keys)
    holds.keys.clear()
    status, recorded = go("--resume", str(folder))
    assert (status, holds.keys) == (0, before[4:])
    assert [trial.trial_id for trial in recorded.trials] == [*before[:4], *holds.keys]


def test_wrong_responses_end_the_search_before_the_first_trial(go, holds, sites):
    sites.wrong.add("one")
    status, recorded = go("--stack", "one", "--capacity", "p95=200ms", "--rounds", "2")
    assert (status, holds.keys) == (1, [])
    assert [(trial.status, trial.level) for trial in recorded.trials] == [("failed", 50)] * 2


def test_overload_fails_no_run(go, holds, monkeypatch):
    """A rate beyond the knee may fail its trial: finding it is the aim."""
    quick = holds

    def measure(item, *rest):
        measured = quick(item, *rest)
        return failed(measured) if item.level > 480 else measured

    monkeypatch.setattr(local, "measure", measure)
    status, recorded = go("--stack", "one", "--capacity", "p95=200ms")
    assert (status, {trial.status for trial in recorded.trials}) == (0, {"ok", "failed"})

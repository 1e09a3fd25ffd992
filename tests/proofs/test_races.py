"""A small simulation of runs until decided: seeded, so that it gives the same shares each time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.proofs import races
from tests.proofs.races import APART, FOUND, Shares, even, simulate, uneven


@pytest.mark.parametrize(
    "scenario",
    [
        even(4, 0.01),
        even(4, 0.2),
        even(14, 0.1, spread=10.0),
        even(14, 0.2, spread=10.0, missing=0.1),
        uneven(14, spread=3.0),
        even(4, 0.05, fastest=APART, found=FOUND[0.05]),
        even(4, 0.1, fastest=APART, found=FOUND[0.1]),
        even(28, 0.05, fastest=APART, spread=30.0, found=FOUND[0.05]),
    ],
    ids=lambda scenario: f"{scenario.name}, best by {scenario.fastest}",
)
def test_the_best_is_hardly_ever_dropped_and_named_when_it_is_far_ahead(scenario):
    assert simulate(scenario, 10, seed=1, rounds=20).passes(scenario)


def test_most_cases_of_a_cross_product_are_measured_once_or_twice():
    assert simulate(even(143, 0.05, fastest=APART, spread=100.0), 1, seed=1).trials < 1 / 6


def test_six_of_100_runs_that_drop_the_best_are_too_many():
    known = Shares(runs=100, dropped=0.05, found=0.0, tied=0.0, open=0.0, trials=1.0)
    assert known.passes(even(4, 0.1))
    assert not replace(known, dropped=0.06).passes(even(4, 0.1))


def test_a_missed_bound_is_said_and_fails(monkeypatch, capsys):
    impossible = even(4, 0.2, fastest=1.001, found=0.9)
    monkeypatch.setattr(races, "SCENARIOS", [even(4, 0.01), impossible])
    assert races.main(["--runs", "2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].endswith("MISSED")
    assert lines[3].startswith("1 of 2 lines keep their bounds")

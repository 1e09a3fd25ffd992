"""A small simulation of verdicts: seeded, so that it gives the same shares each time."""

from __future__ import annotations

import pytest

from tests.proofs import verdicts
from tests.proofs.verdicts import EVEN, ONE, THIRD, Scenario, simulate


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario("equal", EVEN, 2),
        Scenario("equal", EVEN, 5),
        Scenario("equal, unequal noise", THIRD, 2),
        Scenario("equal, voided trials", THIRD, 3, missing=0.15),
        Scenario("one noisy", ONE, 2),
        Scenario("two cases", EVEN[:2], 2),
        Scenario("1.3 times", EVEN, 3, 1.3, found=0.8),
        Scenario("1.3 times", EVEN, 5, 1.3, found=0.95),
        Scenario("twice", EVEN, 2, 2.0, found=0.9),
        Scenario("twice, itself noisy", THIRD, 2, 2.0, found=0.9),
        Scenario("twice, others noisy", THIRD[::-1], 2, 2.0, found=0.9),
    ],
    ids=lambda scenario: f"{scenario.name}, {scenario.rounds} rounds",
)
def test_false_winners_are_rare_and_true_ones_are_found(scenario):
    assert simulate(scenario, 60, seed=1).passes(scenario)


def test_a_missed_bound_is_said_and_fails(monkeypatch, capsys):
    scenarios = [Scenario("equal", EVEN[:3], 2), Scenario("impossible", EVEN[:3], 2, 1.01, found=0.9)]
    monkeypatch.setattr(verdicts, "SCENARIOS", scenarios)
    assert verdicts.main(["--runs", "5"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].endswith("MISSED")
    assert lines[3].startswith("1 of 2 lines keep their bound")

"""A small simulation of the model: seeded, so that it gives the same shares each time."""

from __future__ import annotations

import pytest

from tests.proofs import simulate
from tests.proofs.simulate import Scenario, Shares


@pytest.mark.parametrize(
    "scenario",
    [
        *(Scenario("normal", cases, rounds) for cases in (2, 8) for rounds in (2, 5)),
        Scenario("normal", 8, 3, discarded=0.15),
        Scenario("one noisy", 8, 5),
        *(Scenario(world, 3, 5) for world in ("heavy tails", "bad round", "drift", "skewed")),
    ],
    ids=str,
)
def test_intervals_are_right_and_false_leaders_rare(scenario):
    assert list(simulate.simulate(scenario, 60, seed=1).problems(scenario)) == []


def test_what_misses_its_bounds_is_reported():
    assert len(list(Shares(1000, 0.9, 0.08).problems(Scenario("normal", 8, 5)))) == 2
    assert list(Shares(1000, 0.95, 0.04).problems(Scenario("normal", 8, 5))) == []


def test_a_missed_bound_fails(monkeypatch, capsys):
    monkeypatch.setattr(simulate, "SCENARIOS", [Scenario("normal", 2, 2)])
    assert simulate.main(["--runs", "20"]) == 0
    monkeypatch.setattr(simulate, "race", lambda *_: True)
    assert simulate.main(["--runs", "20"]) == 1
    assert "more than 5% false" in capsys.readouterr().out

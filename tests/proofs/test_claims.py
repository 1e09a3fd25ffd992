"""A small simulation of claims that are judged after added rounds, too."""

from __future__ import annotations

import random

import pytest

from bench.results.reproduction import LOOKS
from tests.proofs import claims
from tests.proofs.claims import Scenario, judged


def found(scenario: Scenario, looks: int, runs: int = 150) -> list[tuple[str, int]]:
    return [judged(random.Random(run), scenario, looks) for run in range(runs)]


@pytest.mark.parametrize("rounds", [3, 5])
def test_added_rounds_decide_more_claims_and_none_falsely(rounds):
    scenario = Scenario(rounds, 0.1, 0.8)
    first, later = found(scenario, 1), found(scenario, LOOKS)
    assert claims.false_share(scenario, later) == 0
    assert sum(verdict != claims.OPEN for verdict, _ in later) > sum(verdict != claims.OPEN for verdict, _ in first)


def test_a_truth_on_the_bound_is_rarely_judged_and_takes_all_rounds():
    outcomes = found(Scenario(5, 0.1, 1.0), LOOKS)
    assert sum(verdict != claims.OPEN for verdict, _ in outcomes) <= 0.1 * len(outcomes)
    assert max(rounds for _, rounds in outcomes) == LOOKS * 5


def test_what_is_clear_takes_no_added_round():
    assert {rounds for _, rounds in found(Scenario(5, 0.02, 1.5), LOOKS, 20)} == {5}


def test_too_many_false_verdicts_fail(monkeypatch, capsys):
    monkeypatch.setattr(claims, "SCENARIOS", [Scenario(3, 0.1, 1.0)])
    monkeypatch.setattr(claims, "judged", lambda *_, **__: (claims.NOT, 3))
    assert claims.main(["--runs", "50"]) == 1
    assert capsys.readouterr().out.rstrip().endswith("MISSED")

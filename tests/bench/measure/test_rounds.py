"""Rounds end when the time is up."""

from __future__ import annotations

import pytest

from bench.measure.rounds import Budget


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def made(budget, clock, estimate_s, took_s):
    with budget.round(estimate_s):
        clock.now += took_s


def test_the_first_two_rounds_are_always_made():
    clock = Clock()
    budget = Budget(1.0, clock)
    assert budget.allows(1, 1000.0)
    made(budget, clock, 1000.0, 1000.0)
    assert budget.allows(2, 1000.0)
    assert not budget.allows(3, 1.0)


def test_a_resumed_run_makes_a_round_at_least():
    assert Budget(1.0, Clock()).allows(7, 1000.0)


@pytest.mark.parametrize(("took_s", "allowed"), [(100.0, True), (150.0, False)])
def test_another_round_must_fit_at_the_pace_so_far(took_s, allowed):
    clock = Clock()
    budget = Budget(200.0, clock)
    made(budget, clock, 100.0, took_s)
    # Of 90 s by the estimate; the machine is as much slower as it was before.
    assert budget.allows(3, 90.0) == allowed


def test_time_before_the_first_round_counts():
    clock = Clock()
    budget = Budget(200.0, clock)
    clock.now += 80
    made(budget, clock, 100.0, 100.0)
    assert not budget.allows(3, 30.0)


def test_without_a_budget_every_round_is_made():
    clock = Clock()
    budget = Budget(None, clock)
    made(budget, clock, 1.0, 1e6)
    assert budget.allows(3, 1e9)

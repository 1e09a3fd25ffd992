"""Rounds end when the time is up, and an open loop follows them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.measure import rounds
from bench.measure.ledger import Ledger
from bench.measure.rounds import Budget
from bench.measure.rounds import latency as latency_of
from bench.records.trials import Trial
from tests.bench.measure.test_plan import case
from tests.bench.records.run_data import TRIAL


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


# ------------------------------------------------------------------------------------- the open loop afterwards


def answered(name: str, *rates: float) -> list[Trial]:
    """Trials of a case in a closed loop, round by round."""
    return [
        replace(TRIAL, trial_id=f"{name}~{number}", case_id=case(name).record.case_id, round=number, **of(rate))
        for number, rate in enumerate(rates, 1)
    ]


def of(rate: float) -> dict:
    return {"requests_per_second": rate}


CASES = [case("slow"), case("fast"), case("alike")]
MADE = [*answered("slow", 100, 102), *answered("fast", 1000, 1010), *answered("alike", 990, 1001)]


def test_the_rate_for_all_is_half_of_what_the_slowest_holds_that_ties_or_leads():
    assert rounds.rate_for_all(MADE, 0.05) == 498
    assert rounds.rate_for_all(MADE[:2], 0.05) == 50
    assert rounds.rate_for_all(answered("fast", 90_000, 90_000), 0.05) == rounds.LATENCY_MAX_RATE
    # One round does not say which case leads.
    assert rounds.rate_for_all(answered("fast", 1000), 0.05) == 0


def test_every_case_that_holds_the_rate_is_measured_at_it_the_fastest_first():
    batches = latency_of(CASES, Ledger([], MADE), 0.05)
    assert [batch.stack for batch in batches] == ["fast", "alike"]
    (item,) = batches[0].items
    assert (item.rate, item.seconds, item.key) == (498, 3, f"{CASES[1].record.case_id}~rate498~r1")


def test_a_resumed_run_goes_on_at_the_rate_at_which_it_began():
    opened = replace(MADE[2], trial_id="open", level_connections=None, rate_requested=400.0)
    batches = latency_of(CASES, Ledger([], [*MADE, opened]), 0.05)
    assert {item.rate for batch in batches for item in batch.items} == {400}


@pytest.mark.servers
def test_after_its_rounds_a_run_shows_the_latency_at_a_rate(go, latency):
    latency()
    status, recorded = go("--stack", "one", "--rounds", "2")
    rates = [trial.requests_per_second for trial in recorded.trials]
    (trial,) = recorded.latency
    assert (status, trial.status, trial.tool, recorded.missing) == (0, "ok", "openloop", 0)
    assert trial.rate_requested == round(sum(rates) / 2 / 2)
    assert trial.latency_p50_ms and trial.latency_p99_ms and not trial.requests_dropped

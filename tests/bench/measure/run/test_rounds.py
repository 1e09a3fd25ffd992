"""Rounds end when the time is up, and an open loop follows them."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench.measure.records.records import warmup_s
from bench.measure.records.trials import Trial
from bench.measure.run import plan, rounds
from bench.measure.run.ledger import Ledger
from bench.measure.run.progress import Pace
from bench.measure.run.racing import Racing
from bench.measure.run.rounds import latency as latency_of
from bench.verify.outcome import Outcome
from tests.bench.measure.records.run_data import INFO, TRIAL
from tests.bench.measure.run.test_plan import case

BEGAN = 100.0
# Seconds that a deployment takes beside its loads, and its verification.
BESIDE_S, VERIFIED_S = 3.0, 12.0
NAMES = ("fast", "alike", "slow")
RATES = {"fast": 2000.0, "alike": 1900.0, "slow": 100.0}


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self):
        self.now = BEGAN

    def __call__(self):
        return self.now


class Run:
    """A run until decided whose time is what a clock says; of which a deployment is verified in its first round."""

    def __init__(self, budget_s, made=(), verified=False, before_s=0.0):
        self.clock, self.cases = Clock(), [case(name) for name in NAMES]
        schedule = plan.schedule(self.cases, [16], 20, seed=1)
        items = [item for batch in schedule for item in batch.items]
        self.ledger = Ledger(schedule, made, racing=Racing(items, 20, 0.05))
        if verified:
            self.verify(*schedule)
        wanted = replace(INFO.plan, until="decided", budget_s=budget_s, latency=True, duration_s=2.0)
        self.journal = SimpleNamespace(info=SimpleNamespace(plan=wanted), drop=len, ended_by=None)
        self.pace = Pace(wanted, self.ledger, self.clock)
        progress = SimpleNamespace(pace=self.pace, look=lambda *_: None)
        self.clock.now += before_s
        self.batches = rounds.batches(self.cases, self.ledger, self.journal, progress)

    def verify(self, *batches):
        for batch in batches:
            self.ledger.add_outcomes(batch.stack, batch.layer, [Outcome(batch.stack, batch.layer, "status", True)])

    def go(self):
        """Make the batches; gives the stack and the round of each trial, and whether its loop was closed."""
        made = []
        for batch in self.batches:
            if not self.ledger.is_verified(batch):
                self.clock.now += VERIFIED_S
                self.verify(batch)
            self.clock.now += BESIDE_S
            for item in batch.items:
                seconds = item.seconds or 2.0
                self.clock.now += seconds + warmup_s(seconds)
                self.ledger.add(trial_of(item))
                made.append((item.case.stack, item.round, item.rate is None))
        return made


def trial_of(item):
    rate = RATES[item.case.stack] * math.exp(0.02 * math.sin(sum(map(ord, item.key))))
    identity = {"trial_id": item.key, "case_id": item.case.case_id, "stack": item.case.stack, "round": item.round}
    how = {"level_connections": None, "rate_requested": float(item.rate)} if item.rate else {}
    return replace(TRIAL, **identity, **how, requests_per_second=rate)


def rounds_of(made):
    return max(number for _, number, closed in made if closed)


def test_the_first_two_rounds_are_always_made_and_one_of_a_resumed_run():
    run = Run(1.0)
    assert (rounds_of(run.go()), run.journal.ended_by) == (2, "budget")
    done = [record for record in run.ledger.done.values() if record.mode == "closed"]
    again = Run(1.0, done, verified=True)
    assert (rounds_of(again.go()), again.journal.ended_by) == (3, "budget")


@pytest.mark.parametrize(
    ("budget_s", "made", "ended_by"), [(80.0, 3, "budget"), (101.0, 5, "decided"), (None, 5, "decided")]
)
def test_a_round_takes_as_long_as_the_last_one_without_its_verification(budget_s, made, ended_by):
    """The first two rounds take 68 s, of which 36 s are the verification, each of the others 11 s."""
    run = Run(budget_s)
    assert (rounds_of(run.go()), run.journal.ended_by) == (made, ended_by)
    assert run.clock.now - BEGAN <= (budget_s or math.inf)


@pytest.mark.parametrize(
    ("budget_s", "made", "ended_by", "opened"),
    [(84.0, 2, "budget", ["fast", "alike"]), (86.0, 3, "budget", ["fast"]), (107.0, 5, "decided", ["fast"])],
)
def test_a_round_leaves_time_for_the_open_loop_of_the_fastest(latency, budget_s, made, ended_by, opened):
    """The open loop of a case takes 5 s; that of the slowest, which was dropped, 25 s."""
    latency()
    run = Run(budget_s)
    trials = run.go()
    assert (rounds_of(trials), run.journal.ended_by) == (made, ended_by)
    assert [stack for stack, _, closed in trials if not closed] == opened
    assert run.clock.now - BEGAN <= budget_s


def test_time_before_the_first_round_counts():
    assert rounds_of(Run(101.0, before_s=40.0).go()) == 2


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


def test_what_a_case_holds_is_the_median_over_all_levels():
    wider = [*answered("slow", 2000, 2000), *answered("fast", 1000, 1000), *answered("alike", 990, 990)]
    at_64 = [replace(trial, trial_id=f"{trial.trial_id}~64", level_connections=64) for trial in wider]
    batches = latency_of(CASES, Ledger([], [*at_64, *MADE]), 0.05)
    assert [batch.stack for batch in batches] == ["slow", "fast", "alike"]


def test_a_resumed_run_goes_on_at_the_rate_at_which_it_began():
    opened = replace(MADE[2], trial_id="open", level_connections=None, rate_requested=400.0)
    batches = latency_of(CASES, Ledger([], [*MADE, opened]), 0.05)
    assert {item.rate for batch in batches for item in batch.items} == {400}

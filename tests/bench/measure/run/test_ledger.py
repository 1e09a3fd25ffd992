"""What of a run is done and what is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.measure.records.capacity import MAX_REPEATS
from bench.measure.records.trials import Trial
from bench.measure.run import plan
from bench.measure.run.ledger import Ledger
from bench.verify.outcome import Outcome
from tests.bench.measure.records.run_data import TRIAL, failed
from tests.bench.measure.run.test_plan import case

SCHEDULE = plan.schedule([case("one"), case("two")], [16], rounds=2, seed=1)
ITEMS = [item for batch in SCHEDULE for item in batch.items]


def trial(item: plan.Measurement, status: str = "ok", reason: str | None = None, **changes) -> Trial:
    made = replace(TRIAL, trial_id=item.key, stack=item.case.stack, **changes)
    return failed(made) if status == "failed" else replace(made, status=status, reason=reason)


def disturbed(item: plan.Measurement) -> Trial:
    return trial(item, "voided", "interference: other processes took 90% of the machine")


def test_the_last_record_of_a_trial_counts():
    ledger = Ledger(SCHEDULE, [trial(ITEMS[0], "failed"), trial(ITEMS[0])])
    assert (ledger.count_left, ledger.count("failed")) == (3, 0)


def test_a_disturbed_trial_is_due_again_a_few_times_and_counts_once():
    ledger = Ledger(SCHEDULE)
    assert [ledger.add(disturbed(ITEMS[0])) for _ in range(MAX_REPEATS + 1)] == [True] * MAX_REPEATS + [False]
    assert (ledger.count("voided"), ledger.attempts[ITEMS[0].key]) == (1, MAX_REPEATS + 1)


def test_voided_trials_are_left_when_a_run_is_resumed_and_repeated_as_often_as_new_ones():
    made = [*[disturbed(ITEMS[0])] * (MAX_REPEATS + 1), trial(ITEMS[1], "voided", "drift"), trial(ITEMS[2], "failed")]
    ledger = Ledger(SCHEDULE, made)
    assert [item for batch in ledger.left for item in batch.items] == [ITEMS[0], ITEMS[1], ITEMS[3]]
    assert (ledger.count("voided"), ledger.count("failed")) == (0, 1)
    assert [ledger.add(disturbed(ITEMS[0])) for _ in range(MAX_REPEATS + 1)] == [True] * MAX_REPEATS + [False]
    assert ledger.attempts[ITEMS[0].key] == 2 * (MAX_REPEATS + 1)


@pytest.mark.parametrize(("wrong", "names"), [(1, "a"), (4, "a, b, c and 1 more")])
def test_wrong_answers_name_a_few_checks(wrong, names):
    batch = SCHEDULE[0]
    ledger = Ledger(SCHEDULE)
    assert (ledger.is_verified(batch), ledger.wrong_answers(batch)) == (False, None)
    outcomes = [Outcome(batch.stack, batch.layer, name, False) for name in "abcd"[:wrong]]
    ledger.add_outcomes(batch.stack, batch.layer, [Outcome(batch.stack, batch.layer, "right", True), *outcomes])
    plural = "check" if wrong == 1 else "checks"
    assert ledger.is_verified(batch)
    assert ledger.wrong_answers(batch) == f"not measured, it gives wrong answers: {wrong} {plural} failed: {names}"

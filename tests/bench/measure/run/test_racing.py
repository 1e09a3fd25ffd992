"""What is left of a run until decided, from the trials that are done."""

from __future__ import annotations

import random
from dataclasses import replace
from types import MappingProxyType

import pytest

from bench.measure.records.records import Dropped
from bench.measure.run import plan
from bench.measure.run.ledger import Ledger
from bench.measure.run.racing import CANNOT_BE_BEST, GIVEN_UP, Racing
from tests.bench.measure.records.run_data import TRIAL, failed
from tests.bench.measure.run.test_plan import case

ROUNDS = 20
REASONS = {"ok": None, "voided": "drift: it was slower at its end"}
RATES = {"best": 1000.0, "near": 990.0, "slower": 500.0, "slow": 490.0, "far": 20.0}


def schedule(*workloads):
    cases = [case(stack, workload=work) for stack in RATES for work in workloads or ("home",)]
    return plan.schedule(cases, [16], ROUNDS, seed=1)


def ledger_of(batches, trials=()):
    measurements = [item for batch in batches for item in batch.items]
    return Ledger(batches, trials, racing=Racing(measurements, ROUNDS, margin=0.05))


def trial(item, status="ok", rates=RATES):
    """A trial with little noise, another one in each round."""
    record = item.case
    made = replace(
        TRIAL,
        trial_id=item.key,
        case_id=record.case_id,
        stack=record.stack,
        layer=record.layer,
        workload=record.workload,
        round=item.round,
        requests_per_second=rates.get(record.workload, rates)[record.stack]
        * random.Random(f"{record.stack} {item.round}").uniform(1, 1.04),
    )
    return failed(made) if status == "failed" else replace(made, status=status, reason=REASONS[status])


def play(ledger, statuses=MappingProxyType({}), rounds=ROUNDS, rates=RATES):
    """Make what is left, at most so many rounds; gives the trials and the stacks of each round."""
    trials, measured = [], []
    while (batches := ledger.next_round) and len(measured) < rounds:
        items = [item for batch in batches for item in batch.items]
        measured.append(sorted({item.case.stack for item in items}))
        for item in items:
            who = (item.case.stack, item.round)
            status = statuses.get((*who, item.case.workload), statuses.get(who, "ok"))
            trials.append(trial(item, status, rates))
            ledger.add(trials[-1])
    return trials, measured


def test_cases_are_dropped_until_the_rest_tie():
    ledger = ledger_of(schedule())
    _, measured = play(ledger)
    assert measured[0] == sorted(RATES)
    assert measured[1] == ["best", "near", "slow", "slower"]
    assert measured[2] == measured[-1] == ["best", "near"]
    assert len(measured) < ROUNDS
    assert ledger.racing.decided and ledger.left == []
    first, *others = ledger.racing.dropped
    assert first == Dropped("far~none~home", 16, 1, CANNOT_BE_BEST)
    assert {(item.case_id, item.round) for item in others} == {("slow~none~home", 2), ("slower~none~home", 2)}


def test_a_race_at_a_given_rate_is_decided_too():
    """What keeps up with the rate ties, and what does not is dropped."""
    ledger = ledger_of(schedule())
    opened = {"level_connections": None, "rate_requested": 16.0}
    for _ in range(3):
        for item in [item for batch in ledger.next_round for item in batch.items]:
            ledger.add(replace(trial(item), **opened))
    assert {item.case_id.partition("~")[0] for item in ledger.racing.dropped} == {"far", "slow", "slower"}


def test_each_workload_has_a_race_of_its_own():
    ledger = ledger_of(schedule("home", "login"))
    play(ledger, rounds=1)
    slow_login = [item for item in ledger.racing.dropped if "login" in item.case_id]
    assert len(slow_login) == 1
    assert len(ledger.racing.dropped) == 2


def test_who_may_be_the_best_over_all_workloads_goes_on():
    """Deployment `near` is the best on no workload, but of the geometric mean."""
    home = {**RATES, "best": 1000.0, "slower": 100.0, "near": 800.0}
    login = {**RATES, "best": 100.0, "slower": 1000.0, "near": 800.0}
    ledger = ledger_of(schedule("home", "login"))
    play(ledger, rates={"home": home, "login": login})
    dropped = {item.case_id for item in ledger.racing.dropped}
    assert not {case_id for case_id in dropped if case_id.startswith("near")}
    # Each is still the best on one of them, and is measured on the other one no further.
    assert {"best~none~login", "slower~none~home"} <= dropped
    assert not {"best~none~home", "slower~none~login"} & dropped
    assert ledger.racing.decided


def test_who_cannot_be_ranked_on_every_workload_is_no_contender():
    batches = schedule("home", "login")
    statuses = {("slower", number, "login"): "failed" for number in range(1, ROUNDS + 1)}
    ledger = ledger_of(batches)
    play(ledger, statuses)
    out = {item.case_id: item.reason for item in ledger.racing.dropped if item.case_id.startswith("slower")}
    assert out == {"slower~none~home": CANNOT_BE_BEST, "slower~none~login": GIVEN_UP}
    assert ledger.racing.decided


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_resumed_run_goes_on_as_it_would_have_gone_on(rounds):
    batches = schedule()
    whole = ledger_of(batches)
    trials, measured = play(whole)
    done, _ = play(ledger_of(batches), rounds=rounds)
    resumed = ledger_of(batches, done)
    rest, measured_later = play(resumed)
    assert measured[:rounds] + measured_later == measured
    assert [item.key for item in [*done, *rest]] == [item.trial_id for item in trials]
    assert resumed.racing.dropped == whole.racing.dropped
    # The whole of it again: nothing is left.
    assert ledger_of(batches, trials).left == []


def test_nothing_is_dropped_within_a_round():
    batches = schedule()
    first = [item for batch in batches[: len(RATES)] for item in batch.items]
    ledger = ledger_of(batches, [trial(item) for item in first[:-1]])
    assert ledger.count_left == 1
    assert ledger.racing.dropped == ()
    ledger.add(trial(first[-1]))
    assert [item.case_id for item in ledger.racing.dropped] == ["far~none~home"]


def test_a_case_that_keeps_failing_is_given_up_and_delays_no_decision():
    statuses = {("far", number): "failed" for number in range(1, ROUNDS + 1)}
    ledger = ledger_of(schedule())
    _, measured = play(ledger, statuses)
    assert ["far" in stacks for stacks in measured[:3]] == [True, True, False]
    assert Dropped("far~none~home", 16, 2, GIVEN_UP) in ledger.racing.dropped
    assert ledger.racing.decided


def test_a_case_without_a_trusted_figure_may_still_be_the_best():
    """Guards voided all of its trials: it is measured until one of them is trusted."""
    rates = {"best": 1000.0, "near": 500.0, "slower": 490.0, "slow": 480.0, "far": 20.0}
    voided = {("far", number): "voided" for number in (1, 2, 3, 4)}
    ledger = ledger_of(schedule())
    _, measured = play(ledger, voided, rates=rates)
    assert all("far" in stacks for stacks in measured[:5])
    assert measured[3] == ["best", "far"]
    assert ledger.racing.decided


def test_voided_trials_that_are_made_again_may_change_who_goes_on():
    batches = schedule()
    done, _ = play(ledger_of(batches), {("far", 1): "voided"}, rounds=1)
    again = ledger_of(batches, done)
    assert again.racing.dropped == ()
    assert [item.case.stack for batch in again.next_round for item in batch.items] == ["far"]
    play(again, rounds=1)
    assert [item.case_id for item in again.racing.dropped] == ["far~none~home"]

"""Verdicts on published conclusions."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from bench.measure.records.folder import Run
from bench.verify.outcome import Outcome
from bench.words import INCONCLUSIVE, NOT_MEASURED
from reproductions.conclusions import HOLDS, NOT, conclusions
from reproductions.figures import Figures
from tests.bench.measure.records.run_data import ENVIRONMENT, INFO, TRIAL, changed
from tests.bench.measure.records.run_data import failed as failed_trial
from tests.bench.measure.report.faults.fault_folder import outcome
from tests.reproductions.tiny import publication

RATES = {"fast": 200.0, "slow": 100.0, "alike": 101.0}


def trial(stack, number, rate, level=16, **changes):
    name = f"{stack}~none~{changes.get('workload', 'home')}~unlimited~sqlite"
    result = changed(
        TRIAL, trial_id=f"{name}~{level}~r{number}", case_id=name, stack=stack, round=number, level_connections=level,
        requests_per_second=rate, memory_peak_bytes={"it": int(1000 * rate)}, memory_idle_bytes={"it": 50_000},
    )  # fmt: skip
    return changed(result, **changes)


def run(trials, checks=(), levels=(16,)):
    info = replace(INFO, plan=replace(INFO.plan, levels=levels, rounds=3), skips=())
    return Run(Path("run"), info, ENVIRONMENT, tuple(trials), tuple(checks))


def rounds(rates=RATES, count=3, noise=0.01, **how):
    draw = random.Random(1)
    return [
        trial(stack, number, rate * draw.uniform(1 - noise, 1 + noise), **how)
        for number in range(1, count + 1)
        for stack, rate in rates.items()
    ]


def judged(claim, runs, **also):
    (conclusion,) = conclusions(publication(claims=[{"claim": "It is so.", **claim}]), Figures(runs, **also))
    return conclusion


def sides(left, right, **bounds):
    return {"left": {"stack": left}, "right": {"stack": right}, **bounds}


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (sides("fast", "slow", at_least=1.5), HOLDS),
        (sides("fast", "slow", at_least=3), NOT),
        (sides("fast", "slow", at_least=2), INCONCLUSIVE),
        (sides("alike", "slow", at_least=0.9, at_most=1.1), HOLDS),
        (sides("fast", "slow", at_least=0.9, at_most=1.1), NOT),
        (sides("fast", "slow", at_least=1.5, metric="memory_total"), HOLDS),
        (sides("fast", "gone", at_least=1), NOT_MEASURED),
        ({"left": {"stack": "slow"}, "right": {"stacks": ["fast", "alike", "gone"]}, "at_most": 0.9}, HOLDS),
        ({"order": [{"stack": "slow"}, {"stack": "fast"}, {"stack": "alike"}], "at_least": 1}, NOT),
        ({"order": [{"stack": "slow"}, {"stack": "fast"}], "at_least": 1}, HOLDS),
        ({"order": [{"stack": "slow"}, {"stack": "gone"}], "at_least": 1}, NOT_MEASURED),
        ({"untested": "it is gone"}, NOT_MEASURED),
    ],
)  # fmt: skip
def test_a_claim_about_ratios_is_judged_by_its_whole_interval(claim, verdict):
    conclusion = judged(claim, [run(rounds())])
    assert conclusion.verdict == verdict
    assert verdict not in (HOLDS, NOT) or conclusion.low <= conclusion.ratio <= conclusion.high


def test_places_that_differ_in_what_is_requested_are_named_with_their_stack():
    home = [trial("fast", number, 200.0 + number, workload="home") for number in (1, 2, 3)]
    login = [trial("fast", number, 100.0 + number, workload="login") for number in (1, 2, 3)]
    claim = {
        "left": {"stack": "fast", "workload": "home"},
        "right": {"stack": "fast", "workload": "login"},
        "at_least": 1,
    }
    conclusion = judged(claim, [run([*home, *login])])
    assert conclusion.verdict == HOLDS
    assert conclusion.says == "fast on home to fast on login, requests per second"


def test_one_round_and_wrong_responses_prove_nothing():
    claim = sides("fast", "slow", at_least=1)
    assert judged(claim, [run(rounds(count=1))]).verdict == INCONCLUSIVE
    wrong = Outcome("fast", "none", "content", ok=False, expected="a page", got="another")
    assert judged(claim, [run(rounds(), [wrong])]).says == "fast on home: it gave wrong responses"


def test_discarded_trials_count_for_nothing():
    discarded = [replace(it, status="discarded", reason="interference: busy") for it in rounds()]
    conclusion = judged(sides("fast", "slow", at_least=1), [run(discarded)])
    assert (conclusion.verdict, conclusion.says) == (NOT_MEASURED, "fast on home: discarded: interference: busy")


def test_levels_are_named_or_picked_by_round():
    trials = [*rounds({"fast": 50.0, "slow": 100.0}, level=8), *rounds({"fast": 400.0, "slow": 90.0}, level=32)]
    recorded = run(trials, levels=(8, 32))
    picks = {"highest": {}, "8": {"level": 8}, "max": {"pick": "max"}, "min": {"pick": "min"}}
    claims = {name: {side: {"stack": side, **pick} for side in ("fast", "slow")} for name, pick in picks.items()}
    ratios = {
        name: judged({"left": claim["fast"], "right": claim["slow"], "at_least": 1}, [recorded]).ratio
        for name, claim in claims.items()
    }
    wanted = {"highest": 400 / 90, "8": 0.5, "max": 4.0, "min": 50 / 90}
    assert ratios == {name: pytest.approx(ratio, rel=0.03) for name, ratio in wanted.items()}


def test_two_runs_are_compared_without_pairing_their_rounds():
    other = [replace(it, database="postgresql") for it in rounds({"slow": 150.0})]
    runs = [run(rounds()), run(other)]
    sides = {"left": {"stack": "slow", "database": "postgresql"}, "right": {"stack": "slow", "database": "sqlite"}}
    assert judged({**sides, "at_least": 1.2}, runs).verdict == HOLDS


@pytest.mark.parametrize(
    ("changes", "claim", "verdict"),
    [
        ({}, {"rating": "HIGH"}, HOLDS),
        ({"errors_read": 100}, {"rating": "HIGH"}, NOT),
        ({"requests_per_second": 900.0}, {"rating": "HIGH"}, INCONCLUSIVE),  # the machine may have done that
        ({"errors_read": 100}, {"rating": "LOW", "because": ["kills"]}, INCONCLUSIVE),
        ({"oom_kills": 1}, {"rating": "LOW", "because": ["kills"]}, HOLDS),
        ({}, {"rating": "LOW", "began_at_request": 3000}, INCONCLUSIVE),
    ],
)
def test_a_rating_by_the_spread_of_rounds_only_proves_nothing(changes, claim, verdict):
    first, *others = rounds({"slow": 100.0})
    recorded = run([changed(first, **changes), *others])
    assert judged({"left": {"stack": "slow"}, **claim}, [recorded]).verdict == verdict


@pytest.mark.parametrize("fails", [True, False])
def test_errors_and_failed_loads_are_failures(fails):
    claim = {"left": {"stack": "slow"}, "fails": fails}
    good = rounds({"slow": 100.0})
    discarded = changed(good[0], status="discarded", reason="drift: it was slower at its end", errors_read=1)
    for recorded, failed in ((good, False), ([failed_trial(good[0]), *good[1:]], True), ([discarded], True)):
        assert judged(claim, [run(recorded)]).verdict == (HOLDS if failed == fails else NOT)


def test_how_far_a_load_gets_needs_loads_that_fail():
    def far(stack, *responses):
        return [
            failed_trial(trial(stack, n, 1.0), responses_before_failure=count) for n, count in enumerate(responses, 1)
        ]

    claim = sides("fast", "slow", survives=1.5)
    assert judged(claim, [run([*far("fast", 6000, 6500), *far("slow", 3000, 3300)])]).verdict == HOLDS
    assert judged(claim, [run([*far("fast", 3000, 3500), *far("slow", 3000, 3300)])]).verdict == NOT
    assert judged(claim, [run([*far("fast", 6000, 6500), *rounds({"slow": 1.0})])]).verdict == INCONCLUSIVE


def test_faults_and_checks():
    lost = [replace(outcome("one", "configuration", number), failed_new=number - 1) for number in (1, 2)]
    claim = {"left": {"stack": "one"}, "loses": "configuration"}
    assert judged(claim, [], outcomes=lost).verdict == NOT
    kept = [replace(it, failed_new=0, failed_kept=0) for it in lost]
    assert [judged(claim, [], outcomes=outcomes).verdict for outcomes in (kept, kept[:1], [])] == [
        HOLDS,
        INCONCLUSIVE,
        NOT_MEASURED,
    ]
    check = Outcome("one", "none", "shared-cache", ok=True, expected="", got="")
    claim = {"left": {"stack": "one"}, "check": "shared-cache", "says": "it is shared"}
    assert judged(claim, [run([], [check])]).says == "it is shared"
    assert judged(claim, [run([], [replace(check, ok=False)])]).verdict == NOT
    assert judged(claim, []).verdict == NOT_MEASURED

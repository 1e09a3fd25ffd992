"""Which cases get further rounds: those of open claims that more rounds may decide."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from bench.report.arrange import arrange
from bench.report.reproduction.measured import MeasuredFigures
from bench.report.reproduction.undecided import undecided
from bench.results.folder import Run
from bench.results.records import Case, Outcome
from tests.bench.results.run_data import ENVIRONMENT, INFO, TRIAL, failed

HERE = {"layer": "none", "workload": "home", "size": "unlimited"}
CASES = {
    name: Case(f"{name}~none~home~unlimited~sqlite", name, "none", "home", "unlimited", "sqlite") for name in "abc"
}
SIDES = {"left": {"stack": "a"}, "right": {"stack": "b"}}
BOTH = [(CASES["a"].case_id, 16), (CASES["b"].case_id, 16)]


def measured(tmp_path, figures, statuses=(), checks=(), answers=None, levels=(16,)):
    """Of a run in which each stack has these figures round by round."""
    statuses = dict(statuses)
    trials = []
    for (name, rates), level in product(figures.items(), levels):
        for number, rate in enumerate(rates, 1):
            case = CASES[name]
            made = replace(
                TRIAL, trial_id=f"{case.case_id}~{level}~r{number}", case_id=case.case_id, stack=name, layer="none",
                workload="home", size="unlimited", database="sqlite", level_connections=level, round=number,
                requests_per_second=float(rate),
            )  # fmt: skip
            status = statuses.get((name, number), "ok")
            trials.append(
                replace(failed(made), answers_before_failure=answers)
                if status == "failed"
                else replace(made, status=status, reason=None if status == "ok" else "drift")
            )
    plan = replace(INFO.plan, levels=levels, workloads=("home",), sizes=("unlimited",), database="sqlite")
    info = replace(INFO, plan=plan, cases=tuple(CASES[name] for name in figures), skips=())
    return MeasuredFigures([arrange(Run(tmp_path, info, ENVIRONMENT, tuple(trials), tuple(checks)))])


def of(claim, found):
    return undecided({"here": HERE, "claims": [claim]}, found)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([100, 120, 80], [100, 90, 110], {0: BOTH}),  # which is faster?
        ([200, 201, 202], [100, 101, 102], {}),  # it holds
        ([100, 101, 102], [200, 201, 202], {}),  # it does not
    ],
)
def test_both_sides_of_an_open_claim_and_nobody_else(tmp_path, left, right, expected):
    found = measured(tmp_path, {"a": left, "b": right, "c": [1, 2, 3]})
    assert of({"claim": "x", **SIDES, "at_least": 1}, found) == expected


def test_of_an_order_only_the_open_steps(tmp_path):
    found = measured(tmp_path, {"a": [100, 120, 80], "b": [100, 90, 110], "c": [1000, 1001, 1002]})
    claim = {"claim": "x", "order": [{"stack": "a"}, {"stack": "b"}, {"stack": "c"}], "at_least": 1}
    assert {case for case, _ in of(claim, found)[0]} == {case for case, _ in BOTH}


def test_a_side_of_voided_trials_alone_is_measured_again(tmp_path):
    voided = {("a", number): "voided" for number in (1, 2, 3)}
    assert of({"claim": "x", **SIDES, "at_least": 1}, measured(tmp_path, {"a": [1, 1, 1], "b": [9, 9, 9]}, voided)) == {
        0: BOTH
    }


def test_what_more_rounds_do_not_change_gets_none(tmp_path):
    lost = {("a", number): "failed" for number in (1, 2, 3)}
    claim = {"claim": "x", **SIDES, "at_least": 1}
    figures = {"a": [100, 120, 80], "b": [100, 90, 110]}
    assert of(claim, measured(tmp_path, figures, lost)) == {}
    assert of(claim, measured(tmp_path, figures, checks=[Outcome("a", "none", "content", False)])) == {}
    assert of(claim, measured(tmp_path, {"a": [100, 120, 80]})) == {}
    assert of({"claim": "x", "rating": "HIGH", "left": {"stack": "a"}}, measured(tmp_path, figures)) == {}


def test_a_median_of_stacks_is_measured_on_all_of_them(tmp_path):
    found = measured(tmp_path, {"a": [100, 120, 80], "b": [100, 90, 110], "c": [90, 110, 100]})
    claim = {"claim": "x", "left": {"stack": "a"}, "right": {"stacks": ["b", "c"]}, "at_least": 1}
    assert len(of(claim, found)[0]) == 3


OF_TRIALS = [{"rating": "HIGH"}, {"fails": True}, {"fails": False}]


@pytest.mark.parametrize("kind", OF_TRIALS, ids=str)
def test_a_claim_about_single_trials_gets_more_where_too_few_count(tmp_path, kind):
    claim = {"claim": "x", **kind, "left": {"stack": "a"}}
    voided = {("a", 1): "voided", ("a", 2): "voided"}
    left = {0: BOTH[:1]}
    assert of(claim, measured(tmp_path, {"a": [1, 2, 3]}, voided)) == left
    assert of(claim, measured(tmp_path, {"a": [1]})) == left
    assert of(claim, measured(tmp_path, {"a": [1, 2, 3]}, {("a", 1): "voided"})) == {}
    assert of(claim, measured(tmp_path, {"a": [1, 2, 3]}, {("a", number): "failed" for number in (1, 2, 3)})) == {}


def test_a_rating_takes_all_levels_of_its_case(tmp_path):
    found = measured(tmp_path, {"a": [1, 2]}, {("a", 1): "voided"}, levels=(8, 16))
    case = CASES["a"].case_id
    assert set(of({"claim": "x", "rating": "HIGH", "left": {"stack": "a"}}, found)[0]) == {(case, 8), (case, 16)}
    assert of({"claim": "x", "fails": False, "left": {"stack": "a"}}, found) == {0: [(case, 16)]}


def test_of_loads_that_fail_only_a_side_with_too_few_trials(tmp_path):
    """How far it gets is no ratio of requests/s: its failed trials count."""
    claim = {"claim": "x", **SIDES, "survives": 1.5}
    lost = {(name, number): "failed" for name in "ab" for number in (1, 2)}
    figures = {"a": [1, 1], "b": [1, 1]}
    assert of(claim, measured(tmp_path, figures, lost, answers=9)) == {}
    assert of(claim, measured(tmp_path, figures, {**lost, ("a", 1): "voided"}, answers=9)) == {0: BOTH[:1]}

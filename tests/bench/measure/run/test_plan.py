"""The plan: cases, skips, and the order of measurements."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby, product

import pytest

from bench.errors import BenchError
from bench.measure.records.records import CaseRecord
from bench.measure.run import plan
from bench.serve.catalog import sizes
from bench.serve.deployment.case import CannotRun
from bench.verify.outcome import Skip
from tests.bench.measure.records.run_data import INFO
from tests.bench.measure.run.fake_sites import fake_case


def case(stack, layer="none", workload="home"):
    record = CaseRecord("~".join((stack, layer, workload)), stack, layer, workload, "unlimited", "sqlite")
    return plan.MeasuredCase(record, fake_case(stack, layer))


CASES = [case(stack, layer, work) for stack in "abc" for layer in ("none", "x") for work in ("home", "login")]


def test_each_round_starts_each_deployment_once_for_all_its_cases():
    every = []
    for number in (1, 2, 3):
        order = plan.round_of(CASES, [8, 16], number, seed=1)
        begun = [deployment for deployment, _ in groupby(item.deployment for item in order)]
        assert Counter((item.stack, item.layer) for item in begun) == Counter(product("abc", ("none", "x")))
        assert {item.round for item in (*order, *begun)} == {number}
        every += [item.key for item in order]
    assert len(every) == len(set(every)) == len(CASES) * 2 * 3


def test_the_order_is_shuffled_in_each_round_by_the_seed():
    def keys(seed, number):
        return [(item.case.stack, item.case.layer) for item in plan.round_of(CASES, [1], number, seed)]

    orders = {tuple(keys(seed, number)) for seed in range(5) for number in (1, 2, 3)}
    assert len(orders) > 10
    assert keys(7, 2) == keys(7, 2)


def test_each_stack_and_layer_is_resolved_once_and_its_cases_carry_it(monkeypatch):
    monkeypatch.setattr(sizes, "problem", lambda size: "run it as root" if size.is_limited else "")
    resolutions = Counter()

    def resolve(stack, layer):
        resolutions[stack, layer] += 1
        if (stack, layer) == ("b", "x"):
            return CannotRun("no server of its chain serves files")
        return fake_case(stack, layer)

    wanted = replace(INFO.plan, stacks=("a", "b"), layers=("none", "x"), workloads=("home", "login"))
    wanted = replace(wanted, sizes=("unlimited", "bronze"))
    cases, skips = plan.cases(wanted, resolve)
    assert set(resolutions.values()) == {1}
    assert [(item.record.stack, item.record.layer, item.record.workload) for item in cases] == [
        *(("a", "none", "home"), ("a", "none", "login"), ("a", "x", "home"), ("a", "x", "login")),
        *(("b", "none", "home"), ("b", "none", "login")),
    ]
    assert {item.served.stack.name == item.record.stack for item in cases} == {True}
    assert Skip("b", "x", None, "no server of its chain serves files") in skips
    assert Skip("a", "x", None, "size bronze is not available here: run it as root", "bronze") in skips
    again = plan.recorded([item.record for item in cases], resolve)
    assert [item.record for item in again] == [item.record for item in cases]


def test_a_case_that_cannot_run_any_more_is_refused():
    with pytest.raises(BenchError, match="a with layer none cannot run here now: program not installed: server"):
        plan.recorded([case("a").record], lambda *_: CannotRun("program not installed: server"))


def test_a_size_that_is_gone_is_refused():
    with pytest.raises(BenchError, match="--size s: no such size"):
        plan.recorded([replace(case("a").record, size="s")], fake_case)

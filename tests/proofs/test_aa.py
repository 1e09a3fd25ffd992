"""The judgement of a stack measured against itself."""

from __future__ import annotations

from types import SimpleNamespace

from tests.proofs import aa


def trials(stack, workload, *rates):
    return [
        SimpleNamespace(stack=stack, workload=workload, round=number, status="ok", requests_per_second=rate)
        for number, rate in enumerate(rates, 1)
    ]


def test_every_five_rounds_of_a_workload_are_one_comparison():
    made = [
        *trials("a", "home", 100, 90, 110, 100, 95, 100, 100, 100, 100, 100),
        *trials("a@processes=4", "home", 98, 91, 109, 103, 95, 200, 210, 200, 205, 200),
    ]
    made[0].status = "voided"
    plan = SimpleNamespace(stacks=("a", "a@processes=4"), workloads=("home", "login"), rounds=10)
    run = SimpleNamespace(info=SimpleNamespace(plan=plan), trials=made)
    found = list(aa.comparisons(run, 0.05))
    assert [(name, comparison.rounds, comparison.verdict) for name, comparison in found] == [
        ("home, rounds 1 to 5", 4, "inconclusive"),
        ("home, rounds 6 to 10", 5, "faster"),
    ]
    assert [comparison.verdict for _, comparison in aa.comparisons(run, 0.05, 1.5)] == ["faster", "faster"]
    assert [comparison.verdict for _, comparison in aa.comparisons(run, 0.05, 0.5)] == ["slower", "inconclusive"]

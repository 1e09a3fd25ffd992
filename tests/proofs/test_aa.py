"""The judgement of a stack measured against itself."""

from __future__ import annotations

from types import SimpleNamespace

from tests.proofs import aa


def trials(stack, workload, *rates):
    return [
        SimpleNamespace(stack=stack, workload=workload, round=number, status="ok", throughput=rate)
        for number, rate in enumerate(rates, 1)
    ]


def test_every_five_rounds_of_a_workload_are_one_comparison():
    measured = [
        *trials("a", "home", 100, 90, 110, 100, 95, 100, 100, 100, 100, 100),
        *trials("a@processes=4", "home", 98, 91, 109, 103, 95, 200, 210, 200, 205, 200),
    ]
    measured[0].status = "discarded"
    plan = SimpleNamespace(stacks=("a", "a@processes=4"), workloads=("home", "login"), rounds=10)
    run = SimpleNamespace(info=SimpleNamespace(plan=plan), trials=measured)

    def verdicts(factor):
        decisions = [(name, table.decide()) for name, table in aa.comparisons(run, factor)]
        return [(name, it.verdict, it.best if it.verdict == "leads" else None) for name, it in decisions]

    names = "home, rounds 1 to 5", "home, rounds 6 to 10"
    assert verdicts(1.0) == [(names[0], "ties", None), (names[1], "leads", "second")]
    assert verdicts(1.5) == [(name, "leads", "second") for name in names]
    assert verdicts(0.5) == [(names[0], "leads", "first"), (names[1], "ties", None)]

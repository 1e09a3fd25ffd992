"""What is made and in what order: each deployment is brought up once a round, and its faults are made one by one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.catalog import catalog, sizes
from bench.errors import BenchError
from bench.faults import judge, kinds
from bench.faults.fault import Fault
from bench.measure import guards
from bench.measure import plan as planning
from bench.measure.plan import Batch, Request, Resolve
from bench.records.faults import FaultOutcome
from bench.records.records import NO_LAYER, Plan
from bench.serve.case import CannotRun, Case


@dataclass(frozen=True)
class Item:
    """One fault to be made on one deployment in one round; its outcome before it is made."""

    fault: Fault
    outcome: FaultOutcome

    @property
    def key(self) -> str:
        """What a ledger knows it by."""
        return self.outcome.fault_id


@dataclass(frozen=True)
class Faults:
    """All of a plan: the deployments of each round, and the outcomes of what cannot be made on them."""

    batches: tuple[Batch, ...]
    skipped: tuple[FaultOutcome, ...]


def make_plan(request: Request, names: tuple[str, ...]) -> Plan:
    """The plan of faults and groups of these names, with its defaults. Raises BenchError for what does not exist."""
    faults = kinds.named(names)
    bounds = guards.bounds(list(request.guards), judge.BOUNDS)
    plan = planning.make_plan(
        replace(request, layers=request.layers or (NO_LAYER,), rounds=request.rounds or 1, guards=())
    )
    if problem := sizes.problem(catalog.read().size(plan.size)):
        raise BenchError(f"--size {plan.size} is not available here: {problem}")
    return replace(
        plan,
        workloads=(),
        levels=(),
        duration_s=0.0,
        order_seed=None,
        latency=False,
        guards=bounds,
        faults=tuple(fault.name for fault in faults),
        named=tuple(name for name in names if name in kinds.FAULTS),
    )


def faults_of(plan: Plan, faults: Sequence[Fault], resolve: Resolve) -> Faults:
    """All of the plan. Faults that need other values than the rest have a deployment of their own."""
    batches: list[Batch] = []
    skipped: list[FaultOutcome] = []
    cases = {(stack, layer): resolve(stack, layer) for stack in plan.stacks for layer in plan.layers}
    for number, ((stack, layer), case) in itertools.product(range(1, plan.rounds + 1), cases.items()):
        items: dict[tuple[tuple[str, object], ...], list[Item]] = {}
        for fault in faults:
            named = (stack, layer, plan.size, plan.database)
            key = "~".join((*named, fault.name, f"r{number}"))
            outcome = FaultOutcome(key, *named, fault.name, fault.group, number, started_at="", status="ok")
            if isinstance(case, CannotRun) or fault.misfit(case):
                why = case.reason if isinstance(case, CannotRun) else fault.misfit(case)
                skipped.append(replace(outcome, status="skipped", reason=why))
                continue
            # A check of `verify` of the same name shows the same.
            declared = {item.check: item.reason for item in case.declares} | case.breaks
            item = Item(fault, replace(outcome, declared=declared.get(fault.name)))
            items.setdefault(tuple(sorted(fault.changes.items())), []).append(item)
        for changes, its in items.items():
            changed = case.changed(dict(changes)) if isinstance(case, Case) else case
            assert isinstance(changed, Case)
            batches.append(Batch(changed, number, tuple(its)))
    return Faults(tuple(batches), tuple(skipped))

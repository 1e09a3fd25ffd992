"""What a run measures and in what order: cases and skips from the plan, batches shuffled in each round."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from bench.catalog.sizes import Size
from bench.errors import BenchError
from bench.results import records
from bench.results.records import Plan, Skip
from bench.serve import render
from bench.serve.case import CannotRun, Case


@dataclass(frozen=True)
class PlannedCase:
    """A case under a workload: as results name it, and as it is served."""

    record: records.Case
    served: Case


@dataclass(frozen=True)
class Measurement:
    """One trial to be made: a case at a level in a round."""

    case: records.Case
    level: int
    round: int

    @property
    def trial_id(self) -> str:
        """The name of the trial and of its directory."""
        return f"{self.case.case_id}~{self.level}~r{self.round}"


@dataclass(frozen=True)
class Batch:
    """A case that is brought up once in a round, and what is measured on it, in this order."""

    case: Case
    round: int
    measurements: tuple[Measurement, ...]

    @property
    def stack(self) -> str:
        return self.case.stack.name

    @property
    def layer(self) -> str:
        return self.case.layer_name

    @property
    def name(self) -> str:
        """The name of its directories."""
        size = self.case.size
        return f"{self.stack}~{self.layer}" + (f"~{size.name}" if size.is_limited else "")


# The case of a stack and a layer without limits, or why it cannot run here.
Resolve = Callable[[str, str], Case | CannotRun]
# The size of a name; raises BenchError when there is none.
SizeOf = Callable[[str], Size]


def cases(
    plan: Plan, resolve: Resolve, size_of: SizeOf, problem: Callable[[Size], str] = lambda size: ""
) -> tuple[tuple[PlannedCase, ...], tuple[Skip, ...]]:
    """The cases that can run here, and the skips with their reasons; each stack and layer is resolved once.

    `problem` says why a size is not available here, or nothing. Raises BenchError when no case can run here.
    """
    found: list[PlannedCase] = []
    skips: list[Skip] = []
    sizes = [size_of(name) for name in plan.sizes]
    problems = {size.name: problem(size) for size in sizes}
    for stack in plan.stacks:
        for layer in plan.layers:
            case = resolve(stack, layer)
            if isinstance(case, CannotRun):
                skips.append(Skip(stack, layer, None, case.reason))
                continue
            for size in sizes:
                if why := problems[size.name]:
                    skips.append(Skip(stack, layer, None, f"size {size.name} is not available here: {why}", size.name))
                    continue
                served = replace(case, size=size)
                found += [PlannedCase(record(served, name), served) for name in plan.workloads]
    if not found:
        first = skips[0]
        raise BenchError(f"nothing to measure here: {first.stack} with layer {first.layer}: {first.reason}")
    return tuple(found), tuple(skips)


def record(case: Case, workload: str) -> records.Case:
    """A case under a workload, as results name it."""
    stack, layer, size, database = case.stack.name, case.layer_name, case.size.name, case.database.label
    return records.Case(
        "~".join((stack, layer, workload, size, database)),
        stack,
        layer,
        workload,
        size,
        database,
        case.notes,
        case.stack.python,
        needs_proxy=not render.has_tls(case.servers[-1], case),
        caches=case.caches,
    )


def recorded(found: Iterable[records.Case], resolve: Resolve, size_of: SizeOf) -> tuple[PlannedCase, ...]:
    """The cases of a run that is resumed. Raises BenchError for a case that cannot run here any more."""
    known: dict[tuple[str, str], Case] = {}
    planned = []
    for item in found:
        key = (item.stack, item.layer)
        if key not in known:
            case = resolve(*key)
            if isinstance(case, CannotRun):
                raise BenchError(f"{item.stack} with layer {item.layer} cannot run here now: {case.reason}")
            known[key] = case
        planned.append(PlannedCase(item, replace(known[key], size=size_of(item.size))))
    return tuple(planned)


def schedule(
    cases: Sequence[PlannedCase],
    levels: Sequence[int],
    rounds: int,
    seed: int,
    added: Iterable[records.Added] = (),
) -> list[Batch]:
    """Every batch of every round in the order in which they are brought up, the same for the same seed.

    The measurements of a batch are shuffled too. Machines warm up and drift: in a fixed order the same stack would
    always be measured first. `added` are measured in rounds after the others.
    """
    order = []
    beyond = {(item.case_id, item.level, item.round) for item in added}
    for number in range(1, max((rounds, *(item for *_, item in beyond))) + 1):
        draw = random.Random(f"{seed}/{number}")
        keys = list(dict.fromkeys((case.record.stack, case.record.layer, case.record.size) for case in cases))
        draw.shuffle(keys)
        for stack, layer, size in keys:
            its = [c for c in cases if (c.record.stack, c.record.layer, c.record.size) == (stack, layer, size)]
            measurements = [
                Measurement(case.record, level, number)
                for case in its
                for level in levels
                if number <= rounds or (case.record.case_id, level, number) in beyond
            ]
            draw.shuffle(measurements)
            if measurements:
                order.append(Batch(its[0].served, number, tuple(measurements)))
    return order

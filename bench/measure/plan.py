"""What a run measures and in what order: cases and skips from the plan, batches shuffled in each round."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.catalog.compose import CannotRun, Composition
from bench.catalog.sizes import UNLIMITED
from bench.errors import BenchError
from bench.results import records
from bench.results.records import Plan, Skip
from bench.serve import render


@dataclass(frozen=True)
class ComposedCase:
    """A case as results name it, and the composition it is served by."""

    record: records.Case
    composition: Composition


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
    """A composition that is brought up once in a round, and what is measured on it, in this order."""

    composition: Composition
    stack: str
    layer: str
    size: str
    round: int
    measurements: tuple[Measurement, ...]

    @property
    def name(self) -> str:
        """The name of its directories."""
        return f"{self.stack}~{self.layer}" + ("" if self.size == UNLIMITED else f"~{self.size}")


Compose = Callable[[str, str], Composition | CannotRun]


def cases(
    plan: Plan, compose: Compose, size_problem: Callable[[str], str] = lambda size: ""
) -> tuple[tuple[ComposedCase, ...], tuple[Skip, ...]]:
    """The cases that can run here, and the skips with their reasons; each stack and layer is composed once.

    `size_problem` says why a size is not available here, or nothing. Raises BenchError when no case can run here.
    """
    found: list[ComposedCase] = []
    skips: list[Skip] = []
    problems = {size: size_problem(size) for size in plan.sizes}
    for stack in plan.stacks:
        for layer in plan.layers:
            composed = compose(stack, layer)
            if isinstance(composed, CannotRun):
                skips.append(Skip(stack, layer, None, composed.reason))
                continue
            for size in plan.sizes:
                if problems[size]:
                    skips.append(Skip(stack, layer, None, f"size {size} is not available here: {problems[size]}", size))
                    continue
                for workload in plan.workloads:
                    found.append(ComposedCase(record(stack, layer, workload, size, plan.database, composed), composed))
    if not found:
        first = skips[0]
        raise BenchError(f"nothing to measure here: {first.stack} with layer {first.layer}: {first.reason}")
    return tuple(found), tuple(skips)


def record(stack: str, layer: str, workload: str, size: str, database: str, composed: Composition) -> records.Case:
    """The case of a composition, as results name it."""
    case_id = "~".join((stack, layer, workload, size, database))
    return records.Case(
        case_id,
        stack,
        layer,
        workload,
        size,
        database,
        composed.notes,
        composed.stack.python,
        needs_proxy=not render.has_tls(composed.servers[-1], composed),
        caches=composed.caches,
    )


def recomposed(recorded: Iterable[records.Case], compose: Compose) -> tuple[ComposedCase, ...]:
    """The cases of a run that is resumed. Raises BenchError for a case that cannot run here any more."""
    known: dict[tuple[str, str], Composition] = {}
    found = []
    for record in recorded:
        key = (record.stack, record.layer)
        if key not in known:
            composed = compose(*key)
            if isinstance(composed, CannotRun):
                raise BenchError(f"{record.stack} with layer {record.layer} cannot run here now: {composed.reason}")
            known[key] = composed
        found.append(ComposedCase(record, known[key]))
    return tuple(found)


def schedule(
    cases: Sequence[ComposedCase],
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
                order.append(Batch(its[0].composition, stack, layer, size, number, tuple(measurements)))
    return order

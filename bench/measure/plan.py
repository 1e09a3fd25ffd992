"""What a run measures and in what order: cases and skips from what is asked for, deployments shuffled in each round."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.catalog.compose import Composition
from bench.errors import BenchError
from bench.results.records import Case, Plan, Skip


@dataclass(frozen=True)
class Measurement:
    """One trial to be made: a case at a level in a round."""

    case: Case
    level: int
    round: int

    @property
    def trial_id(self) -> str:
        """The name of the trial and of its directory."""
        return f"{self.case.case_id}~{self.level}~r{self.round}"


@dataclass(frozen=True)
class Deployment:
    """A stack with a layer to be brought up once in a round, and what is then measured on it, in this order."""

    stack: str
    layer: str
    size: str
    round: int
    measurements: tuple[Measurement, ...]

    @property
    def name(self) -> str:
        """What its directories are called."""
        return f"{self.stack}~{self.layer}" + ("" if self.size == "unlimited" else f"~{self.size}")


def cases(
    plan: Plan,
    compose: Callable[[str, str], Composition | object],
    size_problem: Callable[[str], str] = lambda size: "",
) -> tuple[tuple[Case, ...], tuple[Skip, ...]]:
    """The cases that can run here, and what cannot with its reason.

    `compose` gives a Composition for the names of a stack and a layer, or something with a `reason`;
    `size_problem` says why a size cannot be had here, or an empty string. Raises BenchError when nothing at all can run
    here.
    """
    found: list[Case] = []
    skips: list[Skip] = []
    problems = {size: size_problem(size) for size in plan.sizes}
    for stack in plan.stacks:
        for layer in plan.layers:
            composed = compose(stack, layer)
            if not isinstance(composed, Composition):
                skips.append(Skip(stack, layer, None, composed.reason))
                continue
            for size in plan.sizes:
                if problems[size]:
                    skips.append(Skip(stack, layer, None, f"size {size} cannot be had here: {problems[size]}", size))
                    continue
                found += [_case(stack, layer, workload, size, plan.database, composed) for workload in plan.workloads]
    if not found:
        first = skips[0]
        raise BenchError(f"nothing to measure here: {first.stack} with layer {first.layer}: {first.reason}")
    return tuple(found), tuple(skips)


def _case(stack: str, layer: str, workload: str, size: str, database: str, composed: Composition) -> Case:
    case_id = "~".join((stack, layer, workload, size, database))
    return Case(case_id, stack, layer, workload, size, database, composed.notes)


def schedule(cases: Sequence[Case], levels: Sequence[int], rounds: int, seed: int) -> list[Deployment]:
    """Every deployment of every round in the order in which they are brought up, the same for the same seed.

    What is measured on a deployment is shuffled too. Machines warm up and drift: in a fixed order the same stack would
    always be measured first.
    """
    order = []
    for number in range(1, rounds + 1):
        draw = random.Random(f"{seed}/{number}")
        keys = list(dict.fromkeys((case.stack, case.layer, case.size) for case in cases))
        draw.shuffle(keys)
        for key in keys:
            its = [case for case in cases if (case.stack, case.layer, case.size) == key]
            measurements = [Measurement(case, level, number) for case in its for level in levels]
            draw.shuffle(measurements)
            order.append(Deployment(*key, number, tuple(measurements)))
    return order

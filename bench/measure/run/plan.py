"""The plan of a run: from the request to cases, skips and shuffled rounds."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from bench.errors import BenchError
from bench.measure.records import records
from bench.measure.records.records import Plan
from bench.measure.run import replay, workload
from bench.measure.run.guards import BOUNDS
from bench.measure.stats import MARGIN, rate_search
from bench.measure.stats.rate_search import Limit
from bench.serve.catalog import catalog, sizes
from bench.serve.catalog.names import NO_LIMIT, variants
from bench.serve.deployment.case import CannotRun, Case
from bench.serve.deployment.database import Database
from bench.serve.project import refs
from bench.serve.project.opened import UnderTest
from bench.verify.outcome import Skip

LEVEL = 16
ROUNDS = 5
# A run until decided measures few cases in its later rounds.
ROUNDS_UNTIL_DECIDED = 20
DURATION_S = 10
# A capacity takes many trials.
CAPACITY_DURATION_S = 5
MAX_CONNECTIONS = 10_000
MAX_ROUNDS = 10_000
MAX_SECONDS = 86_400


@dataclass(frozen=True)
class Request:
    """A request to measure; None and empty mean the default.

    levels    connections of a closed loop
    rates     requests a second of an open loop; a float replays a recording at this multiple of its speed
    changes   name of a value -> its value
    env       name of a variable of the project -> its text
    refs      commits of the project, each served by each stack
    same_responses  whether a case fails if its pages differ from the first commit's
    pythons   versions of other Pythons, each used for each stack
    guards    guard -> its bound
    capacity  latency limit for the highest rate
    until_decided  whether cases are dropped once they cannot be the best; `rounds` becomes a maximum
    budget_s  time limit for the rounds of a run until decided
    tunes     the stack to tune
    latency   whether closed-loop rounds are followed by trials at one rate for all cases
    command   the command line, without passwords
    """

    project: UnderTest
    database: Database
    stacks: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    rates: tuple[int | float, ...] = ()
    rounds: int | None = None
    duration_s: int | None = None
    sizes: tuple[str, ...] = ()
    tool: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, int | str] = field(default_factory=dict)
    pythons: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    same_responses: bool = False
    margin: float | None = None
    guards: Mapping[str, float] = field(default_factory=BOUNDS.copy)
    capacity: Limit | None = None
    until_decided: bool = False
    budget_s: int | None = None
    tunes: str = ""
    latency: bool = True
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasuredCase:
    """A case under a workload: its record in results, and its served form."""

    record: records.CaseRecord
    served: Case


@dataclass(frozen=True, eq=False)
class Deployment:
    """A case brought up once in a round for all of its measurements."""

    case: Case
    round: int

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
        if size.is_limited:
            return f"{self.stack}~{self.layer}~{size.name}"
        return f"{self.stack}~{self.layer}"


@dataclass(frozen=True)
class Measurement:
    """One planned trial: a case at a level in a round.

    rate     requests due a second, in place of the level's connections: only after the rounds of a closed loop
    seconds  duration of the load, if different from the plan's
    """

    case: records.CaseRecord
    level: int
    round: int
    deployment: Deployment
    rate: int | None = None
    seconds: int | None = None

    @property
    def key(self) -> str:
        """The name of the trial and of its directory."""
        load = f"{self.level}"
        if self.rate:
            load = f"rate{self.rate}"
        return f"{self.case.case_id}~{load}~r{self.round}"


# The case of a stack and a layer without limits, or why it cannot run here.
Resolve = Callable[[str, str], Case | CannotRun]


# ------------------------------------------------------------------------------------- from request to plan


def make_plan(request: Request) -> Plan:
    """The plan of a run with its defaults. Raises BenchError for contradictory options."""
    known, project = catalog.read(), request.project
    commits = refs.choose(project.folder, request.refs)
    project.use_refs(commits)
    labelled = {ref.label: ref.commit for ref in commits}
    if request.same_responses and len(commits) < 2:
        raise BenchError("--same-responses compares the pages of two commits or more: name them with --ref")
    chosen = request.workloads or (next(iter(workload.workloads(project))),)
    factor, request = _replayed(request, chosen)
    mode, levels = _mode(request)
    rounds, duration_s = ROUNDS, DURATION_S
    until: Literal["decided"] | None = None
    if request.until_decided:
        rounds, until = ROUNDS_UNTIL_DECIDED, "decided"
    if request.capacity:
        duration_s = CAPACITY_DURATION_S
    stacks = variants(request.stacks or known.usual_stacks, "python", request.pythons)
    return Plan(
        stacks=variants(stacks, "ref", list(labelled)),
        refs=labelled or None,
        same_responses=request.same_responses,
        layers=request.layers or tuple(known.layers),
        workloads=chosen,
        levels=levels,
        rounds=request.rounds or rounds,
        duration_s=float(request.duration_s or duration_s),
        sizes=request.sizes or (NO_LIMIT,),
        database=request.database.label,
        rows_total=None,
        order_seed=random.SystemRandom().randrange(2**31),
        database_given=request.database.is_named,
        changes=dict(request.changes),
        env=dict(request.env),
        project=project.recorded,
        describe=project.described,
        mode=mode,
        replay=factor,
        margin=_margin(request),
        guards=dict(request.guards),
        capacity=request.capacity,
        until=until,
        budget_s=request.budget_s and float(request.budget_s),
        # A chosen load tool is for a comparison with its output elsewhere.
        latency=request.latency and mode == "closed" and not request.tool,
        tunes=request.tunes,
    )


def _margin(request: Request) -> float:
    """Minimum relative difference of figures; two capacities found in steps must differ by another step."""
    if request.margin is not None:
        return request.margin
    if request.capacity:
        return round((1 + MARGIN) * (1 + rate_search.STEP) - 1, 2)
    return MARGIN


def _replayed(request: Request, chosen: tuple[str, ...]) -> tuple[float, Request]:
    """The speed of a replay as a multiple of the recording's, 0 without one; and the request with its rate and time."""
    factors = [rate for rate in request.rates if isinstance(rate, float)]
    if not factors:
        return 0, request
    factor = factors[0]
    if len(request.rates) > 1 or len(chosen) > 1 or request.capacity:
        raise BenchError(f"--rate x{factor:g} replays one workload: use only this rate, with one --workload")
    recorded = workload.workload(request.project, chosen[0])
    seconds = request.duration_s or replay.duration_s(recorded, factor)
    return factor, replace(request, rates=(replay.level(recorded, factor, seconds),), duration_s=seconds)


def _mode(request: Request) -> tuple[str, tuple[int, ...]]:
    """Closed or open loop, and its levels; a capacity run finds the levels."""
    if request.capacity:
        return "open", ()
    if request.rates:
        return "open", tuple(map(int, request.rates))
    return "closed", request.levels or (LEVEL,)


# ------------------------------------------------------------------------------------- from plan to cases


def cases(plan: Plan, resolve: Resolve) -> tuple[tuple[MeasuredCase, ...], tuple[Skip, ...]]:
    """The cases that can run here, and the skips with their reasons; each stack and layer is resolved once.

    Raises BenchError if no case can run here.
    """
    measured: list[MeasuredCase] = []
    skips: list[Skip] = []
    problems = {size: sizes.problem(size) for size in map(catalog.read().size, plan.sizes)}
    for stack in plan.stacks:
        for layer in plan.layers:
            case = resolve(stack, layer)
            if isinstance(case, CannotRun):
                skips.append(Skip(stack, layer, None, case.reason))
                continue
            for size, why in problems.items():
                if why:
                    skips.append(Skip(stack, layer, None, f"size {size.name} is not available here: {why}", size.name))
                    continue
                served = replace(case, size=size)
                measured += [MeasuredCase(record(served, name), served) for name in plan.workloads]
    if not measured:
        first = skips[0]
        raise BenchError(f"nothing to measure here: {first.stack} with layer {first.layer}: {first.reason}")
    return tuple(measured), tuple(skips)


def record(case: Case, workload: str) -> records.CaseRecord:
    """The record of a case under a workload."""
    stack, layer, size, database = case.stack.name, case.layer_name, case.size.name, case.database.label
    return records.CaseRecord(
        "~".join((stack, layer, workload, size, database)),
        stack,
        layer,
        workload,
        size,
        database,
        case.notes,
        case.stack.python,
        needs_proxy=not case.servers[-1].tls,
        caches=case.caches,
    )


def recorded(recorded_cases: Iterable[records.CaseRecord], resolve: Resolve) -> tuple[MeasuredCase, ...]:
    """The cases of a resumed run. Raises BenchError if a case cannot run here any more."""
    resolved = functools.cache(resolve)
    planned = []
    for item in recorded_cases:
        case = resolved(item.stack, item.layer)
        if isinstance(case, CannotRun):
            raise BenchError(f"{item.stack} with layer {item.layer} cannot run here now: {case.reason}")
        planned.append(MeasuredCase(item, replace(case, size=catalog.read().size(item.size))))
    return tuple(planned)


def deployments(cases: Iterable[MeasuredCase]) -> list[list[MeasuredCase]]:
    """The cases brought up together: a stack with a layer and a size under its workloads."""
    by_deployment: dict[tuple[str, str, str], list[MeasuredCase]] = {}
    for case in cases:
        by_deployment.setdefault((case.record.stack, case.record.layer, case.record.size), []).append(case)
    return list(by_deployment.values())


def round_of(cases: Sequence[MeasuredCase], levels: Sequence[int], number: int, seed: int) -> list[Measurement]:
    """Every measurement of a round, in an order determined by the seed.

    Deployments are shuffled, and so are the measurements on each. Machines warm up and drift: in a fixed order the same
    stack would always be measured first.
    """
    draw = random.Random(f"{seed}/{number}")
    together = deployments(cases)
    draw.shuffle(together)
    order = []
    for alike in together:
        deployment = Deployment(alike[0].served, number)
        measurements = []
        for case in alike:
            measurements += [Measurement(case.record, level, number, deployment) for level in levels]
        draw.shuffle(measurements)
        order += measurements
    return order

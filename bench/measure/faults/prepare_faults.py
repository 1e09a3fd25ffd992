"""Prepare faults, or the rest of them: each case is brought up once a round, and its faults are made one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.errors import BenchError
from bench.measure.faults import judge, kinds
from bench.measure.faults.fault import Fault
from bench.measure.faults.fault_session import FaultItem
from bench.measure.load.openloop import VERSION
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.folder import Run, read_faults
from bench.measure.records.records import FORMAT, Environment, LoadTool, Plan, RunInfo
from bench.measure.run import guards, machine_facts, session
from bench.measure.run.plan import Deployment, Request, Resolve, make_plan
from bench.measure.run.prepare import same_database
from bench.measure.run.schedules import Replay, counting, undisturbed
from bench.measure.run.session import Journal, now
from bench.serve.catalog import catalog, sizes
from bench.serve.catalog.names import NO_LAYER
from bench.serve.deployment import survey
from bench.serve.deployment.case import CannotRun, Case, resolve
from bench.serve.deployment.database import Database
from bench.serve.project import health
from bench.serve.project.opened import UnderTest, recorded_project
from bench.words import estimate, plural

# Number of repetitions of a disturbed fault.
REPEATS = 1
# Estimated seconds to bring a deployment up and measure its capacity, and to make one fault.
UP_S, FAULT_S = 8.0, 11.0

# The values that a fault needs, as pairs.
Changes = tuple[tuple[str, object], ...]


@dataclass(frozen=True, kw_only=True)
class PreparedFaults:
    """Faults before anything is started or written: all of them, or the rest of a stopped run.

    faults       in order
    skipped      outcomes of impossible faults
    environment  reads the machine, or the record from the beginning
    before       the resumed run
    """

    info: RunInfo
    faults: list[FaultItem]
    skipped: list[FaultOutcome]
    environment: Callable[[], Environment]
    before: Run | None = None

    @property
    def recorded(self) -> tuple[FaultOutcome, ...]:
        """The outcomes of the resumed run, in order."""
        if not self.before:
            return ()
        return self.before.outcomes

    def replay(self) -> Replay[FaultItem, FaultOutcome]:
        """Replay the schedule up to the first missing fault."""
        return Replay(schedule(self.faults), counting(self.recorded))

    def journal(self, folder: Path | None, replay: Replay[FaultItem, FaultOutcome]) -> Journal:
        """The journal, in a new or repaired folder. Raises BenchError on failure, or if nothing is left."""
        if self.before:
            return session.resume(self.before.directory, self.info, self.environment, replay)
        return session.begin(folder, "faults-", self.info, self.environment)

    @property
    def newly_skipped(self) -> list[FaultOutcome]:
        """Outcomes of skipped faults without a record so far."""
        known = {outcome.key for outcome in self.recorded}
        return [replace(outcome, started_at=now()) for outcome in self.skipped if outcome.key not in known]

    @property
    def words(self) -> list[str]:
        """Lines for people: number of remaining faults, estimated time, and skipped faults with reasons."""
        done = {outcome.key for outcome in counting(self.recorded)}
        left = [item for item in self.faults if item.key not in done]
        count, ups = len(left), len({item.deployment for item in left})
        count_words = f"{plural(count, 'fault')} to make, {plural(ups, 'deployment')}"
        lines = [f"{count_words}, in about {estimate(UP_S * ups + FAULT_S * count)}"]
        lines += [f"note: {note}" for note in self.info.notes]
        return lines + _skipped(self.newly_skipped)


def _skipped(outcomes: Sequence[FaultOutcome]) -> list[str]:
    """A line for each reason and its cases, with the faults."""
    cases: dict[tuple[str, str | None], list[str]] = {}
    for item in outcomes:
        if item.round == 1:
            where = f"{item.stack} with layer {item.layer}"
            if item.layer == NO_LAYER:
                where = item.stack
            cases.setdefault((item.fault, item.reason), []).append(where)
    faults: dict[tuple[str | None, str], list[str]] = {}
    for (fault, reason), names in cases.items():
        faults.setdefault((reason, ", ".join(names)), []).append(fault)
    return [f"skipped: {', '.join(names)}: {reason} ({where})" for (reason, where), names in faults.items()]


def schedule(faults: Sequence[FaultItem]) -> Generator[FaultItem, FaultOutcome, None]:
    """Each fault, once more if disturbed by other processes.

    On a busy machine, too, a table takes at most ten minutes a stack; --resume repeats discarded faults.
    """
    for fault in faults:
        yield from undisturbed(fault, REPEATS)


def new_faults(request: Request, names: tuple[str, ...]) -> PreparedFaults:
    """New faults of these names and groups. Raises BenchError for unknown names and invalid values, and if none of the
    faults can be made."""
    faults = kinds.named(names)
    layers, rounds = request.layers or (NO_LAYER,), request.rounds or 1
    plan = make_plan(replace(request, layers=layers, rounds=rounds))
    if problem := sizes.problem(catalog.read().size(plan.size)):
        raise BenchError(f"--size {plan.size} is not available here: {problem}")
    plan = replace(
        plan,
        workloads=(),
        levels=(),
        duration_s=0.0,
        order_seed=None,
        latency=False,
        faults=tuple(fault.name for fault in faults),
        named=tuple(name for name in names if name in kinds.FAULTS),
    )
    health.require_page(request.project, request.database.of_project)
    planned, skipped = _faults(plan, request.project, request.database)
    if not planned:
        first = skipped[0]
        raise BenchError(f"nothing can be made here: {first.stack} with layer {first.layer}: {first.reason}")

    off = guards.notes(request.guards, judge.BOUNDS)

    def environment() -> Environment:
        cases = {(item.deployment.stack, item.deployment.layer): item.deployment.case for item in planned}
        programs = survey.versions(cases.values(), plan.database)
        return machine_facts.environment(programs, LoadTool("openloop", VERSION, fallback=True))

    return PreparedFaults(
        info=RunInfo(FORMAT, request.command, now(), None, plan, (), (), tuple(off)),
        faults=planned,
        skipped=skipped,
        environment=environment,
    )


def stopped_faults(directory: Path, project: UnderTest, named_database: str | None) -> PreparedFaults:
    """The remaining faults in a folder; `project` is from the command line. Raises BenchError if they cannot be
    resumed."""
    run = read_faults(directory)
    plan = run.info.plan
    project = recorded_project(project, plan.project, plan.describe)
    planned, skipped = _faults(plan, project, same_database(directory, project, named_database, plan))
    return PreparedFaults(
        info=run.info, faults=planned, skipped=skipped, environment=lambda: run.environment, before=run
    )


def _faults(plan: Plan, project: UnderTest, rows: Database) -> tuple[list[FaultItem], list[FaultOutcome]]:
    chosen = catalog.read().of_user(plan.changes, plan.env)
    resolved = partial(resolve, project, size=plan.size, database=rows, chosen=chosen)
    return faults_of(plan, kinds.named(plan.faults), resolved)


def faults_of(plan: Plan, faults: Sequence[Fault], resolve: Resolve) -> tuple[list[FaultItem], list[FaultOutcome]]:
    """The faults of a plan in order, and the impossible ones.

    Faults with changed values have separate deployments.
    """
    planned: list[FaultItem] = []
    skipped: list[FaultOutcome] = []
    cases = {(stack, layer): resolve(stack, layer) for stack, layer in itertools.product(plan.stacks, plan.layers)}
    for number, ((stack, layer), case) in itertools.product(range(1, plan.rounds + 1), cases.items()):
        deployments: dict[Changes, Deployment] = {}
        alike: dict[Changes, list[FaultItem]] = {}
        for fault in faults:
            named = (stack, layer, plan.size, plan.database)
            key = "~".join((*named, fault.name, f"r{number}"))
            outcome = FaultOutcome(key, *named, fault.name, fault.group, number, started_at="", status="ok")
            served = _served(case, fault)
            if isinstance(served, CannotRun):
                skipped.append(replace(outcome, status="skipped", reason=served.reason))
                continue
            outcome = replace(outcome, known_limitation=served.breaks.get(fault.name))
            changes = tuple(sorted(fault.changes.items()))
            deployment = deployments.setdefault(changes, Deployment(served, number))
            alike.setdefault(changes, []).append(FaultItem(outcome, deployment))
        for together in alike.values():
            planned += together
    return planned, skipped


def _served(case: Case | CannotRun, fault: Fault) -> Case | CannotRun:
    """The case with the values of a fault, or the reason why it cannot have the fault."""
    if isinstance(case, CannotRun):
        return case
    if misfit := fault.misfit(case):
        return CannotRun(misfit)
    if fault.changes:
        return case.changed(fault.changes)
    return case

"""Plan faults, or what is left of them: each case is brought up once a round, and its faults are made one by one.

A session makes them whose place is this machine with faults.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.errors import BenchError
from bench.interrupt import Interrupts
from bench.measure.faults import fault_session, judge, kinds
from bench.measure.faults.fault import Fault
from bench.measure.faults.fault_session import FaultSession
from bench.measure.load.openloop import VERSION
from bench.measure.records.faults import FaultOutcome
from bench.measure.records.folder import read_faults
from bench.measure.records.records import FORMAT, Environment, LoadTool, Plan, RunInfo
from bench.measure.run import facts, guards
from bench.measure.run.ledger import Ledger, Record
from bench.measure.run.plan import Batch, Item, Request, Resolve, make_plan
from bench.measure.run.plan_run import same_database
from bench.measure.run.session import Journal, Planned, Session, TestBed, now
from bench.printer import Printer
from bench.serve.catalog import catalog, sizes, values
from bench.serve.catalog.names import NO_LAYER
from bench.serve.deployment import database, survey
from bench.serve.deployment.case import CannotRun, Case, resolve
from bench.serve.deployment.database import Database
from bench.serve.project import health
from bench.serve.project.opened import UnderTest, recorded_project
from bench.words import estimate, plural

# A fault is made once more where other processes disturbed it, so that a table takes at most ten minutes a stack on a
# busy machine, too; --resume makes again what was voided.
REPEATS = 1
# About how many seconds it takes to bring a deployment up and measure its capacity, and to make one fault.
UP_S, FAULT_S = 8.0, 11.0


@dataclass
class WithFaults(TestBed):
    """This machine, where faults are made on what is up, and a line is printed for each."""

    plan: Plan
    write: bool
    printer: Printer
    journal: Journal

    @contextmanager
    def up(self, batch: Batch, directory: Path, interrupts: Interrupts) -> Iterator[FaultSession]:
        """The case of a batch, made ready for faults."""
        plan = self.plan
        staged = fault_session.open_session(
            batch.case, directory, self.printer.show, plan.guards or {}, plan.rounds, self.write
        )
        with staged as found, interrupts.held_at_end():
            for note in self.journal.note(found.notes):
                self.printer.say(f"note: {note}")
            yield found

    def failed(self, item: Item, reason: str, log: Path | None = None) -> FaultOutcome:
        """The outcome of a fault that could not be made."""
        assert isinstance(item, FaultOutcome)
        return replace(item, started_at=now(), status="failed", reason=reason, declared=None)

    def begin(self, item: Item, batch: Batch) -> None:
        """A fault begins."""
        assert isinstance(item, FaultOutcome)
        self.printer.show(f"{batch.stack} with layer {batch.layer}: {item.fault}")

    def made(self, record: Record, again: bool) -> None:
        """A fault was made, or is not possible."""
        assert isinstance(record, FaultOutcome)
        self.printer.say(line(record))


@dataclass(frozen=True, kw_only=True)
class PlannedFaults(Planned):
    """Faults to be made, and those that cannot be.

    batches  the deployments of each round; the items of each are outcomes of faults as they are before those are made
    skipped  the outcomes of what cannot be made
    """

    batches: list[Batch]
    skipped: list[FaultOutcome]

    def session(self, to: Path | None, write: bool, printer: Printer) -> Session:
        """The session that makes them, its folder made or repaired.

        `write`: accounts may be made in a database that a project uses itself; a folder stores no leave to write.
        """
        journal = self.journal(to)
        place = WithFaults(self.info.plan, write, printer, journal)
        return Session(journal, self.ledger, place, place)

    def go(self, session: Session, interrupts: Interrupts) -> int:
        """Make all that is left; returns 0."""
        printer = session.progress.printer
        printer.say(self.words[0])
        printer.say(f"results go to {session.journal.folder.directory}")
        for outcome in self.skipped:
            if outcome.key not in self.ledger.done:
                session.add(replace(outcome, started_at=now()))
        session.go(self.batches, interrupts, keep_going=True)
        return 0

    @property
    def words(self) -> list[str]:
        """What is left, as lines for people: what is made, about how long that takes, what is skipped and why."""
        left = self.ledger.left_of(self.batches)
        count, ups = sum(len(batch.items) for batch in left), len(left)
        made = f"{plural(count, 'fault')} to make, {plural(ups, 'deployment')}"
        skipped: dict[str, list[str]] = {}
        for item in self.skipped:
            if item.round == 1 and item.key not in self.ledger.done:
                where = item.stack if item.layer == NO_LAYER else f"{item.stack} with layer {item.layer}"
                skipped.setdefault(f"{item.fault}: {item.reason}", []).append(where)
        return [
            f"{made}, in about {estimate(UP_S * ups + FAULT_S * count)}",
            *(f"skipped: {reason} ({', '.join(where)})" for reason, where in skipped.items()),
        ]


def line(outcome: FaultOutcome) -> str:
    """One outcome in words."""
    words = [outcome.word]
    if outcome.failed is not None:
        asked = (outcome.requests_new or 0) + (outcome.requests_kept or 0)
        back = "never" if outcome.recovery_s is None else f"{outcome.recovery_s:.1f} s"
        words.append(f"{outcome.failed} of {asked} requests failed")
        words.append(f"gap {outcome.longest_gap_s or 0.0:.1f} s, recovery {back}; operator: {outcome.operator}")
    if seed := (outcome.figures or {}).get("seed"):
        words.append(f"seed {seed}")
    if outcome.reason:
        words.append(outcome.reason)
    return f"{outcome.stack} with layer {outcome.layer}, {outcome.fault}: {'; '.join(words)}"


def planned(request: Request, names: tuple[str, ...]) -> PlannedFaults:
    """New faults: those and the groups of these names. Raises BenchError for unknown names and invalid values, and when
    none of the faults can be made."""
    faults = kinds.named(names)
    bounds = guards.bounds(list(request.guards), judge.BOUNDS)
    layers, rounds = request.layers or (NO_LAYER,), request.rounds or 1
    plan = make_plan(replace(request, layers=layers, rounds=rounds, guards=()))
    if problem := sizes.problem(catalog.read().size(plan.size)):
        raise BenchError(f"--size {plan.size} is not available here: {problem}")
    plan = replace(
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
    rows = database.parse(request.project, request.database)
    health.require_page(request.project, rows.of_project)
    batches, skipped = _faults(plan, request.project, rows)
    if not batches:
        first = skipped[0]
        raise BenchError(f"nothing can be made here: {first.stack} with layer {first.layer}: {first.reason}")

    def environment() -> Environment:
        cases = {(batch.stack, batch.layer): batch.case for batch in batches}
        programs = survey.versions(cases.values(), plan.database)
        return facts.environment(programs, LoadTool("openloop", VERSION, fallback=True))

    return PlannedFaults(
        info=RunInfo(FORMAT, request.command, now(), None, plan, (), ()),
        ledger=Ledger(batches, max_repeats=REPEATS),
        environment=environment,
        kind="faults-",
        batches=batches,
        skipped=skipped,
    )


def resumed(directory: Path, project: UnderTest, asked: str | None) -> PlannedFaults:
    """What is left of the faults in a folder; `project` is that of the command line. Raises BenchError when they cannot
    be resumed."""
    run = read_faults(directory)
    plan = run.info.plan
    project = recorded_project(project, plan.project, plan.describe)
    batches, skipped = _faults(plan, project, same_database(directory, project, asked, plan))
    return PlannedFaults(
        info=run.info,
        ledger=Ledger(batches, run.outcomes, max_repeats=REPEATS),
        environment=lambda: run.environment,
        directory=directory,
        batches=batches,
        skipped=skipped,
    )


def _faults(plan: Plan, project: UnderTest, rows: Database) -> tuple[list[Batch], list[FaultOutcome]]:
    given, env = values.parse_changes(list(plan.changes)), values.environment(list(plan.env))
    resolved = partial(resolve, project, size=plan.size, database=rows, changes=given, env=env)
    return faults_of(plan, kinds.named(plan.faults), resolved)


def faults_of(plan: Plan, faults: Sequence[Fault], resolve: Resolve) -> tuple[list[Batch], list[FaultOutcome]]:
    """The batches of a plan, and what cannot be made. Faults that need other values than the rest have a deployment of
    their own."""
    batches: list[Batch] = []
    skipped: list[FaultOutcome] = []
    cases = {(stack, layer): resolve(stack, layer) for stack in plan.stacks for layer in plan.layers}
    for number, ((stack, layer), case) in itertools.product(range(1, plan.rounds + 1), cases.items()):
        made: dict[tuple[tuple[str, object], ...], tuple[Case, list[FaultOutcome]]] = {}
        for fault in faults:
            named = (stack, layer, plan.size, plan.database)
            key = "~".join((*named, fault.name, f"r{number}"))
            outcome = FaultOutcome(key, *named, fault.name, fault.group, number, started_at="", status="ok")
            served = _served(case, fault)
            if isinstance(served, CannotRun):
                skipped.append(replace(outcome, status="skipped", reason=served.reason))
                continue
            # A check of `verify` of the same name shows the same.
            declared = {item.check: item.reason for item in served.declares} | served.breaks
            outcome = replace(outcome, declared=declared.get(fault.name))
            made.setdefault(tuple(sorted(fault.changes.items())), (served, []))[1].append(outcome)
        batches += [Batch(served, number, tuple(outcomes)) for served, outcomes in made.values()]
    return batches, skipped


def _served(case: Case | CannotRun, fault: Fault) -> Case | CannotRun:
    """The case with the values of a fault, or why it cannot have it."""
    if isinstance(case, CannotRun):
        return case
    if misfit := fault.misfit(case):
        return CannotRun(misfit)
    return case.changed(fault.changes) if fault.changes else case

"""Begin faults, or resume them: from what is asked for to a session, its folder made or repaired."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from bench import paths
from bench.catalog import catalog, sizes, values
from bench.errors import BenchError
from bench.faults import judge, kinds, stage
from bench.faults.plan import Batch, Ledger, batches
from bench.faults.session import Made, Session, Up
from bench.interrupt import Interrupts
from bench.load.openloop import VERSION
from bench.machine import facts
from bench.measure import guards
from bench.measure.printer import Printer
from bench.measure.trial import now
from bench.project import health
from bench.project.under_test import UnderTest, recorded_project
from bench.results.faults import FORMAT, FaultsFolder, FaultsInfo, FaultsPlan, read_faults
from bench.results.records import NO_LAYER, UNLIMITED, Environment, LoadTool
from bench.serve import database, survey
from bench.serve.case import CannotRun, Case, resolve
from bench.serve.database import Database

MAX_ROUNDS = 1000


@dataclass(frozen=True)
class Request:
    """What is asked for; empty means the default.

    faults   names of faults or groups
    changes  of values, as NAME=VALUE
    env      of the site, as NAME=VALUE
    guards   as NAME=BOUND or NAME=off
    write    whether accounts may be made in a database that a project uses itself
    command  the command line, without passwords
    """

    project: UnderTest
    stacks: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    rounds: int = 1
    size: str = UNLIMITED
    database: str | None = None
    env: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    write: bool = False
    to: Path | None = None
    command: tuple[str, ...] = ()


def begin(request: Request, printer: Printer) -> tuple[Session, list[Batch]]:
    """A new session, its folder made. Raises BenchError for unknown names and invalid values."""
    plan, found = planned(request)
    folder = FaultsFolder(request.to or new_folder())
    paths.must_be_plain(folder.directory)
    info = FaultsInfo(FORMAT, request.command, now(), None, plan, _environment(found, plan))
    folder.create(info)
    return Session(folder, info, Ledger(), _up(plan, request.write), printer), found


def planned(request: Request) -> tuple[FaultsPlan, list[Batch]]:
    """The plan and its deployments; raises BenchError for unknown names, and when none of the faults can be made."""
    plan, rows = make_plan(request), database.parse(request.project, request.database)
    health.require(request.project, rows.of_project)
    found = _batches(plan, request.project, rows)
    if all(item.skip for batch in found for item in batch.items):
        first = found[0].items[0]
        raise BenchError(f"nothing can be made here: {found[0].stack} with layer {found[0].layer}: {first.skip}")
    return plan, found


def resume(
    directory: Path, project: UnderTest, asked: str | None, write: bool, printer: Printer
) -> tuple[Session, list[Batch]]:
    """The session in a folder, with what is left of it. Raises BenchError when there is nothing, or it cannot be.

    `project` is that of the command line, `write` as in Request: a folder stores no leave to write.
    """
    run = read_faults(directory)
    plan = run.info.plan
    project = recorded_project(project, plan.project, plan.describe)
    rows = _same_database(directory, project, asked, plan)
    ledger, found = Ledger(run.outcomes), _batches(plan, project, rows)
    if not any(ledger.is_left(item.fault_id) for batch in found for item in batch.items):
        raise BenchError(f"--resume {directory}: it is complete")
    folder = FaultsFolder(directory)
    with folder.locked():
        folder.repair()
    return Session(folder, replace(run.info, finished_at=None), ledger, _up(plan, write), printer), found


def make_plan(request: Request) -> FaultsPlan:
    """The plan with its defaults. Raises BenchError for names and values that do not exist."""
    known, asked = catalog.read(), database.parse(request.project, request.database)
    if request.rounds > MAX_ROUNDS:
        raise BenchError(f"--rounds {request.rounds}: too many; use at most {MAX_ROUNDS}")
    if problem := sizes.problem(known.size(request.size)):
        raise BenchError(f"--size {request.size} is not available here: {problem}")
    values.environment(list(request.env))
    known.values[values.BENCH].changed(values.parse_changes(list(request.changes)))
    return FaultsPlan(
        stacks=request.stacks or known.usual_stacks,
        layers=request.layers or (NO_LAYER,),
        faults=tuple(item.name for item in kinds.named(request.faults)),
        rounds=request.rounds,
        size=request.size,
        database=asked.label,
        database_given=asked.given,
        changes=request.changes,
        env=request.env,
        project=request.project.recorded,
        describe=request.project.described,
        guards=guards.bounds(list(request.guards), judge.BOUNDS),
        named=tuple(name for name in request.faults if name in kinds.FAULTS),
    )


def new_folder() -> Path:
    """A folder under results/ that is named after the time and does not exist yet."""
    name = datetime.now().strftime("faults-%Y%m%d-%H%M%S")
    folder, number = paths.RESULTS / name, 1
    while folder.exists():
        number += 1
        folder = paths.RESULTS / f"{name}-{number}"
    return folder


def _same_database(directory: Path, project: UnderTest, asked: str | None, plan: FaultsPlan) -> Database:
    if asked is None:
        asked = os.environ.get("DATABASE_URL") if plan.database_given else plan.database
    if asked is not None and (found := database.parse(project, asked)).label == plan.database:
        return found
    raise BenchError(f"--resume {directory}: give --database, the {plan.database} database that it began with")


def _batches(plan: FaultsPlan, project: UnderTest, rows: Database) -> list[Batch]:
    given, env = values.parse_changes(list(plan.changes)), values.environment(list(plan.env))

    def resolved(stack: str, layer: str) -> Case | CannotRun:
        return resolve(project, stack, layer, size=plan.size, database=rows, changes=given, env=env)

    return batches(plan, kinds.named(plan.faults), resolved)


def _up(plan: FaultsPlan, write: bool) -> Up:
    """Brings a case of the plan up."""

    def up(
        case: Case, directory: Path, interrupts: Interrupts, progress: Callable[[str], None]
    ) -> AbstractContextManager[Made]:
        return stage.staged(
            case,
            directory=directory,
            progress=progress,
            bounds=plan.guards,
            rounds=plan.rounds,
            write=write,
            interrupts=interrupts,
        )

    return up


def _environment(found: Iterable[Batch], plan: FaultsPlan) -> Environment:
    cases = {(batch.stack, batch.layer): batch.case for batch in found if batch.case}
    programs = survey.versions(cases.values(), plan.database)
    return facts.environment(programs, LoadTool("openloop", VERSION, fallback=True))

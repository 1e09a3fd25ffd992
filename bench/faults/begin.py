"""Begin faults, or resume them: from what is asked for to a session, its folder made or repaired."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bench import paths
from bench.catalog import catalog, compose, sizes, values
from bench.catalog.compose import CannotRun, Composition
from bench.catalog.manifest import NO_LAYER
from bench.errors import BenchError
from bench.faults import judge, kinds, stage
from bench.faults.plan import Batch, Compose, Ledger, batches
from bench.faults.session import Made, Session, Up
from bench.interrupt import Interrupts
from bench.load.openloop import VERSION
from bench.machine import facts
from bench.measure import guards
from bench.measure.instrument import Instrument
from bench.measure.printer import Printer
from bench.measure.trial import now
from bench.project import health, under_test
from bench.results.faults import FORMAT, FaultsFolder, FaultsInfo, FaultsPlan, read_faults
from bench.results.records import Environment, LoadTool
from bench.serve import database

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

    stacks: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    rounds: int = 1
    size: str = sizes.UNLIMITED
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
    return Session(folder, info, Ledger(), _up(plan, request.database, request.write), printer), found


def planned(request: Request) -> tuple[FaultsPlan, list[Batch]]:
    """The plan and its deployments; raises BenchError for unknown names, and when none of the faults can be made."""
    plan = make_plan(request)
    health.require(under_test.current(), database.parse(request.database).of_project)
    found = _batches(plan)
    if all(item.skip for batch in found for item in batch.items):
        first = found[0].items[0]
        raise BenchError(f"nothing can be made here: {found[0].stack} with layer {found[0].layer}: {first.skip}")
    return plan, found


def resume(directory: Path, asked: str | None, write: bool, printer: Printer) -> tuple[Session, list[Batch]]:
    """The session in a folder, with what is left of it. Raises BenchError when there is nothing, or it cannot be.

    `write` as in Request: a folder stores no leave to write.
    """
    run = read_faults(directory)
    under_test.select_recorded(run.info.plan.project)
    ledger, found = Ledger(run.outcomes), _batches(run.info.plan)
    if not any(ledger.is_left(item.fault_id) for batch in found for item in batch.items):
        raise BenchError(f"--resume {directory}: it is complete")
    plan = run.info.plan
    if asked is None:
        asked = os.environ.get("DATABASE_URL") if plan.database_given else plan.database
    if asked is None or database.parse(asked).label != plan.database:
        raise BenchError(f"--resume {directory}: give --database, the {plan.database} database that it began with")
    folder = FaultsFolder(directory)
    with folder.locked():
        folder.repair()
    return Session(folder, replace(run.info, finished_at=None), ledger, _up(plan, asked, write), printer), found


def make_plan(request: Request) -> FaultsPlan:
    """The plan with its defaults. Raises BenchError for names and values that do not exist."""
    known, asked = catalog.read(), database.parse(request.database)
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
        project=under_test.current().recorded,
        guards=guards.bounds(list(request.guards), judge.BOUNDS),
    )


def new_folder() -> Path:
    """A folder under results/ that is named after the time and does not exist yet."""
    name = datetime.now().strftime("faults-%Y%m%d-%H%M%S")
    folder, number = paths.RESULTS / name, 1
    while folder.exists():
        number += 1
        folder = paths.RESULTS / f"{name}-{number}"
    return folder


def _batches(plan: FaultsPlan) -> list[Batch]:
    return batches(plan, kinds.named(plan.faults), _composer(plan))


def _composer(plan: FaultsPlan) -> Compose:
    given, env = values.parse_changes(list(plan.changes)), values.environment(list(plan.env))

    def composed(stack: str, layer: str, changes: Mapping[str, Any]) -> Composition | CannotRun:
        return compose.compose(stack, layer, {**given, **changes}, env)

    return composed


def _up(plan: FaultsPlan, asked: str | None, write: bool) -> Up:
    """Brings a composition of the plan up."""

    def up(
        composition: Composition, directory: Path, interrupts: Interrupts, progress: Callable[[str], None]
    ) -> AbstractContextManager[Made]:
        return stage.staged(
            composition,
            database=asked,
            size=plan.size,
            directory=directory,
            progress=progress,
            bounds=plan.guards,
            rounds=plan.rounds,
            write=write,
            interrupts=interrupts,
        )

    return up


def _environment(found: Iterable[Batch], plan: FaultsPlan) -> Environment:
    compositions = {(batch.stack, batch.layer): batch.composition for batch in found if batch.composition}
    programs = Instrument().programs(compositions.values(), plan.database)
    return facts.environment(programs, LoadTool("openloop", VERSION, fallback=True))

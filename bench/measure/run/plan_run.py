"""Plan a run on this machine, or what is left of one: from what is asked for to what a session makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from bench import programs
from bench.errors import BenchError
from bench.measure import load
from bench.measure.records.folder import Run, read_run, resume_command
from bench.measure.records.records import FORMAT, Environment, LoadTool, Plan, RunInfo
from bench.measure.run import facts, guards, rounds, workload
from bench.measure.run import plan as planning
from bench.measure.run.instrument import Instrument
from bench.measure.run.ledger import Ledger
from bench.measure.run.local import LocalTestBed
from bench.measure.run.plan import PlannedCase, Request, make_plan
from bench.measure.run.progress import RunProgress
from bench.measure.run.racing import Racing
from bench.measure.run.session import Planned, Session, TestBed, now
from bench.measure.run.trial import LoadSettings
from bench.measure.stats.capacity import parse_limit
from bench.printer import Printer
from bench.serve.deployment import database
from bench.serve.deployment.database import Database
from bench.serve.machine import cpu_affinity
from bench.serve.project import health, pythons
from bench.serve.project.opened import UnderTest


@dataclass(frozen=True, kw_only=True)
class PlannedRun(Planned):
    """A run of trials.

    place  where its trials are made, of the arguments of bench.measure.run.local.TrialPlace
    """

    cases: tuple[PlannedCase, ...]
    load: LoadSettings
    place: Callable[..., TestBed]

    @property
    def is_complete(self) -> bool:
        """Whether it has ended, and nothing is left: no trial of its rounds, and none that shows latency after them."""
        if not super().is_complete or not self.info.plan.latency:
            return super().is_complete
        return not self.ledger.left_of(rounds.latency(self.cases, self.ledger, self.info.plan.margin))

    def progress(self) -> RunProgress:
        """Its lines on stdout."""
        return RunProgress(Printer(), self.info, self.ledger)

    def session(self, to: Path | None, progress: RunProgress) -> Session:
        """The session that makes it, its folder made or repaired; raises BenchError when it cannot be."""
        journal = self.journal(to)
        place = self.place(journal, progress, self.ledger, self.load)
        return Session(journal, self.ledger, place, progress)


def planned(request: Request, instrument: Instrument) -> PlannedRun:
    """A new run. Raises BenchError for unknown names and invalid values."""
    project, plan = request.project, make_plan(request)
    rows = database.parse(project, request.database)
    health.require_page(project, rows.of_project)
    pinned = cpu_affinity.cores(cpu_affinity.affinity())
    chosen = _load(plan, project, request.tool, pinned)
    cases, skips = planning.cases(plan, instrument.resolver(plan, rows))
    every = workload.workloads(project)
    recorded = [note for name in plan.workloads for note in every[name].notes]
    notes = (*_notes(chosen, pinned, bool(plan.capacity)), *dict.fromkeys(recorded))
    info = RunInfo(FORMAT, request.command, now(), None, plan, tuple(case.record for case in cases), skips, notes)
    place = partial(LocalTestBed, instrument=instrument, rows=rows)
    return planned_run(info, cases, chosen, place, lambda: _environment(cases, plan, chosen, instrument, pinned))


def resumed(directory: Path, asked: str | None, instrument: Instrument, command: str = "run") -> PlannedRun:
    """What is left of the run in a folder, which the `command` made; voided trials are left, too.

    `asked` is its database, needed when it was named by URL. Raises BenchError when it cannot be resumed as it began.
    """
    run = read_run(directory)
    plan, pinned, project = run.info.plan, run.environment.affinity, instrument.project
    if plan.command != command:
        raise BenchError(f"--resume {directory}: resume it with: {resume_command(directory, run.info)}")
    if plan.inventory:
        raise BenchError(f"--resume {directory}: it measured hosts of an inventory; add --inventory FILE")
    rows = same_database(directory, project, asked, plan)
    if pinned and not set().union(*pinned.values()) <= set(cpu_affinity.affinity()):
        raise BenchError(f"--resume {directory}: it was pinned to processor cores that are not here; begin a new run")
    chosen = _load(plan, project, run.environment.load_tool.name, pinned)
    cases = planning.recorded(run.info.cases, instrument.resolver(plan, rows))
    here = _environment(cases, plan, chosen, instrument, pinned)
    info = replace(run.info, notes=(*run.info.notes, *_differences(run.environment, here)))
    place = partial(LocalTestBed, instrument=instrument, rows=rows)
    return planned_run(info, cases, chosen, place, lambda: run.environment, run)


def planned_run(
    info: RunInfo,
    cases: tuple[PlannedCase, ...],
    chosen: LoadSettings,
    place: Callable[..., TestBed],
    environment: Callable[[], Environment],
    run: Run | None = None,
) -> PlannedRun:
    """All of a run with these cases, or what is left of `run`."""
    plan = info.plan
    # The levels of a capacity run are found as it goes, the cases of a tuned stack, too.
    levels = (0,) if plan.capacity else plan.levels
    schedule = [] if plan.tunes else planning.schedule(cases, levels, plan.rounds, plan.order_seed or 0)
    limit = parse_limit(plan.capacity, "--capacity") if plan.capacity else None
    items = [item for batch in schedule for item in batch.items if isinstance(item, planning.Measurement)]
    racing = Racing(items, plan.rounds, plan.margin) if plan.until else None
    made = (*run.trials, *run.latency) if run else ()
    return PlannedRun(
        info=info,
        ledger=Ledger(schedule, made, run.checks if run else (), limit, racing),
        environment=environment,
        directory=run.directory if run else None,
        cases=cases,
        load=chosen,
        place=place,
    )


def _load(plan: Plan, project: UnderTest, wanted: str | None, pinned: cpu_affinity.Cores | None) -> LoadSettings:
    steps = [workload.workload(project, name).steps for name in plan.workloads]
    tool, program = load.choose(steps, programs.find, wanted, plan.mode)
    at_rate = load.choose(steps, programs.find, None, "open") if plan.latency else None
    # Without a core of its own, one thread could not keep up with the fastest servers.
    threads = len(pinned[cpu_affinity.LOAD]) if pinned else facts.cores()
    bounds = guards.BOUNDS if plan.guards is None else plan.guards
    opens = (at_rate[0], str(at_rate[1])) if at_rate else None
    return LoadSettings(
        tool, str(program), int(plan.duration_s), threads, plan.mode, plan.replay, bounds, at_rate=opens
    )


def _environment(
    cases: Iterable[PlannedCase],
    plan: Plan,
    chosen: LoadSettings,
    instrument: Instrument,
    pinned: cpu_affinity.Cores | None,
) -> Environment:
    tool = chosen.tool
    about_tool = LoadTool(tool.name, programs.version((chosen.program, *tool.version)), tool.fallback)
    used = {(case.record.stack, case.record.layer): case.served for case in cases}
    here = facts.environment(instrument.programs(used.values(), plan.database), about_tool, pinned)
    others = dict.fromkeys(case.record.python for case in cases if case.record.python)
    return replace(here, pythons={version: pythons.described(version) for version in others} or None)


def _notes(chosen: LoadSettings, pinned: cpu_affinity.Cores | None, capacity: bool) -> tuple[str, ...]:
    notes = []
    cores = facts.cores()
    if pinned:
        shared = ", ".join(f"{part} on {', '.join(map(str, numbers))}" for part, numbers in pinned.items())
        notes.append(f"processor cores: {shared}")
    if cores < cpu_affinity.CORES_FOR_ALL and not pinned:
        advice = "read capacities as lower bounds" if capacity else "do not read them as capacities"
        notes.append(
            f"{cores} cores: the load tool shares them with the servers, so compare figures on this machine, and "
            + advice
        )
    if chosen.tool.fallback:
        notes.append(
            f"load made by {chosen.tool.name}, the load tool of this project; a request costs it two to three times "
            "the CPU time that it costs wrk, and on shared cores that is taken from the servers"
        )
    if not chosen.tool.can_keep_alive:
        notes.append(f"{chosen.tool.name} opens a new connection for each request")
    return tuple(notes)


def same_database(directory: Path, project: UnderTest, asked: str | None, plan: Plan) -> Database:
    """The database of a resumed run. Raises BenchError when it is not the one that the run began with."""
    if asked is None:
        asked = os.environ.get("DATABASE_URL") if plan.database_given else plan.database
    if asked is None:
        raise BenchError(f"--resume {directory}: its database was named by URL, which is not stored; give --database")
    chosen = database.parse(project, asked)
    if chosen.label != plan.database or chosen.made == plan.database_given:
        hint = "give its URL" if plan.database_given else "leave out --database"
        raise BenchError(f"--resume {directory}: it measures another database, {plan.database}; {hint}")
    return chosen


def _differences(before: Environment, here: Environment) -> list[str]:
    """A note when a run is resumed in another environment than it began in."""
    # The run fills these in as it goes.
    here = replace(here, configs=before.configs, rows_seed=before.rows_seed, rows_total=before.rows_total)
    now_here = asdict(here)
    names = [name.replace("_", " ") for name, value in asdict(before).items() if now_here[name] != value]
    return [f"resumed after a stop; since it began these have changed: {', '.join(names)}"] if names else []

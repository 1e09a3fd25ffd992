"""Begin a run, or resume one: from what is asked for to a session, its folder made or repaired."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench import load, paths, programs
from bench.catalog import catalog, sizes, values
from bench.errors import BenchError
from bench.interrupt import Interrupts
from bench.machine import facts, pin
from bench.measure import guards
from bench.measure import plan as planning
from bench.measure.here import Here, Trials
from bench.measure.instrument import Instrument
from bench.measure.journal import Journal
from bench.measure.ledger import Ledger
from bench.measure.pace import Pace
from bench.measure.plan import PlannedCase, Request, make_plan
from bench.measure.printer import Printer
from bench.measure.progress import RunProgress
from bench.measure.racing import Racing
from bench.measure.rounds import Rounds
from bench.measure.session import Place, Session, new_folder, now
from bench.measure.trial import Load
from bench.project import health, pythons, workload
from bench.project.under_test import UnderTest, recorded_project
from bench.records.folder import Folder, read_run, resume_command
from bench.records.records import FORMAT, Environment, LoadTool, Outcome, Plan, RunInfo
from bench.records.trials import Trial
from bench.serve import database
from bench.serve.case import CannotRun, Case
from bench.serve.database import Database
from bench.stats.capacity import parse_limit

# Fields of an environment whose names say little -> words for them.
DIFFERENT = {
    "affinity": "cores of the programs",
    "cpu_model": "processor",
    "dirty": "uncommitted changes",
    "os": "operating system",
    "python": "Python",
    "pythons": "other Pythons",
}


NOWHERE = Database("none")


@dataclass(frozen=True)
class Planned:
    """A run before anything is started or written: a new one, or what is left of one that is resumed.

    done  the trials so far
    """

    info: RunInfo
    cases: tuple[PlannedCase, ...]
    load: Load
    ledger: Ledger
    done: tuple[Trial, ...] = ()

    def progress(self) -> RunProgress:
        """A run's lines on stdout."""
        return RunProgress(Printer(), self.info, self.ledger.count_left, self.done)


@dataclass(frozen=True)
class PlannedHere(Planned):
    """A run on this machine.

    rows  the database; it may hold a password and is not recorded
    """

    rows: Database = NOWHERE
    pinned: pin.Cores | None = None

    def place(self, journal: Journal, progress: RunProgress, instrument: Instrument) -> Here:
        """This machine, for the trials of the run."""
        bound = self.load.bounds.get("interference") if self.ledger.left else None
        return Here(Trials(journal, progress, self.load, self.done), self.ledger, instrument, self.rows, bound)


@dataclass(frozen=True)
class Begun:
    """A run whose folder is made: what it measures, and the session that does it."""

    planned: Planned
    session: Session
    progress: RunProgress

    @classmethod
    def at(cls, planned: Planned, journal: Journal, place: Place, progress: RunProgress) -> Begun:
        """A run at a place."""
        return cls(planned, Session(journal, planned.ledger, place, progress), progress)

    @property
    def folder(self) -> Folder:
        """Its folder."""
        return self.session.journal.folder

    @property
    def resume_command(self) -> str:
        """The command that makes what is left of it."""
        return resume_command(self.folder.directory, self.session.journal.info)

    def go(self, interrupts: Interrupts, keep_going: bool = False) -> int:
        """Measure all that is left; returns the exit status: 1 when a trial failed or nothing was measured, else 0."""
        ledger, session, progress = self.planned.ledger, self.session, self.progress
        progress.announce(self.planned.load.tool.name, ledger, self.folder.directory)
        pace = Pace(session.journal.info.plan, ledger)
        session.go(Rounds(self.planned.cases, ledger, session.journal, progress, pace), interrupts, keep_going)
        run = read_run(self.folder.directory)
        progress.summarize(run, ledger.failures, ledger.voided)
        return 1 if ledger.failures or not run.is_measured else 0


def planned(request: Request, instrument: Instrument) -> PlannedHere:
    """The run that `begin` would make. Raises BenchError for unknown names and invalid values."""
    project, plan = request.project, make_plan(request)
    rows = database.parse(project, request.database)
    health.require_page(project, rows.of_project)
    pinned = pin.cores(pin.affinity())
    chosen = _load(plan, project, request.tool, pinned)
    cases, skips = planning.cases(plan, resolver(plan, rows, instrument), catalog.read().size, sizes.problem)
    every = workload.workloads(project)
    recorded = [note for name in plan.workloads for note in every[name].notes]
    notes = (*_notes(chosen, pinned, bool(plan.capacity)), *dict.fromkeys(recorded))
    info = RunInfo(FORMAT, request.command, now(), None, plan, tuple(case.record for case in cases), skips, notes)
    return PlannedHere(info, cases, chosen, ledger_of(cases, info), rows=rows, pinned=pinned)


def begin(request: Request, instrument: Instrument) -> Begun:
    """A new run, its folder made. Raises BenchError for unknown names and invalid values."""
    new = planned(request, instrument)
    progress = new.progress()
    journal = opened(new, request, instrument)
    return Begun.at(new, journal, new.place(journal, progress, instrument), progress)


def opened(new: PlannedHere, request: Request, instrument: Instrument) -> Journal:
    """The journal of a new run, its folder made."""
    return written(request.to, new.info, _environment(new.cases, new.info.plan, new.load, instrument, new.pinned))


def written(to: Path | None, info: RunInfo, environment: Environment, kind: str = "") -> Journal:
    """The journal of a new run in a new folder, `to` or one named after its kind and the time."""
    folder = Folder(to or new_folder(kind))
    paths.must_be_plain(folder.directory)
    folder.create()
    folder.begin(info, environment)
    return Journal(folder, info, environment)


def project_of(directory: Path, given: UnderTest) -> UnderTest:
    """The project of the run in a folder; `given` is that of the command line, which may name no other."""
    plan = read_run(directory).info.plan
    return recorded_project(given, plan.project, plan.describe)


def resume(directory: Path, asked: str | None, instrument: Instrument) -> Begun:
    """The run in a folder, with what is left of it; `asked` is its database, needed when it was named by URL.

    Voided trials are left, too. Raises BenchError when the run cannot be resumed as it began.
    """
    again, environment = resumed(directory, asked, instrument)
    require_left(directory, again.info, again.ledger)
    journal = reopened(directory, again.info, environment)
    progress = again.progress()
    return Begun.at(again, journal, again.place(journal, progress, instrument), progress)


def resumed(
    directory: Path, asked: str | None, instrument: Instrument, command: str = "run"
) -> tuple[PlannedHere, Environment]:
    """What is left of the run in a folder, which the `command` made, and the environment in which it began."""
    run = read_run(directory)
    require_made_by(command, directory, run.info)
    plan, pinned = run.info.plan, run.environment.affinity
    if plan.inventory:
        raise BenchError(f"--resume {directory}: it measured hosts of an inventory; add --inventory FILE")
    project = instrument.project
    rows = same_database(directory, project, asked, plan)
    if pinned and not set().union(*pinned.values()) <= set(pin.affinity()):
        raise BenchError(f"--resume {directory}: it was pinned to processor cores that are not here; begin a new run")
    chosen = _load(plan, project, run.environment.load_tool.name, pinned)
    cases = planning.recorded(run.info.cases, resolver(plan, rows, instrument), catalog.read().size)
    made = (*run.trials, *run.latency)
    ledger = ledger_of(cases, run.info, made, run.checks)
    here = _environment(cases, plan, chosen, instrument, pinned)
    info = replace(run.info, notes=(*run.info.notes, *_differences(run.environment, here)))
    return PlannedHere(info, cases, chosen, ledger, made, rows, pinned), run.environment


def require_made_by(command: str, directory: Path, info: RunInfo) -> None:
    """Raise BenchError when another command has to resume a folder."""
    if info.plan.command != command:
        raise BenchError(f"--resume {directory}: resume it with: {resume_command(directory, info)}")


def require_left(directory: Path, info: RunInfo, ledger: Ledger) -> None:
    """Raise BenchError when nothing is left to be made."""
    if info.finished_at and not ledger.left:
        raise BenchError(f"--resume {directory}: the run is complete; next: python -m bench report {directory}")


def reopened(directory: Path, info: RunInfo, environment: Environment) -> Journal:
    """The journal of a run that is resumed, its folder repaired. Raises BenchError when it is in use."""
    paths.must_be_plain(directory)
    folder = Folder(directory)
    with folder.locked():
        folder.repair()
    return Journal(folder, info, environment)


def ledger_of(
    cases: Sequence[PlannedCase],
    info: RunInfo,
    trials: Iterable[Trial] = (),
    checks: Iterable[Outcome] = (),
) -> Ledger:
    """The trials that are left of a run with these cases, after those that were made."""
    plan = info.plan
    # The levels of a capacity run are found as it goes, the cases of a tuned stack, too.
    levels = (0,) if plan.capacity else plan.levels
    schedule = [] if plan.tunes else planning.schedule(cases, levels, plan.rounds, plan.order_seed or 0)
    limit = parse_limit(plan.capacity, "--capacity") if plan.capacity else None
    items = [item for batch in schedule for item in batch.items if isinstance(item, planning.Measurement)]
    racing = Racing(items, plan.rounds, plan.margin) if plan.until else None
    return Ledger(schedule, trials, checks, limit, racing)


def resolver(plan: Plan, rows: Database, instrument: Instrument) -> planning.Resolve:
    """Resolves stacks and layers with the plan's values and environment."""
    changes, env = values.parse_changes(list(plan.changes)), values.environment(list(plan.env))

    def resolve(stack: str, layer: str) -> Case | CannotRun:
        return instrument.resolve(stack, layer, rows, changes, env)

    return resolve


def _load(plan: Plan, project: UnderTest, wanted: str | None, pinned: pin.Cores | None) -> Load:
    steps = [workload.workload(project, name).steps for name in plan.workloads]
    tool, program = load.choose(steps, programs.find, wanted, plan.mode)
    at_rate = load.choose(steps, programs.find, None, "open") if plan.latency else None
    # Without a core of its own, one thread could not keep up with the fastest servers.
    threads = len(pinned[pin.LOAD]) if pinned else facts.cores()
    bounds = guards.BOUNDS if plan.guards is None else plan.guards
    opens = (at_rate[0], str(at_rate[1])) if at_rate else None
    return Load(tool, str(program), int(plan.duration_s), threads, plan.mode, plan.replay, bounds, at_rate=opens)


def _environment(
    cases: Iterable[PlannedCase], plan: Plan, chosen: Load, instrument: Instrument, pinned: pin.Cores | None
) -> Environment:
    tool = chosen.tool
    about_tool = LoadTool(tool.name, programs.version((chosen.program, *tool.version)), tool.fallback)
    used = {(case.record.stack, case.record.layer): case.served for case in cases}
    here = facts.environment(instrument.programs(used.values(), plan.database), about_tool, pinned)
    others = dict.fromkeys(case.record.python for case in cases if case.record.python)
    return replace(here, pythons={version: pythons.described(version) for version in others} or None)


def _notes(chosen: Load, pinned: pin.Cores | None, capacity: bool) -> tuple[str, ...]:
    notes = []
    cores = facts.cores()
    if pinned:
        shared = ", ".join(f"{part} on {', '.join(map(str, numbers))}" for part, numbers in pinned.items())
        notes.append(f"processor cores: {shared}")
    if cores < pin.CORES_FOR_ALL and not pinned:
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
    names = [name for name, value in asdict(before).items() if now_here[name] != value]
    words = [DIFFERENT.get(name, name.replace("_", " ")) for name in names]
    return [f"resumed after a stop; since it began these have changed: {', '.join(words)}"] if names else []

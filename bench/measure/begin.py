"""Begin a run, or resume one: from what is asked for to a session, its folder made or repaired."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from bench import load, paths, programs
from bench.catalog import catalog, sizes, values
from bench.errors import BenchError
from bench.figures import capacity, ratios
from bench.figures.capacity import parse_limit
from bench.machine import facts, pin
from bench.measure import guards, replay
from bench.measure import plan as planning
from bench.measure.instrument import Instrument
from bench.measure.journal import Journal
from bench.measure.ledger import Ledger
from bench.measure.plan import PlannedCase
from bench.measure.progress import RunProgress
from bench.measure.racing import Racing
from bench.measure.session import Session
from bench.measure.trial import Load, now
from bench.project import health, pythons, workload
from bench.project.under_test import UnderTest, recorded_project
from bench.results.folder import Folder, read_run
from bench.results.records import FORMAT, UNLIMITED, Added, Environment, LoadTool, Outcome, Plan, RunInfo
from bench.results.trials import Trial
from bench.serve import database
from bench.serve.case import CannotRun, Case
from bench.serve.database import Database

LEVEL = 16
ROUNDS = 5
# A run until decided measures few cases in its later rounds.
ROUNDS_UNTIL_DECIDED = 20
DURATION_S = 10
# A capacity takes many trials.
CAPACITY_DURATION_S = 5
# Fields of an environment whose names say little -> words for them.
DIFFERENT = {
    "affinity": "cores of the programs",
    "cpu_model": "processor",
    "dirty": "uncommitted changes",
    "os": "operating system",
    "python": "Python",
    "pythons": "other Pythons",
}
MAX_CONNECTIONS = 10_000
MAX_RATE = 100_000
MAX_ROUNDS = 10_000
MAX_SECONDS = 86_400


@dataclass(frozen=True)
class Request:
    """What a run is asked to measure; None and empty mean the default.

    levels    connections of a closed loop
    rates     requests a second of an open loop; a float replays a recording so many times as fast
    changes   of values, as NAME=VALUE
    env       of the project, as NAME=VALUE
    pythons   versions of other Pythons: each stack is served by each of them
    guards    as NAME=BOUND or NAME=off
    capacity  the limit of the latency within which the highest rate is sought, such as p95=200ms
    until     decided: cases that cannot be the best any more are dropped; rounds are those at most
    budget_s  seconds within which a run until decided makes rounds
    command   the command line, without passwords
    """

    project: UnderTest
    stacks: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    rates: tuple[int | float, ...] = ()
    rounds: int | None = None
    duration_s: int | None = None
    sizes: tuple[str, ...] = ()
    database: str | None = None
    tool: str | None = None
    env: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    margin: float | None = None
    guards: tuple[str, ...] = ()
    capacity: str = ""
    to: Path | None = None
    until: Literal["decided"] | None = None
    budget_s: int | None = None
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Planned:
    """A new run before anything is started or written."""

    info: RunInfo
    cases: tuple[PlannedCase, ...]
    load: Load
    pinned: pin.Cores | None
    ledger: Ledger
    rows: Database


def planned(request: Request, instrument: Instrument) -> Planned:
    """The run that `begin` would make. Raises BenchError for unknown names and invalid values."""
    project, plan = request.project, make_plan(request)
    rows = database.parse(project, request.database)
    health.require(project, rows.of_project)
    pinned = pin.cores(pin.affinity())
    chosen = _load(plan, project, request.tool, pinned)
    cases, skips = planning.cases(plan, resolver(plan, rows, instrument), catalog.read().size, sizes.problem)
    every = workload.workloads(project)
    recorded = [note for name in plan.workloads for note in every[name].notes]
    notes = (*_notes(chosen, pinned, bool(plan.capacity)), *dict.fromkeys(recorded))
    info = RunInfo(FORMAT, request.command, now(), None, plan, tuple(case.record for case in cases), skips, notes)
    return Planned(info, cases, chosen, pinned, ledger_of(cases, info), rows)


def begin(request: Request, instrument: Instrument) -> Session:
    """A new run, its folder made. Raises BenchError for unknown names and invalid values."""
    return opened(planned(request, instrument), request, instrument)


def opened(new: Planned, request: Request, instrument: Instrument, progress: RunProgress | None = None) -> Session:
    """The session of a planned run, its folder made; `progress` is what is printed of it."""
    folder = Folder(request.to or new_folder())
    paths.must_be_plain(folder.directory)
    environment = _environment(new.cases, new.info.plan, new.load, instrument, new.pinned)
    folder.create()
    folder.begin(new.info, environment)
    journal = Journal(folder, new.info, environment)
    return Session(journal, new.ledger, new.load, instrument, new.rows, progress=progress)


def project_of(directory: Path, given: UnderTest) -> UnderTest:
    """The project of the run in a folder; `given` is that of the command line, which may name no other."""
    plan = read_run(directory).info.plan
    return recorded_project(given, plan.project, plan.describe)


def resume(directory: Path, asked: str | None, instrument: Instrument) -> Session:
    """The run in a folder, with what is left of it; `asked` is its database, needed when it was named by URL.

    Voided trials are left, too. Raises BenchError when the run cannot be resumed as it began.
    """
    run = read_run(directory)
    plan, pinned = run.info.plan, run.environment.affinity
    if plan.inventory:
        raise BenchError(f"--resume {directory}: it measured hosts of an inventory; add --inventory FILE")
    project = instrument.project
    rows = _same_database(directory, project, asked, plan)
    if pinned and not set().union(*pinned.values()) <= set(pin.affinity()):
        raise BenchError(f"--resume {directory}: it was pinned to processor cores that are not here; begin a new run")
    chosen = _load(plan, project, run.environment.load_tool.name, pinned)
    cases = planning.recorded(run.info.cases, resolver(plan, rows, instrument), catalog.read().size)
    ledger = ledger_of(cases, run.info, run.trials, run.checks)
    if run.info.finished_at and not ledger.left:
        raise BenchError(f"--resume {directory}: the run is complete; next: python -m bench report {directory}")
    paths.must_be_plain(directory)
    folder = Folder(directory)
    with folder.locked():
        folder.repair()
    here = _environment(cases, plan, chosen, instrument, pinned)
    info = replace(run.info, notes=(*run.info.notes, *_differences(run.environment, here)))
    return Session(Journal(folder, info, run.environment), ledger, chosen, instrument, rows, run.trials)


def add(directory: Path, wanted: Iterable[tuple[str, int]], rounds: int) -> None:
    """Plan so many further rounds of some of a run's cases, each at a level: the run can be resumed then.

    Raises BenchError when the folder is in use.
    """
    folder = Folder(directory)
    with folder.locked():
        info, wanted = read_run(directory).info, tuple(wanted)
        numbers = range(info.rounds + 1, info.rounds + 1 + rounds)
        added = tuple(Added(case_id, level, number) for number in numbers for case_id, level in wanted)
        folder.write_info(replace(info, finished_at=None, added=(*info.added, *added)))


def make_plan(request: Request) -> Plan:
    """The plan of a run with its defaults. Raises BenchError for names and values that do not exist, and for limits."""
    known, project = catalog.read(), request.project
    asked = database.parse(project, request.database)
    _check_limits(request)
    chosen = request.workloads or (next(iter(workload.workloads(project))),)
    factor, request = _replayed(request, chosen)
    duration_s = request.duration_s or (CAPACITY_DURATION_S if request.capacity else DURATION_S)
    mode, levels = _mode(request)
    values.environment(list(request.env))
    known.values[values.BENCH].changed(values.parse_changes(list(request.changes)))
    return Plan(
        stacks=pythons.variants(request.stacks or known.usual_stacks, request.pythons),
        layers=request.layers or tuple(known.layers),
        workloads=chosen,
        levels=levels,
        rounds=request.rounds or (ROUNDS_UNTIL_DECIDED if request.until else ROUNDS),
        duration_s=float(duration_s),
        sizes=request.sizes or (UNLIMITED,),
        database=asked.label,
        rows_total=None,
        order_seed=random.SystemRandom().randrange(2**31),
        database_given=asked.given,
        changes=request.changes,
        env=request.env,
        project=project.recorded,
        describe=project.described,
        mode=mode,
        replay=factor,
        margin=_margin(request),
        guards=guards.bounds(list(request.guards)),
        capacity=request.capacity,
        until=request.until,
        budget_s=None if request.budget_s is None else float(request.budget_s),
    )


def ledger_of(
    cases: Sequence[PlannedCase],
    info: RunInfo,
    trials: Iterable[Trial] = (),
    checks: Iterable[Outcome] = (),
) -> Ledger:
    """The trials that are left of a run with these cases, after those that were made."""
    plan = info.plan
    # The levels of a capacity run are found as it goes.
    levels = (0,) if plan.capacity else plan.levels
    schedule = planning.schedule(cases, levels, plan.rounds, plan.order_seed or 0, info.added)
    limit = parse_limit(plan.capacity, "--capacity") if plan.capacity else None
    measurements = (item for batch in schedule for item in batch.measurements)
    racing = Racing(measurements, plan.rounds, plan.margin) if plan.until else None
    return Ledger(schedule, trials, checks, limit, racing)


def _margin(request: Request) -> float:
    """The share by which figures must differ; two capacities that were found in steps must do so by a step more."""
    if request.margin is not None:
        return request.margin
    return round((1 + ratios.MARGIN) * (1 + capacity.STEP) - 1, 2) if request.capacity else ratios.MARGIN


def _check_limits(request: Request) -> None:
    if request.budget_s and not request.until:
        raise BenchError("--budget is the time of a run --until decided; add that, or set the time by --rounds")
    if request.capacity and request.until:
        raise BenchError("--capacity finds the rate of each case; leave out --until decided")
    for name, value, limit in (
        ("rounds", request.rounds, MAX_ROUNDS),
        ("duration", request.duration_s, MAX_SECONDS),
    ):
        if (value or 0) > limit:
            raise BenchError(f"--{name} {value}: too many; use at most {limit}")


def _replayed(request: Request, chosen: tuple[str, ...]) -> tuple[float, Request]:
    """How many times as fast as recorded to replay a workload, 0 for none; and the request with its rate and time."""
    factors = [rate for rate in request.rates if isinstance(rate, float)]
    if not factors:
        return 0, request
    factor = factors[0]
    if len(request.rates) > 1 or len(chosen) > 1 or request.capacity:
        raise BenchError(f"--rate x{factor:g} replays one workload at one speed: give it alone, with one --workload")
    recorded = workload.workload(request.project, chosen[0])
    seconds = request.duration_s or replay.duration_s(recorded, factor)
    return factor, replace(request, rates=(replay.level(recorded, factor, seconds),), duration_s=seconds)


def _mode(request: Request) -> tuple[str, tuple[int, ...]]:
    """Closed or open loop, and its levels; a capacity run finds them."""
    if request.capacity:
        parse_limit(request.capacity, "--capacity")
        if request.rates or request.levels:
            given = "--rate" if request.rates else "--level"
            raise BenchError(f"--capacity finds the rates of an open loop; leave out {given}")
        return "open", ()
    if request.rates and request.levels:
        raise BenchError("--rate is of an open loop and --level of a closed one; give one of them")
    if request.rates:
        rates = tuple(map(int, request.rates))
        if max(rates) > MAX_RATE:
            raise BenchError(f"--rate {max(rates)}: too many requests a second; use at most {MAX_RATE}")
        return "open", rates
    levels = request.levels or (LEVEL,)
    if max(levels) > MAX_CONNECTIONS:
        raise BenchError(f"--level {max(levels)}: too many connections; use at most {MAX_CONNECTIONS}")
    return "closed", levels


def resolver(plan: Plan, rows: Database, instrument: Instrument) -> planning.Resolve:
    """Resolves stacks and layers with the plan's values and environment."""
    changes, env = values.parse_changes(list(plan.changes)), values.environment(list(plan.env))

    def resolve(stack: str, layer: str) -> Case | CannotRun:
        return instrument.resolve(stack, layer, rows, changes, env)

    return resolve


def _load(plan: Plan, project: UnderTest, wanted: str | None, pinned: pin.Cores | None) -> Load:
    steps = [workload.workload(project, name).steps for name in plan.workloads]
    tool, program = load.choose(steps, programs.find, wanted, plan.mode)
    # Without a core of its own, one thread could not keep up with the fastest servers.
    threads = len(pinned[pin.LOAD]) if pinned else facts.cores()
    bounds = guards.BOUNDS if plan.guards is None else plan.guards
    return Load(tool, str(program), int(plan.duration_s), threads, plan.mode, plan.replay, bounds)


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


def _same_database(directory: Path, project: UnderTest, asked: str | None, plan: Plan) -> Database:
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


def new_folder() -> Path:
    """A folder under results/ that is named after the time and does not exist yet."""
    name = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = paths.RESULTS / name
    number = 1
    while folder.exists():
        number += 1
        folder = paths.RESULTS / f"{name}-{number}"
    return folder

"""Prepare a run on this machine, or the rest of one: cases, load settings, notes and the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from bench import programs
from bench.errors import BenchError
from bench.measure import load
from bench.measure.records.folder import Run, read_run, resume_command
from bench.measure.records.records import FORMAT, Ended, Environment, LoadTool, Plan, RunInfo
from bench.measure.records.trials import Trial
from bench.measure.run import guards, machine_facts, workload
from bench.measure.run import plan as planning
from bench.measure.run.local import LocalTestBed, TrialBed
from bench.measure.run.outlook import Outlook
from bench.measure.run.plan import MeasuredCase, Measurement, Request, make_plan
from bench.measure.run.progress import RunProgress
from bench.measure.run.schedules import Replay, Schedule, counting, counting_steps
from bench.measure.run.session import Journal, Session, begin, now, resume
from bench.measure.run.trial import LoadSettings
from bench.measure.run.verified import Verified
from bench.serve.deployment import database, survey
from bench.serve.deployment.database import Database
from bench.serve.machine import cpu_affinity
from bench.serve.project import health, pythons, refs
from bench.serve.project.opened import UnderTest
from bench.serve.project.refs import Ref


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run before anything is started or written: a whole run, or the rest of a stopped one.

    tool         name of the load tool
    environment  reads the machine, or the record from the beginning; raises BenchError if nothing can be measured
    bed          makes the test bed from its journal and progress
    before       the resumed run
    """

    info: RunInfo
    cases: tuple[MeasuredCase, ...]
    tool: str
    environment: Callable[[], Environment]
    bed: Callable[[Journal, RunProgress], TrialBed]
    before: Run | None = None

    @property
    def recorded(self) -> tuple[Trial, ...]:
        """The trials of the resumed run, in order."""
        if not self.before:
            return ()
        return (*self.before.trials, *self.before.latency)

    def outlook(self) -> Outlook:
        """The outlook of the run."""
        verified = Verified()
        if self.before:
            verified = Verified(self.before.checks)
        return Outlook(self.info.plan, self._records, verified)

    def replay(self, schedule: Schedule[Ended | None]) -> Replay[Measurement, Trial]:
        """Replay a schedule of the run up to the first missing trial."""
        return Replay(schedule, self._records)

    def session(
        self, folder: Path | None, replay: Replay[Measurement, Trial], progress: RunProgress
    ) -> Session[Measurement, Trial]:
        """The session, in a new or repaired folder. Raises BenchError on failure, or if nothing is left."""
        if self.before:
            journal = resume(self.before.directory, self.info, self.environment, replay)
        else:
            journal = begin(folder, "", self.info, self.environment)
        attempts = [trial.key for trial in self.recorded]
        return Session(journal, replay, self.bed(journal, progress), progress, attempts)

    @property
    def _records(self) -> list[Trial]:
        if self.info.plan.capacity:
            return counting_steps(self.recorded)
        return counting(self.recorded)


def new_run(request: Request, bed: type[LocalTestBed] = LocalTestBed) -> Prepared:
    """A new run on this machine. Raises BenchError for unknown names and invalid values."""
    project, plan = request.project, make_plan(request)
    rows = request.database
    health.require_page(project, rows.of_project)
    pinned = cpu_affinity.cores(cpu_affinity.affinity())
    load = _load(plan, project, request.tool, pinned)
    cases, skips = planning.cases(plan, bed.resolver(project, plan, rows))
    every = workload.workloads(project)
    recorded = chain.from_iterable(every[name].notes for name in plan.workloads)
    commits = refs.notes(project.folder, _refs(plan))
    off = guards.notes(request.guards)
    notes = (*_notes(load, pinned, bool(plan.capacity)), *off, *dict.fromkeys(recorded), *commits)
    return Prepared(
        info=RunInfo(FORMAT, request.command, now(), None, plan, tuple(case.record for case in cases), skips, notes),
        cases=cases,
        tool=load.tool.name,
        environment=lambda: _environment(cases, plan, load, bed, pinned),
        bed=partial(bed, load=load, project=project, rows=rows),
    )


def stopped_run(
    directory: Path,
    named_database: str | None,
    project: UnderTest,
    command: str = "run",
    bed: type[LocalTestBed] = LocalTestBed,
) -> Prepared:
    """The rest of a stopped run of `command` in a folder; discarded trials are repeated.

    `named_database` is needed if it was named by URL. Raises BenchError if the run cannot be resumed as begun.
    """
    run = read_run(directory)
    plan, pinned = run.info.plan, run.environment.affinity
    project.use_refs(_refs(plan))
    if plan.command != command:
        raise BenchError(f"--resume {directory}: resume it with: {resume_command(directory, run.info)}")
    if plan.inventory:
        raise BenchError(f"--resume {directory}: it measured hosts of an inventory; add --inventory FILE")
    rows = same_database(directory, project, named_database, plan)
    if pinned and not set().union(*pinned.values()) <= set(cpu_affinity.affinity()):
        raise BenchError(f"--resume {directory}: it was pinned to processor cores that are not here; begin a new run")
    load = _load(plan, project, run.environment.load_tool.name, pinned)
    cases = planning.recorded(run.info.cases, bed.resolver(project, plan, rows))
    here = _environment(cases, plan, load, bed, pinned)
    return Prepared(
        info=replace(run.info, notes=(*run.info.notes, *_differences(run.environment, here))),
        cases=cases,
        tool=load.tool.name,
        environment=lambda: run.environment,
        bed=partial(bed, load=load, project=project, rows=rows),
        before=run,
    )


def _refs(plan: Plan) -> list[Ref]:
    """The commits of the project that a run compares."""
    return [Ref(label, commit) for label, commit in (plan.refs or {}).items()]


def _load(plan: Plan, project: UnderTest, wanted: str | None, pinned: cpu_affinity.Cores | None) -> LoadSettings:
    steps = [workload.workload(project, name).steps for name in plan.workloads]
    tool, program = load.choose(steps, programs.find, wanted, plan.mode)
    at_rate = None
    if plan.latency:
        at_rate = load.choose(steps, programs.find, None, "open")
    # Without a pinned core, one thread could not keep up with the fastest servers.
    threads = machine_facts.cores()
    if pinned:
        threads = len(pinned[cpu_affinity.LOAD])
    bounds = plan.guards
    if bounds is None:
        bounds = guards.BOUNDS
    return LoadSettings(tool, program, int(plan.duration_s), threads, plan.mode, plan.replay, bounds, at_rate=at_rate)


def _environment(
    cases: Iterable[MeasuredCase],
    plan: Plan,
    chosen: LoadSettings,
    bed: type[LocalTestBed],
    pinned: cpu_affinity.Cores | None,
) -> Environment:
    tool = chosen.tool
    about_tool = LoadTool(tool.name, programs.version((chosen.program, *tool.version)), tool.fallback)
    used = {(case.record.stack, case.record.layer): case.served for case in cases}
    here = machine_facts.environment(bed.programs(used.values(), plan.database), about_tool, pinned)
    others = dict.fromkeys(case.record.python for case in cases if case.record.python)
    return replace(
        here,
        pythons={version: pythons.described(version) for version in others} or None,
        missing_web_server=survey.missing_web_server(),
    )


def _notes(chosen: LoadSettings, pinned: cpu_affinity.Cores | None, capacity: bool) -> tuple[str, ...]:
    notes = []
    cores = machine_facts.cores()
    if pinned:
        shared = ", ".join(f"{part} on {', '.join(map(str, numbers))}" for part, numbers in pinned.items())
        notes.append(f"processor cores: {shared}")
    if cores < cpu_affinity.CORES_FOR_ALL and not pinned:
        advice = "do not read them as capacities"
        if capacity:
            advice = "read capacities as lower bounds"
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


def same_database(directory: Path, project: UnderTest, named_database: str | None, plan: Plan) -> Database:
    """The database of a resumed run. Raises BenchError if different from the run's first database."""
    if named_database is None:
        named_database = plan.database
        if plan.database_given:
            named_database = os.environ.get("DATABASE_URL")
    if named_database is None:
        raise BenchError(f"--resume {directory}: the URL of its database is not stored; give --database")
    chosen = database.parse(project, named_database)
    if chosen.label != plan.database or chosen.is_created == plan.database_given:
        hint = "leave out --database"
        if plan.database_given:
            hint = "give its URL"
        raise BenchError(f"--resume {directory}: it measures another database, {plan.database}; {hint}")
    return chosen


def _differences(before: Environment, here: Environment) -> list[str]:
    """A note for a run resumed in another environment."""
    # The run fills in these values later.
    here = replace(here, configs=before.configs, rows_seed=before.rows_seed, rows_total=before.rows_total)
    now_here = asdict(here)
    names = [name.replace("_", " ") for name, value in asdict(before).items() if now_here[name] != value]
    if not names:
        return []
    return [f"resumed after a stop; since it began these have changed: {', '.join(names)}"]

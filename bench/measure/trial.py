"""One trial: request every address once, warm up, make the load and sample what it costs, request every address again.

Only this module, and bench.fleet.trials for several hosts, time anything. A trial in which anything went wrong is
failed, with the reason and without figures; a trial that a guard (bench.measure.guards) does not trust is voided, with
the reason and its figures.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from bench import load as load_tools
from bench.load import Job, LoadError, Tool
from bench.machine import facts, http
from bench.machine.processes import Interference
from bench.measure import guards, load_process
from bench.measure.guards import Observed
from bench.measure.interference import Bodies, unlike
from bench.measure.load_process import Live, TrialError
from bench.measure.plan import Measurement
from bench.measure.queries import STATIC
from bench.measure.replay import arrivals
from bench.measure.resource_usage import Observer
from bench.measure.worker_share import requests_per_worker
from bench.project.workload import workload
from bench.results import records
from bench.results.folder import Folder
from bench.results.trials import Errors, Evidence, Trial, TrialFigures, TrialIdentity
from bench.serve.deployment import Running

# Time for a load tool, after the load, to wait for the last answers and to add up.
GRACE_S = 10
# Pages of the workload that are fetched and compared in a trial, at most one a second.
PAGES_CHECKED = 10
# Connections that an open loop may open: as many as requests can be waiting for an answer.
MAX_CONNECTIONS = 10_000
# Connections that an open loop usually needs.
USUAL_CONNECTIONS = 16


@dataclass(frozen=True)
class Load:
    """How load is made in every trial of a run.

    threads   processor cores the load tool may keep busy
    mode      closed: the level is connections; open: it is requests a second
    bounds    of the guards that are in force (bench.measure.guards)
    replay    how many times as fast as recorded the requests of a workload leave; 0 at the level's rate
    unsteadiness  noise of a third of a load in the run so far, for the guard `drift`
    live      shows the progress of the load, where the load tool reports it
    """

    tool: Tool
    program: str
    duration_s: int
    threads: int
    mode: str = "closed"
    replay: float = 0
    bounds: Mapping[str, float] = field(default_factory=dict)
    unsteadiness: float = 0.0
    live: Live | None = None

    @property
    def warmup_s(self) -> float:
        """Seconds of unmeasured load before a trial."""
        return records.warmup_s(self.duration_s)

    def job(self, url: str, paths: tuple[str, ...], level: int, keep_alive: bool, seconds: int | None = None) -> Job:
        """The job of a trial at a level; `seconds` is its duration when that is not the run's."""
        reuse = self.tool.can_keep_alive and keep_alive
        job = Job(url, paths, level, seconds or self.duration_s, self.threads, keep_alive=reuse)
        if self.mode == "closed":
            return job
        return replace(job, rate=level, connections=min(MAX_CONNECTIONS, max(100, level * job.timeout_s)))

    def tool_cores(self, job: Job) -> int:
        """How many cores the load tool can keep busy with a job: as many as its options say, or all."""
        return self.tool.threads(job) or facts.cores()

    def visitors(self, job: Job) -> int:
        """How many connections a job has at once; an open loop usually needs few of those it may open."""
        return job.connections if job.rate is None else min(job.rate, USUAL_CONNECTIONS)


def measure(item: Measurement, paths: tuple[str, ...], running: Running, load: Load, folder: Folder) -> Trial:
    """Make the trial and return its record; its status is `failed` when anything went wrong."""
    directory = folder.raw / item.trial_id
    directory.mkdir(parents=True, exist_ok=True)
    wanted = workload(running.case.project, item.case.workload)
    job = load.job(running.url, paths, item.level, wanted.keep_alive)
    if load.replay:
        job = replace(job, times=arrivals(wanted, load.replay, job.seconds))
    identity = replace(identity_of(item, load), keep_alive=job.keep_alive)
    observer = Observer(running)
    try:
        before = _visit("before the load", running, paths)
        observer.note(requests_per_worker=requests_per_worker(running.url, load.visitors(job), job.keep_alive))
        _warm_up(job, load, directory)
        identity = replace(identity, started_at=now())
        seen, checked = _timed(job, load, running, observer, before, directory)
        if problem := seen.figures.failure():
            raise TrialError(f"{load.tool.name}: {problem}", newest_log(running.logs), seen.figures)
        after = _visit("after the load", running, paths)
    except TrialError as error:
        errors = [failed_errors(error.figures)] if error.figures else []
        log = folder.relative(error.log)
        return Trial.of(identity, *errors, observer.condition, status="failed", reason=str(error), log=log)
    evidence = _judged(replace(seen, unsteadiness=load.unsteadiness), checked, load, before, after)
    reason = guards.voids(evidence.guards or {})
    return Trial.of(
        identity,
        figures_of(seen.figures, job.seconds),
        errors_of(seen.figures),
        observer.costs,
        observer.condition,
        evidence,
        status="voided" if reason else "ok",
        reason=reason,
    )


def failed(item: Measurement, load: Load, reason: str, log: str | None = None) -> Trial:
    """The record of a trial that failed before its load."""
    return Trial.of(identity_of(item, load), status="failed", reason=reason, log=log)


def now() -> str:
    """The time in ISO 8601 with offset."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def newest_log(logs: Path) -> Path | None:
    """The log that was written to last, most likely about the failure; None when all are empty."""
    with contextlib.suppress(OSError):
        written = [path for path in logs.iterdir() if path.is_file() and path.stat().st_size]
        return max(written, key=lambda path: path.stat().st_mtime, default=None)
    return None


def rush(paths: Sequence[str]) -> int:
    """The length of the longest sequence of files among these requests, with the page after it."""
    runs = [len(list(run)) for files, run in itertools.groupby((*paths, *paths), _is_file) if files]
    return 1 + min(max(runs, default=0), len(paths) - 1)


def _is_file(path: str) -> bool:
    return path.startswith(STATIC)


# ------------------------------------------------------------------------------------- parts of the record


def identity_of(item: Measurement, load: Load) -> TrialIdentity:
    case = item.case
    return TrialIdentity(
        trial_id=item.trial_id,
        case_id=case.case_id,
        stack=case.stack,
        layer=case.layer,
        workload=case.workload,
        size=case.size,
        database=case.database,
        level_connections=item.level if load.mode == "closed" else None,
        rate_requested=float(item.level) if load.mode == "open" else None,
        round=item.round,
        started_at=now(),
        tool=load.tool.name,
    )


def figures_of(found: load_tools.Figures, seconds: int) -> TrialFigures:
    """The load tool's figures as a trial records them: answers a second in place of counts for the thirds."""
    values = {item.name: getattr(found, item.name) for item in fields(TrialFigures)}
    thirds = found.thirds and tuple(round(3 * count / seconds, 3) for count in found.thirds)
    return TrialFigures(**{**values, "duration_s": round(found.duration_s, 3), "thirds": thirds})


def errors_of(found: load_tools.Figures) -> Errors:
    return Errors(**{item.name: getattr(found, item.name) for item in fields(Errors) if hasattr(found, item.name)})


def failed_errors(found: load_tools.Figures) -> Errors:
    """The errors of a load that failed for them, and how far it got."""
    return replace(errors_of(found), answers_before_failure=found.requests_total - (found.responses_not_2xx or 0))


def _judged(
    seen: Observed, checked: int, load: Load, before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> Evidence:
    """The verdicts of the guards on the load, with their evidence; `checked` pages were compared during it."""
    differences = (unlike(path, before[path], after[path]) for path in before)
    seen = replace(seen, wrong_bodies=seen.wrong_bodies or next(filter(None, differences), ""))
    return Evidence(
        guards=guards.look(seen, load.bounds),
        body_bytes=seen.body_bytes,
        bodies_checked=checked,
        tool_cpu_share=seen.tool_cpu,
        other_cpu_share=seen.others,
    )


# ------------------------------------------------------------------------------------- the load


def _visit(when: str, running: Running, paths: tuple[str, ...]) -> dict[str, bytes]:
    try:
        return http.all_of(running.url, paths)
    except http.VisitError as error:
        raise TrialError(f"{when}: {error}", newest_log(running.logs)) from None


def _warm_up(job: Job, load: Load, directory: Path) -> None:
    """Unmeasured load, its output stored. Load tools count in whole seconds, so a shorter one is interrupted."""
    seconds = math.ceil(load.warmup_s)
    command = load.tool.command(load.program, replace(job, seconds=seconds, times=()))
    limit_s = seconds + GRACE_S
    load_process.run(command, job.connections, directory, "warmup", limit_s, interrupt_after_s=load.warmup_s)


def _timed(
    job: Job, load: Load, running: Running, observer: Observer, expected: Mapping[str, bytes], directory: Path
) -> tuple[Observed, int]:
    """Make the load; what was observed, and how many pages were checked meanwhile."""
    bodies = Bodies(partial(http.get, running.url), expected, max(1.0, job.seconds / PAGES_CHECKED))
    texts, tool_s, others = _watched(job, load, observer, bodies, directory)
    try:
        figures = _parsed(load.tool, texts, directory).supported()
    finally:
        observer.look_back()
    seen = Observed(
        figures=figures,
        connections=job.connections if job.rate is None else None,
        rush=rush(job.paths),
        rate=job.rate,
        body_bytes=round(sum(len(expected[path]) for path in job.paths) / len(job.paths), 1),
        bytes_whole=load.tool.counts_bytes,
        wrong_bodies=bodies.wrong,
        tool_cpu=round(tool_s / (figures.duration_s * load.tool_cores(job)), 4),
        others=others,
    )
    return seen, bodies.checked


def _watched(
    job: Job, load: Load, observer: Observer, bodies: Bodies, directory: Path
) -> tuple[tuple[str, str], float, float | None]:
    """Run the load tool: what it printed, its CPU seconds, and the share of the machine that others took."""
    command = load.tool.command(load.program, job)
    limit_s = job.seconds + job.timeout_s + GRACE_S
    observer.start()
    interference, tool_before = Interference(), load_process.processor_seconds()
    bodies.start()
    try:
        texts = load_process.run(command, job.connections, directory, "load", limit_s, live=load.live)
    except TrialError:
        observer.stop()
        observer.look_back()
        raise
    finally:
        tool_s = load_process.processor_seconds() - tool_before
        bodies.stop()
        observer.stop()
    return texts, tool_s, interference.share([tool_s, *observer.cpu_seconds()])


def _parsed(tool: Tool, texts: tuple[str, str], directory: Path) -> load_tools.Figures:
    try:
        return tool.parse(*texts)
    except LoadError as error:
        raise TrialError(str(error), directory / "load.err") from None


def load_once(job: Job, load: Load, directory: Path) -> tuple[load_tools.Figures, float]:
    """Load outside any trial: its figures, and the CPU seconds of the load tool. Raises TrialError."""
    before = load_process.processor_seconds()
    command = load.tool.command(load.program, job)
    texts = load_process.run(command, job.connections, directory, "load", job.seconds + GRACE_S)
    seconds = load_process.processor_seconds() - before
    return _parsed(load.tool, texts, directory), seconds

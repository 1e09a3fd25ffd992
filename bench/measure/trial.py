"""One trial: visit every address once, warm up, make the load and sample what it costs, visit again.

Only this module times anything. A trial that went wrong in any way becomes a failed one, with the reason and without
figures; one that a guard (bench.guards) does not trust is voided, with the reason and its figures.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import resource
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Protocol

from bench.catalog import catalog
from bench.errors import GlobalFault
from bench.host import http, machine
from bench.interrupt import SIGNALS
from bench.load import Command, Figures, Job, LoadError, Tool
from bench.measure import guards
from bench.measure.interference import AccessLog, Bodies, Bystanders, unlike
from bench.measure.queries import STATIC
from bench.measure.resource_usage import Observer
from bench.measure.worker_share import spread
from bench.results.records import Case, Folder, Trial

# How much a load tool's log of errors may grow to; siege writes a line for each failed request.
LOG_LIMIT_BYTES = 1_000_000
# What a load tool may take beyond its time: it may wait for the last answers, then it adds up.
GRACE_S = 10
# File descriptors a load tool needs besides its connections.
SPARE_FILES = 100
# A page of the workload is fetched and compared this many times in a trial, and at most once a second.
LOOKS = 10
# Connections that an open loop may open, at most: as many as requests can be waiting for an answer.
MOST_CONNECTIONS = 10_000
# What is taken for those it has while all is well.
FEW_CONNECTIONS = 16
# What a line of a load tool's errors begins with when it tells seconds and requests so far, and whose.
PROGRESS = b"progress "


class Running(Protocol):
    """What a trial needs of a deployment (bench.deployment.Running)."""

    url: str
    ready_s: float
    pids: dict[str, int]
    servers: tuple[str, ...]
    logs: Path
    memory_idle_bytes: dict[str, int | None]

    def oom_kills(self) -> int | None: ...

    def answers(self) -> bool: ...


@dataclass(frozen=True)
class Load:
    """How load is made in every trial of a run.

    threads   processor cores the load tool may keep busy
    mode      closed: the level is connections; open: it is requests a second
    bounds    of the guards that are in force (bench.guards)
    ceilings  requests a second the tool can make with all of one core, with connections reused or not; empty when it
              was not calibrated
    live      called with seconds since the start and requests so far, where the load tool tells while it works
    """

    tool: Tool
    program: str
    duration_s: int
    warmup_s: float
    threads: int
    mode: str = "closed"
    bounds: Mapping[str, float] = field(default_factory=dict)
    ceilings: Mapping[bool, float] = field(default_factory=dict)
    live: Callable[[float, int], None] | None = None

    def job(self, url: str, paths: tuple[str, ...], level: int, keep_alive: bool, seconds: int | None = None) -> Job:
        """The job of a trial at a level; `seconds` is its duration when that is not the run's."""
        reuse = self.tool.can_keep_alive and keep_alive
        job = Job(url, paths, level, seconds or self.duration_s, self.threads, keep_alive=reuse)
        if self.mode == "closed":
            return job
        return replace(job, rate=level, connections=min(MOST_CONNECTIONS, max(100, level * job.timeout_s)))

    def tool_cores(self, job: Job) -> int:
        """How many cores the load tool can keep busy with a job: those it is told, or all."""
        return self.tool.threads(job) or machine.cores()

    def ceiling(self, job: Job) -> float | None:
        """Requests a second that would fill the cores the tool can keep busy with a job; None if not calibrated."""
        of_one = self.ceilings.get(job.keep_alive)
        return None if of_one is None else round(of_one * self.tool_cores(job), 1)

    def visitors(self, job: Job) -> int:
        """How many connections a job has at once; an open loop has few of those it may have while all is well."""
        return job.connections if job.rate is None else min(job.rate, FEW_CONNECTIONS)


class TrialError(Exception):
    """Why a trial failed; `log` tells more, `figures` are the tool's when it got that far."""

    def __init__(self, reason: str, log: Path | None = None, figures: Figures | None = None):
        super().__init__(reason)
        self.log = log
        self.figures = figures


def trial_id(case: Case, level: int, round_number: int) -> str:
    """The name of a trial and of its directory."""
    return f"{case.case_id}~{level}~r{round_number}"


def measure(
    case: Case, level: int, round_number: int, paths: tuple[str, ...], running: Running, load: Load, folder: Folder
) -> Trial:
    """Make the trial and give back its record, whose status is `failed` when anything went wrong."""
    name = trial_id(case, level, round_number)
    directory = folder.raw / name
    directory.mkdir(parents=True, exist_ok=True)
    job = load.job(running.url, paths, level, catalog.read().workload(case.workload).keep_alive)
    started_at = now()
    observer = Observer(running)
    workers = None
    try:
        before = _visit("before the load", running, paths)
        workers = spread(running.url, load.visitors(job), job.keep_alive)
        if load.warmup_s:
            _warm_up(job, load, directory)
        started_at = now()
        seen = _timed(job, load, running, observer, before, directory)
        figures = seen.figures
        if problem := figures.failure():
            raise TrialError(f"{load.tool.name}: {problem}", newest_log(running.logs), figures)
        after = _visit("after the load", running, paths)
    except TrialError as error:
        record = failed(case, level, round_number, load, str(error), folder.relative(error.log), started_at)
        counts = _error_counts(error.figures) if error.figures else {}
        counts |= observer.costs.aftermath | {"requests_per_worker": workers}
        return replace(record, **counts, time_to_ready_s=round(running.ready_s, 3), keep_alive=job.keep_alive)
    wrong = seen.wrong or next(filter(None, (unlike(path, before[path], after[path]) for path in before)), "")
    ceiling = load.ceiling(job)
    body_bytes = sum(len(before[path]) for path in paths) / len(paths)
    said = guards.look(
        guards.Observed(
            figures=figures,
            connections=job.connections if job.rate is None else None,
            rush=rush(paths),
            rate=job.rate,
            mean_is_own=load.tool.own_mean,
            mean_step_ms=load.tool.latency_step_ms,
            connecting=load.tool.connects_aside and not (job.keep_alive and seen.stays_open),
            body_bytes=body_bytes,
            bytes_whole=load.tool.counts_bytes,
            wrong_bodies=wrong,
            served=seen.served,
            ceiling=ceiling,
            tool_cpu=seen.tool_cpu,
            others=seen.others,
        ),
        load.bounds,
    )
    reason = guards.voids(said)
    return Trial(
        **_identity(case, level, round_number, load, started_at),
        status="voided" if reason else "ok",
        reason=reason,
        log=None,
        duration_s=round(figures.duration_s, 3),
        requests_total=figures.requests_total,
        requests_per_second=figures.requests_per_second,
        bytes_per_second=figures.bytes_per_second,
        latency_mean_ms=figures.latency_mean_ms,
        latency_p50_ms=figures.latency_p50_ms,
        latency_p90_ms=figures.latency_p90_ms,
        latency_p99_ms=figures.latency_p99_ms,
        latency_p999_ms=figures.latency_p999_ms,
        latency_max_ms=figures.latency_max_ms,
        histogram=figures.histogram,
        **_error_counts(figures),
        **observer.costs.figures,
        **observer.costs.aftermath,
        requests_per_worker=workers,
        time_to_ready_s=round(running.ready_s, 3),
        keep_alive=job.keep_alive,
        thirds=figures.thirds and tuple(round(3 * count / load.duration_s, 3) for count in figures.thirds),
        requests_dropped=figures.requests_dropped,
        send_delay_p99_ms=figures.send_delay_p99_ms,
        guards=said,
        body_bytes=round(body_bytes, 1),
        bodies_checked=seen.checked,
        requests_served=seen.served if isinstance(seen.served, int) else None,
        tool_ceiling_per_second=ceiling,
        tool_cpu_share=seen.tool_cpu,
        other_cpu_share=seen.others,
    )


def rush(paths: Sequence[str]) -> int:
    """How many requests of these, asked for in turn and again from the first, end with a page after files alone."""
    runs = [len(list(run)) for files, run in itertools.groupby((*paths, *paths), _is_file) if files]
    return 1 + min(max(runs, default=0), len(paths) - 1)


def _is_file(path: str) -> bool:
    return path.startswith(STATIC)


def failed(
    case: Case,
    level: int,
    round_number: int,
    load: Load,
    reason: str,
    log: str | None = None,
    started_at: str | None = None,
) -> Trial:
    """The record of a trial that gave no figures."""
    nothing = dict.fromkeys(field.name for field in fields(Trial))
    identity = _identity(case, level, round_number, load, started_at or now())
    return Trial(**{**nothing, **identity, "status": "failed", "reason": reason, "log": log})


def now() -> str:
    """The time in ISO 8601 with offset."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def newest_log(logs: Path) -> Path | None:
    """The log that was written to last, which is the one that tells of a failure; None when all are empty."""
    with contextlib.suppress(OSError):
        written = [path for path in logs.iterdir() if path.is_file() and path.stat().st_size]
        return max(written, key=lambda path: path.stat().st_mtime, default=None)
    return None


def _identity(case: Case, level: int, round_number: int, load: Load, started_at: str) -> dict:
    return {
        "trial_id": trial_id(case, level, round_number),
        "case_id": case.case_id,
        "stack": case.stack,
        "layer": case.layer,
        "workload": case.workload,
        "size": case.size,
        "database": case.database,
        "level_connections": level if load.mode == "closed" else None,
        "rate_requested": float(level) if load.mode == "open" else None,
        "round": round_number,
        "state": "warm",
        "started_at": started_at,
        "tool": load.tool.name,
    }


def _error_counts(figures: Figures) -> dict[str, int | dict[str, int] | None]:
    return {
        "errors_connect": figures.errors_connect,
        "errors_read": figures.errors_read,
        "errors_timeout": figures.errors_timeout,
        "responses_not_2xx": figures.responses_not_2xx,
        "statuses": figures.statuses,
    }


def _visit(when: str, running: Running, paths: tuple[str, ...]) -> dict[str, bytes]:
    try:
        return http.all_of(running.url, paths)
    except http.VisitError as error:
        raise TrialError(f"{when}: {error}", newest_log(running.logs)) from None


def _warm_up(job: Job, load: Load, directory: Path) -> None:
    """Unmeasured load, its output kept. Load tools count in whole seconds, so a shorter one is interrupted."""
    seconds = max(1, math.ceil(load.warmup_s))
    command = load.tool.command(load.program, replace(job, seconds=seconds))
    _run(command, job.connections, directory, "warmup", seconds + GRACE_S, interrupt_after_s=load.warmup_s)


@dataclass(frozen=True)
class Seen:
    """What was measured and noticed during the timed load; the names are those of bench.guards.Observed."""

    figures: Figures
    stays_open: bool
    checked: int
    wrong: str
    served: int | str
    tool_cpu: float | None
    others: float | None


def _timed(
    job: Job, load: Load, running: Running, observer: Observer, expected: Mapping[str, bytes], directory: Path
) -> Seen:
    command = load.tool.command(load.program, job)
    limit_s = job.seconds + job.timeout_s + GRACE_S
    stays_open = _stays_open(running, job.paths[0])
    bodies = Bodies(running.url, expected, max(1.0, job.seconds / LOOKS))
    # A relative name is relative to the logs or to where the server runs.
    access_log = AccessLog(*(folder / "access.log" for folder in (running.logs, running.logs.parent / "run")))
    observer.start()
    bystanders, tool_before = Bystanders(), _children_s()
    bodies.start()
    try:
        stdout, stderr = _run(command, job.connections, directory, "load", limit_s, live=load.live)
    except TrialError:
        observer.stop()
        observer.look_back()
        raise
    finally:
        tool_s = _children_s() - tool_before
        bodies.stop()
        observer.stop()
    others = bystanders.share([tool_s, *observer.costs.figures["cpu_seconds"].values()])
    try:
        figures = load.tool.parse(stdout, stderr).supported()
        served = access_log.lines(figures.requests_total)
    except LoadError as error:
        raise TrialError(str(error), directory / "load.err") from None
    finally:
        # It asks the site, too: not before the front server's count is read.
        observer.look_back()
    return Seen(
        figures=figures,
        stays_open=stays_open,
        checked=bodies.checked,
        wrong=bodies.wrong,
        served=served - bodies.checked if isinstance(served, int) else served,
        tool_cpu=round(tool_s / (figures.duration_s * load.tool_cores(job)), 4),
        others=others,
    )


def load_once(job: Job, load: Load, directory: Path) -> tuple[Figures, float]:
    """Load outside any trial: its figures, and the processor seconds of the load tool. Raises TrialError."""
    before = _children_s()
    stdout, stderr = _run(
        load.tool.command(load.program, job), job.connections, directory, "load", job.seconds + GRACE_S
    )
    seconds = _children_s() - before
    try:
        return load.tool.parse(stdout, stderr), seconds
    except LoadError as error:
        raise TrialError(str(error), directory / "load.err") from None


def _stays_open(running: Running, path: str) -> bool:
    try:
        return http.stays_open(running.url, path)
    except http.VisitError as error:
        raise TrialError(f"before the load: {error}", newest_log(running.logs)) from None


def _children_s() -> float:
    """Processor seconds of the processes that ended and were waited for: of the load tool, when nothing else does."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(
    command: Command,
    connections: int,
    directory: Path,
    name: str,
    limit_s: float,
    interrupt_after_s: float | None = None,
    live: Callable[[float, int], None] | None = None,
) -> tuple[str, str]:
    """Run a load tool in `directory` and give back what it printed, which is kept there too.

    Raises TrialError when it fails or is not done after `limit_s`, and GlobalFault when it cannot be started. With
    `interrupt_after_s` it is told to stop then, and what it makes of that does not matter. `live` hears how far it is.
    """
    for file, content in command.files.items():
        (directory / file).parent.mkdir(exist_ok=True)
        (directory / file).write_text(content, "utf-8")
    (directory / f"{name}.command").write_text(shlex.join(command.argv) + "\n", "utf-8")
    out, err = directory / f"{name}.out", directory / f"{name}.err"
    env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C", "HOME": str(directory), **command.env}
    process = drain = None
    # Killed by a signal that nobody can catch, the instrument takes its load with it.
    setpriv = shutil.which("setpriv")
    guard = (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()
    try:
        Path(command.argv[0]).stat()
        with out.open("wb") as stdout, _open_files(connections + SPARE_FILES), _signals_later():
            process = subprocess.Popen(
                (*guard, *command.argv),
                cwd=directory,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            told = (process.stderr, err, _Progress(live) if live else None)
            drain = threading.Thread(target=_keep_beginning, args=told, name="load tool's errors")
            drain.start()
        status = _wait(process, limit_s, interrupt_after_s)
    except OSError as error:
        raise GlobalFault(f"the load tool cannot be started: {command.argv[0]}: {error.strerror}") from None
    finally:
        if process:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            drain.join()
    texts = out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace")
    if interrupt_after_s is None and status is None:
        raise TrialError(f"{Path(command.argv[0]).name} was not done after {limit_s:g} s and was stopped", err)
    if interrupt_after_s is None and status != 0:
        said = (texts[1].strip() or texts[0].strip() or "nothing").splitlines()[-1].strip()
        raise TrialError(f"{Path(command.argv[0]).name} exited with status {status}; it said: {said[:200]}", err)
    return texts


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Let signals wait until the block is over, where one would be lost, or a program just started lost sight of."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def _wait(process: subprocess.Popen, limit_s: float, interrupt_after_s: float | None) -> int | None:
    """The exit status, or None when it is still running at the limit."""
    if interrupt_after_s is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(interrupt_after_s)
        process.send_signal(signal.SIGINT)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None


def _keep_beginning(stream: IO[bytes], path: Path, progress: _Progress | None) -> None:
    """Write what comes to the file as long as it is short, and read on, so that the writer is never held up.

    Lines that tell how far the load is are passed on and not kept.
    """
    room = LOG_LIMIT_BYTES
    with stream, path.open("wb") as file:
        while line := stream.readline(65536):
            if line.startswith(PROGRESS):
                if progress:
                    progress.told(line)
                continue
            file.write(line[:room])
            room = max(0, room - len(line))


class _Progress:
    """Adds up what the threads of a load tool tell and passes it on."""

    def __init__(self, live: Callable[[float, int], None]):
        self._live = live
        self._counts: dict[bytes, int] = {}

    def told(self, line: bytes) -> None:
        """`progress SECONDS REQUESTS [THREAD]`; anything else is not for us."""
        with contextlib.suppress(ValueError):
            _, seconds, requests, *thread = line.split()
            self._counts[b"".join(thread)] = int(requests)
            self._live(float(seconds), sum(self._counts.values()))


@contextlib.contextmanager
def _open_files(wanted: int) -> Iterator[None]:
    """Let programs started meanwhile open that many files; the servers keep the limit they have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

"""One trial: request every address once, warm up, make the load and sample its costs, request every address again.

Only trials measure times. A `TrialLoad` makes the load and samples costs, on this machine or on several hosts. A trial
with any error is failed, with the reason and without figures; a trial distrusted by a guard (bench.measure.run.guards)
is discarded, with the reason and its figures.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from bench.measure import load as load_tools
from bench.measure.load import LoadJob, Tool
from bench.measure.load.openloop.counts import VARYING_BYTES
from bench.measure.records import records
from bench.measure.records.folder import Folder
from bench.measure.records.trials import Condition, Costs, Errors, Evidence, Trial, TrialFigures, TrialIdentity
from bench.measure.run import guards
from bench.measure.run.guards import Observed
from bench.measure.run.load_process import TrialError
from bench.measure.run.plan import MAX_CONNECTIONS, Measurement
from bench.measure.run.replay import arrivals
from bench.measure.run.session import now
from bench.measure.run.workload import workload
from bench.serve.machine import http
from bench.serve.project.opened import UnderTest

# Pages of the workload that are fetched and compared in a trial, at most one a second.
PAGES_CHECKED = 10
# Connections that an open loop may open at least: as many as requests can be waiting.
MIN_CONNECTIONS = 100

Part = TypeVar("Part", TrialFigures, Errors, Evidence)


@dataclass(frozen=True)
class LoadSettings:
    """Settings of the load in every trial of a run.

    threads   processor cores for the load tool
    mode      closed: the level is connections; open: requests a second
    bounds    of the active guards (bench.measure.run.guards)
    replay    speed of a recording's requests, as a multiple of the original; 0: the level's rate
    at_rate   the tool and the program of trials at a rate after the rounds of a closed loop
    """

    tool: Tool
    program: str
    duration_s: int
    threads: int
    mode: str = "closed"
    replay: float = 0
    bounds: Mapping[str, float] = field(default_factory=dict)
    at_rate: tuple[Tool, str] | None = None

    @property
    def warmup_s(self) -> float:
        """Seconds of unmeasured load before a trial."""
        return records.warmup_s(self.duration_s)

    def of(self, item: Measurement) -> LoadSettings:
        """The settings for the load of this trial."""
        if item.rate is None or self.at_rate is None:
            return self
        tool, program = self.at_rate
        return replace(self, tool=tool, program=program, mode="open", duration_s=item.seconds or self.duration_s)

    def job(self, url: str, paths: tuple[str, ...], level: int, keep_alive: bool) -> LoadJob:
        """The job of a trial at a level."""
        reuse = self.tool.can_keep_alive and keep_alive
        job = LoadJob(url, paths, level, self.duration_s, self.threads, keep_alive=reuse)
        if self.mode == "closed":
            return job
        connections = min(MAX_CONNECTIONS, max(MIN_CONNECTIONS, level * job.timeout_s))
        return replace(job, rate=level, connections=connections)


class BodyChecker(threading.Thread):
    """Fetches pages of the workload at intervals and compares them with pages from before the load.

    get      fetches the page at a path; raises VisitError
    checked  pages fetched
    wrong    the first difference, or empty
    """

    def __init__(self, get: Callable[[str], bytes], expected: Mapping[str, bytes], interval_s: float):
        super().__init__(name="bodies", daemon=True)
        self._get = get
        self._expected = dict(expected)
        self._interval_s = interval_s
        self._end = threading.Event()
        self._order = random.Random(len(self._expected))
        self.checked = 0
        self.wrong = ""

    def run(self) -> None:
        """Check pages until `stop`."""
        while not self._end.wait(self._interval_s):
            path = self._order.choice(list(self._expected))
            try:
                body = self._get(path)
            except http.VisitError as error:
                self.wrong = self.wrong or str(error)
                continue
            self.checked += 1
            self.wrong = self.wrong or body_difference(path, self._expected[path], body)

    def stop(self) -> None:
        """Wait for the page under way and end."""
        self._end.set()
        if self.is_alive():
            self.join()


def body_difference(path: str, expected: bytes, body: bytes) -> str:
    """The difference between two bodies of a page, or empty.

    A page may show tokens, and one text of another length, such as a random banner.
    """
    if body == expected:
        return ""
    if len(body) != len(expected):
        is_cut_off = expected.startswith(body)
        # Most of the page stays the same.
        most = min(VARYING_BYTES, len(expected) // 2)
        if is_cut_off or _changed_bytes(expected, body) > most:
            return f"GET {path}: {len(body):,} bytes, not {len(expected):,}"
        return ""
    if sum(a != b for a, b in zip(body, expected, strict=True)) <= VARYING_BYTES:
        return ""
    return f"GET {path}: another page of the same size"


def _changed_bytes(one: bytes, two: bytes) -> int:
    """The length of the longer part between the common beginning and the common end of two texts."""
    begins = _in_common(one, two)
    one, two = one[begins:], two[begins:]
    return max(len(one), len(two)) - _in_common(one[::-1], two[::-1])


def _in_common(one: bytes, two: bytes) -> int:
    """The number of bytes with which both begin."""
    for number, (a, b) in enumerate(zip(one, two, strict=False)):
        if a != b:
            return number
    return min(len(one), len(two))


class TrialLoad(Protocol):
    """The load of one trial."""

    @property
    def load(self) -> LoadSettings:
        """Its settings."""

    @property
    def url(self) -> str:
        """Of the site, without a path."""

    @property
    def costs(self) -> Costs | None:
        """Costs of the servers during the load; None before."""

    @property
    def condition(self) -> Condition | None:
        """The state of the deployment, as far as observed."""

    def get(self, path: str) -> bytes:
        """The body of a page; raises VisitError."""

    def warm_up(self, job: LoadJob) -> None:
        """Make unmeasured load. Raises TrialError."""

    def timed(self, job: LoadJob, bodies: BodyChecker) -> Observed:
        """Make the load, sample its costs and check pages meanwhile. Raises TrialError."""

    def judge(self, observed: Observed, bounds: Mapping[str, float]) -> dict[str, str]:
        """The guards' findings."""

    def log(self) -> Path | None:
        """The most helpful log about a failure."""


def measure(
    item: Measurement,
    paths: tuple[str, ...],
    project: UnderTest,
    loading: TrialLoad,
    folder: Folder,
) -> Trial:
    """Make the trial and return its record, with status `failed` after any error."""
    load, wanted = loading.load, workload(project, item.case.workload)
    job = load.job(loading.url, paths, item.rate or item.level, wanted.keep_alive)
    if load.replay:
        job = replace(job, times=arrivals(wanted, load.replay, job.seconds))
    identity = identity_of(item, load, job.keep_alive)
    try:
        before = _visit("before the load", loading, paths)
        loading.warm_up(job)
        identity = replace(identity, started_at=now())
        bodies = BodyChecker(loading.get, before, max(1.0, job.seconds / PAGES_CHECKED))
        observed = loading.timed(job, bodies)
        if problem := observed.figures.failure():
            raise TrialError(f"{load.tool.name}: {problem}", loading.log(), observed.figures)
        after = _visit("after the load", loading, paths, observed.figures)
    except TrialError as error:
        return Trial(
            **vars(identity),
            status="failed",
            reason=str(error),
            errors=failed_errors(error.figures),
            condition=loading.condition or Condition(),
            evidence=Evidence(log=folder.relative(error.log)),
        )
    wrong = (body_difference(path, before[path], after[path]) for path in before)
    sizes = [len(before[path]) for path in job.paths]
    observed = replace(
        observed,
        rate=job.rate,
        body_bytes=round(sum(sizes) / len(sizes), 1),
        bodies_checked=bodies.checked,
        wrong_bodies=bodies.wrong or next(filter(None, wrong), ""),
    )
    if job.rate is None:
        observed = replace(observed, connections=job.connections)
    return _judged(identity, observed, loading, loading.judge(observed, load.bounds))


def _judged(identity: TrialIdentity, observed: Observed, loading: TrialLoad, results: dict[str, str]) -> Trial:
    """The trial of a successful load, discarded if a guard found something."""
    status: Literal["ok", "discarded"] = "ok"
    if reason := guards.discards(results):
        status = "discarded"
    return Trial(
        **vars(identity),
        status=status,
        reason=reason,
        figures=_part(TrialFigures, observed.figures),
        costs=loading.costs,
        errors=_part(Errors, observed.figures),
        condition=loading.condition or Condition(),
        evidence=replace(_part(Evidence, observed), guards=results),
    )


def _part(kind: type[Part], record: Part) -> Part:
    """The fields shared by a record and its subclass."""
    return kind(**{item.name: getattr(record, item.name) for item in fields(kind)})


def _visit(
    when: str, loading: TrialLoad, paths: tuple[str, ...], figures: load_tools.Figures | None = None
) -> dict[str, bytes]:
    """The bodies of these pages. Raises TrialError at the first status other than 200."""
    try:
        return {path: loading.get(path) for path in dict.fromkeys(paths)}
    except http.VisitError as error:
        raise TrialError(f"{when}: {error}", loading.log(), figures) from None


def identity_of(item: Measurement, load: LoadSettings, keep_alive: bool | None = None) -> TrialIdentity:
    """The identity of a trial with the settings `load`."""
    case = item.case
    connections = rate = None
    if load.mode == "closed":
        connections = item.level
    else:
        rate = float(item.rate or item.level)
    return TrialIdentity(
        trial_id=item.key,
        case_id=case.case_id,
        stack=case.stack,
        layer=case.layer,
        workload=case.workload,
        size=case.size,
        database=case.database,
        level_connections=connections,
        rate_requested=rate,
        round=item.round,
        started_at=now(),
        tool=load.tool.name,
        keep_alive=keep_alive,
    )


def failed_errors(figures: load_tools.Figures | None) -> Errors:
    """The errors of a failed load, and its progress; none without figures."""
    if not figures:
        return Errors()
    got = figures.requests_total - (figures.responses_not_2xx or 0)
    return replace(_part(Errors, figures), responses_before_failure=got)

"""One trial on several hosts: visit every address, warm up, make the load and sample the hosts, visit them again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.errors import BenchError
from bench.fleet import loaders, loaders_guards
from bench.fleet.front import Front
from bench.fleet.loaders import LoadShare
from bench.fleet.loaders_guards import Link
from bench.fleet.sampling import sampling
from bench.load import Figures, Job
from bench.load.engine import Engine
from bench.machine.http import VisitError
from bench.measure import guards
from bench.measure.guards import Observed
from bench.measure.interference import Bodies, unlike
from bench.measure.load_process import TrialError
from bench.measure.plan import Measurement
from bench.measure.replay import arrivals
from bench.measure.trial import PAGES_CHECKED, Load, errors_of, failed_errors, figures_of, identity_of, now, rush
from bench.production.inventory import LOAD, Inventory
from bench.project.under_test import UnderTest
from bench.project.workload import workload
from bench.results.folder import Folder, write_json
from bench.results.hosts import HostCosts
from bench.results.trials import Evidence, Trial

# For a trial's hosts to be greeted before its load and asked after it, in seconds.
BESIDE_S = 300


@dataclass(frozen=True)
class DeployedHosts:
    """The hosts, and where their front answers."""

    project: UnderTest
    inventory: Inventory
    front: Front


@dataclass(frozen=True)
class Loaded:
    """What was observed of a load.

    wrong    what was wrong with a page during the load, or empty
    checked  pages compared during it
    """

    shares: list[LoadShare]
    costs: dict[str, HostCosts]
    wrong: str
    checked: int


def measure(item: Measurement, paths: tuple[str, ...], site: DeployedHosts, load: Load, folder: Folder) -> Trial:
    """Make the trial and return its record; its status is `failed` when anything went wrong."""
    directory = folder.raw / item.trial_id
    directory.mkdir(parents=True, exist_ok=True)
    wanted = workload(site.project, item.case.workload)
    job = load.job(site.front.deployed.url, paths, item.level, wanted.keep_alive)
    if load.replay:
        job = replace(job, times=arrivals(wanted, load.replay, job.seconds))
    identity = replace(identity_of(item, load), keep_alive=job.keep_alive)
    costs = None
    try:
        before = _visit("before the load", site, paths)
        _made(site, load, replace(job, seconds=math.ceil(load.warmup_s), times=()))
        identity = replace(identity, started_at=now())
        loaded = _timed(job, load, site, before, directory)
        costs = loaded.costs
        figures = _figures(load, loaded.shares)
        after = _visit("after the load", site, paths)
    except TrialError as error:
        errors = [failed_errors(error.figures)] if error.figures else []
        return replace(Trial.of(identity, *errors, status="failed", reason=str(error)), hosts=costs)
    wrong = next(filter(None, (unlike(path, before[path], after[path]) for path in before)), "")
    evidence = _judged(replace(loaded, wrong=loaded.wrong or wrong), job, load, figures, before)
    reason = guards.voids(evidence.guards or {})
    made = Trial.of(
        identity,
        figures_of(figures, job.seconds),
        errors_of(figures),
        evidence,
        status="voided" if reason else "ok",
        reason=reason,
    )
    return replace(made, hosts=costs)


def _visit(when: str, site: DeployedHosts, paths: Iterable[str]) -> dict[str, bytes]:
    try:
        return site.front.all_of(paths)
    except VisitError as error:
        raise TrialError(f"{when}: {error}") from None


def _made(site: DeployedHosts, load: Load, job: Job, ready: Callable[[], None] = lambda: None) -> list[LoadShare]:
    try:
        return loaders.make(site.inventory.of(LOAD), engine(load), job, site.front.target, load.live, ready)
    except TrialError:
        raise
    except BenchError as error:
        raise TrialError(str(error)) from None


def _timed(job: Job, load: Load, site: DeployedHosts, expected: Mapping[str, bytes], directory: Path) -> Loaded:
    """Make the load, sample the hosts and compare pages meanwhile; what each load host counted is stored."""
    bodies = Bodies(site.front.get, expected, max(1.0, job.seconds / PAGES_CHECKED))
    limit_s = job.seconds + job.timeout_s + BESIDE_S
    with sampling(site.inventory, site.front.deployed.access_log, limit_s) as sampler:

        def ready() -> None:
            sampler.start()
            bodies.start()

        try:
            shares = _made(site, load, job, ready)
        finally:
            bodies.stop()
        costs = sampler.stop()
    for share in shares:
        clock = {"ahead_ms": share.clock.ahead_ms, "error_ms": share.clock.error_ms}
        write_json(directory / f"{share.host.name}.json", {"clock": clock, "cpu_s": share.cpu_s, **share.counts})
    return Loaded(shares, costs, bodies.wrong, bodies.checked)


def _figures(load: Load, shares: Sequence[LoadShare]) -> Figures:
    """The figures of all; raises TrialError when one host alone had errors or no answer."""
    tool = engine(load)
    figures = loaders.figures(tool, shares).supported()
    for share in shares:
        if problem := share.figures(tool).failure():
            raise TrialError(f"{share.host.name}: {problem}", figures=figures)
    return figures


def _judged(loaded: Loaded, job: Job, load: Load, figures: Figures, before: Mapping[str, bytes]) -> Evidence:
    """The verdicts of the guards, with their evidence."""
    tool = engine(load)
    seen = Observed(
        figures=figures,
        connections=job.connections if job.rate is None else None,
        rush=rush(job.paths),
        rate=job.rate,
        body_bytes=round(sum(len(before[path]) for path in job.paths) / len(job.paths), 1),
        wrong_bodies=loaded.wrong,
        unsteadiness=load.unsteadiness,
    )
    each = [loaders_guards.observed(tool, share, seen) for share in loaded.shares]
    return Evidence(
        guards=loaders_guards.look(tool, seen, loaded.shares, links(loaded.costs, job.seconds), load.bounds),
        body_bytes=seen.body_bytes,
        bodies_checked=loaded.checked,
        tool_cpu_share=max(item.tool_cpu or 0.0 for item in each),
    )


def links(costs: Mapping[str, HostCosts], seconds: float) -> list[Link]:
    """How full the links of all hosts were in a load of so many seconds."""
    found = []
    for host, used in costs.items():
        is_known = used.received_bytes is not None and used.sent_bytes is not None
        bits = 8 * max(used.received_bytes or 0, used.sent_bytes or 0) / seconds if is_known else None
        found.append(Link(host, bits, used.link_bits_per_second, used.link_peak_share))
    return found


def engine(load: Load) -> Engine:
    """The load tool of a run on several hosts."""
    assert isinstance(load.tool, Engine)
    return load.tool

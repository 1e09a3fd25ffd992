"""What runs on different numbers of web hosts measured, as the points and tiers of a projection. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.figures.capacity import parse_limit
from bench.figures.projection import Point, Tier
from bench.results.capacity import climbs
from bench.results.folder import Run
from bench.results.hosts import HostCosts
from bench.results.records import Case, ResultsError
from bench.results.trials import Trial

# Groups of an inventory, as the environment of a run names them.
WEB, LOAD = "web", "load"


@dataclass(frozen=True)
class Scaling:
    """A case over numbers of web hosts.

    load      the level of each number, in words
    scheduled the requests/s are those that were asked for, so that they say nothing of the hosts
    """

    case: Case
    points: tuple[Point, ...]
    tiers: tuple[Tier, ...]
    load: dict[int, str]
    scheduled: bool = False


def scalings(runs: Sequence[Run]) -> list[Scaling]:
    """Every case of the runs, in their order; raises ResultsError for a run of one host, or given twice."""
    places = [run.directory.resolve() for run in runs]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise ResultsError(f"{runs[number].directory}: given twice; its trials would count twice")
    cases = dict.fromkeys(case for run in runs for case in run.info.cases)
    # Notes may differ: one case all the same.
    named = {case.case_id: case for case in reversed(cases)}
    return [_scaling(case, runs) for case in reversed(named.values())]


def web_hosts(run: Run) -> int:
    """How many web hosts served the run; raises ResultsError when it was none of an inventory."""
    if not run.environment.hosts:
        raise ResultsError(
            f"{run.directory}: not a run on several hosts; make it with `python -m bench run --inventory`"
        )
    return sum(WEB in groups for groups in run.environment.hosts.values())


def _scaling(case: Case, runs: Sequence[Run]) -> Scaling:
    chosen = [(run, web_hosts(run), _best(run, case)) for run in runs]
    points = [Point(number, rate) for _, number, (_, trials) in chosen for rate in map(_rate, trials) if rate]
    load = {number: words for _, number, (words, trials) in chosen if trials}
    of_tiers: dict[str, list[tuple[float, float, bool]]] = {}
    for run, _, (_, trials) in chosen:
        for trial in trials:
            for name, spent in _spent(run, trial).items():
                of_tiers.setdefault(name, []).append(spent)
    tiers = [
        Tier(name, median(processors for processors, _, _ in spent), tuple(s for _, s, _ in spent), spent[0][2])
        for name, spent in of_tiers.items()
    ]
    scheduled = any(run.info.plan.mode == "open" and not run.info.plan.capacity for run in runs)
    return Scaling(case, tuple(points), tuple(tiers), load, scheduled)


def _rate(trial: Trial) -> float | None:
    return trial.requests_per_second


def _best(run: Run, case: Case) -> tuple[str, list[Trial]]:
    """The level with the most requests/s, in words, and its trials; with a limit of latency what held it at last."""
    plan = run.info.plan
    ok = [trial for trial in run.latest.values() if trial.case_id == case.case_id and trial.status == "ok"]
    if plan.capacity:
        limit = parse_limit(plan.capacity, "plan.capacity")
        ends = climbs(ok, limit).get(case.case_id, {}).values()
        return limit.words, [climb.held for climb in ends if climb.held]
    levels: dict[int, list[Trial]] = {}
    for trial in ok:
        levels.setdefault(trial.level, []).append(trial)
    if not levels:
        return "", []
    level = max(levels, key=lambda level: median(trial.requests_per_second or 0 for trial in levels[level]))
    return f"{level:,} requests a second" if plan.mode == "open" else f"{level:,} connections", levels[level]


def _spent(run: Run, trial: Trial) -> dict[str, tuple[float, float, bool]]:
    """Tier -> its processors (those of one host where it grows), its seconds per request, and whether it grows.

    A tier is all hosts in the same groups. One of web hosts that also do something else is left out: with another web
    host, only a part of it would grow.
    """
    tiers: dict[tuple[str, ...], list[HostCosts]] = {}
    for name, groups in (run.environment.hosts or {}).items():
        serves = tuple(group for group in groups if group != LOAD)
        costs = (trial.hosts or {}).get(name)
        # A load host's own seconds are not those of a request.
        if costs and serves and serves == groups and (WEB not in serves or serves == (WEB,)):
            tiers.setdefault(serves, []).append(costs)
    found = {}
    for serves, hosts in tiers.items():
        seconds, cores = _sum(host.cpu_seconds for host in hosts), _sum(host.cores for host in hosts)
        if seconds and cores and trial.requests_total:
            grows = serves == (WEB,)
            found[" and ".join(serves)] = (cores / (len(hosts) if grows else 1), seconds / trial.requests_total, grows)
    return found


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum; None when one is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)

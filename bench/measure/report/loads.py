"""A case under one load, from its trials: rates by round, costs, and latency from the open loop only. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import median

from bench.measure.records.capacity import Staircase, Visits, capacity, latency_ms
from bench.measure.records.records import Dropped
from bench.measure.records.trials import Trial, largest, total
from bench.measure.report.document import NO_TRIAL, CaseLoad, Latency, Point
from bench.measure.stats import histogram
from bench.measure.stats.rate_search import Limit
from bench.words import plural


@dataclass(frozen=True)
class Measured:
    """Results of a run for a case under a workload.

    climbs   round -> its staircase, in a capacity run
    dropped  level -> whether a race dropped the case
    wrong    names of the checks with a wrong response
    """

    trials: Sequence[Trial]
    climbs: Mapping[int, Staircase]
    dropped: Mapping[int, Dropped]
    wrong: Sequence[str]

    def levels(self, mode: str) -> dict[int, list[Trial]]:
        """Level of a closed or an open loop -> its trials."""
        found: dict[int, list[Trial]] = {}
        for trial in self.trials:
            if trial.mode == mode:
                found.setdefault(trial.level, []).append(trial)
        return found


def usable(trials: Iterable[Trial]) -> dict[int, Trial]:
    """Round -> its trusted trial, the last one."""
    return {trial.round: trial for trial in trials if trial.status == "ok"}


def reason(measured: Measured, trials: Sequence[Trial]) -> str | None:
    """The reason why a case has no trusted figure, or None."""
    if measured.wrong:
        return f"wrong responses: {', '.join(measured.wrong)}"
    if usable(trials):
        return None
    failed = [trial for trial in trials if trial.status == "failed"]
    if trials:
        last = (failed or list(trials))[-1]
        return f"{last.status}: {last.reason}"
    return NO_TRIAL


def at_level(measured: Measured, level: int, mode: str, rate: int | None) -> CaseLoad:
    """The case at a level of a closed or an open loop; its latency is at the `rate`."""
    levels = measured.levels(mode)
    trials = levels.get(level, ())
    points = []
    # One level is no curve.
    if len(levels) > 1:
        for each, trials_there in sorted(levels.items()):
            points.append(Point(each, median_or_none(trial.throughput for trial in usable(trials_there).values())))
    dropped = measured.dropped.get(level)
    response_times = None
    if not measured.wrong:
        response_times = latency(measured, rate)
    return _load(measured, usable(trials), reason(measured, trials), dropped, points, response_times)


def at_capacity(measured: Measured, limit: Limit, visit: Visits | None) -> CaseLoad:
    """The case at the highest rate that held within the limit in each round."""
    climbs = list(measured.climbs.values())
    held = {number: climb.highest for number, climb in measured.climbs.items() if climb.highest}
    why = None
    if measured.wrong:
        why = reason(measured, ())
    elif not held:
        failed = list(chain.from_iterable(climb.in_doubt for climb in climbs))
        why = reason(measured, failed)
        if climbs and not failed:
            why = f"no rate holds {limit.words}"
    points = []
    for rate in sorted(set().union(*(climb.trials for climb in climbs))):
        trials = [climb.trials[rate] for climb in climbs if rate in climb.trials]
        points.append(Point(rate, median_or_none(latency_ms(trial, limit) for trial in trials if trial.status == "ok")))
    load = _load(measured, held, why, None, points, None)
    reached = capacity(climbs)
    if reached is None:
        return load
    visitors = None
    if visit and load.requests_per_second:
        visitors = visit.an_hour(load.requests_per_second)
    return replace(load, capacity_low=reached.low, capacity_high=reached.high, visitors_per_hour=visitors)


def step(measured: Measured) -> float:
    """Upper bound of a case's rates as a multiple: the next rate of a staircase was too much, or was not tried."""
    steps = [1.0]
    for climb in measured.climbs.values():
        if climb.highest and climb.highest.throughput:
            steps.append(climb.high / climb.highest.throughput if climb.high else math.inf)
    return max(steps)


def _load(
    measured: Measured,
    trials: Mapping[int, Trial],
    why: str | None,
    dropped: Dropped | None,
    points: Sequence[Point],
    response_times: Latency | None,
) -> CaseLoad:
    # Wrong responses have no figures.
    trials, points = ({}, ()) if measured.wrong else (trials, points)
    every = list(trials.values())
    rates = {number: trial.throughput for number, trial in sorted(trials.items())}
    known = {number: rate for number, rate in rates.items() if rate is not None}
    reason = why
    if dropped and not why:
        reason = f"dropped after {plural(dropped.round, 'round')}: {dropped.reason}"
    return CaseLoad(
        verdict="not measured" if why else "",
        reason=reason,
        rates=known,
        requests_per_second=median_or_none(known.values()),
        ratio=None,
        capacity_low=None,
        capacity_high=None,
        visitors_per_hour=None,
        latency=response_times,
        points=tuple(points),
        memory_peak_bytes=median_or_none(total(trial.memory_peak_bytes) for trial in every),
        cpu_seconds_per_1000_requests=median_or_none(map(cpu_per_1000, every)),
        database_connections_peak=largest(trial.condition.database_connections_peak for trial in every),
        queries_per_request=median_or_none(trial.condition.queries_per_request for trial in every),
        imbalance=median_or_none(trial.imbalance for trial in every),
        errors=sum(trial.errors.total for trial in every),
        requests=sum(trial.requests for trial in every),
        log=_log(measured.trials) if why else None,
        trials=tuple(trial.trial_id for trial in every),
    )


def _log(trials: Iterable[Trial]) -> str | None:
    """The log of the first failure with a log."""
    logs = [trial.evidence.log for trial in trials if trial.status == "failed"]
    return next(filter(None, logs), None)


def latency(measured: Measured, rate: int | None) -> Latency | None:
    """Response times in the open-loop trials at this rate; None without a trusted trial."""
    trials = list(usable(measured.levels("open").get(rate or 0, ())).values())
    merged = histogram.merged(trial.histogram for trial in trials)
    if rate is None or merged is None or not merged.total_count:
        return None
    p50 = float(merged.get_value_at_percentile(50) / 1000)
    p99 = None
    if histogram.enough(merged.total_count, 99):
        p99 = float(merged.get_value_at_percentile(99) / 1000)
    return Latency(float(rate), p50, p99, merged.total_count)


def common_rate(every: Iterable[Measured]) -> int | None:
    """The rate at which most cases have a trusted open-loop trial, the highest of several; None without any."""
    counts: dict[int, int] = {}
    for found in every:
        for rate, trials in found.levels("open").items():
            counts[rate] = counts.get(rate, 0) + bool(usable(trials))
    if not any(counts.values()):
        return None
    return max(counts, key=lambda rate: (counts[rate], rate))


def median_or_none(values: Iterable[float | None]) -> float | None:
    """The median of the measured values; None without any."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return float(median(known))


def cpu_per_1000(trial: Trial) -> float | None:
    """CPU seconds of a trial per 1,000 of its requests."""
    seconds = total(trial.costs.cpu_seconds if trial.costs else None)
    if seconds is None or not trial.requests:
        return None
    return seconds / trial.requests * 1000

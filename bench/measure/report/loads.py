"""A case under one load, from its trials: rates by round, costs, and latency from the open loop only. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from statistics import median

from bench.measure.records.capacity import Staircase, Visits, capacity, latency_ms
from bench.measure.records.records import Dropped
from bench.measure.records.trials import Trial, known, largest, total
from bench.measure.report.document import NO_TRIAL, CaseLoad, Latency, Point
from bench.measure.stats import histogram
from bench.measure.stats.rate_search import Limit
from bench.words import NOT_MEASURED, plural


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
        by_level: dict[int, list[Trial]] = {}
        for trial in self.trials:
            if trial.mode == mode:
                by_level.setdefault(trial.level, []).append(trial)
        return by_level


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
    latencies: dict[int, list[float | None]] = {}
    for climb in climbs:
        for rate, trial in climb.trials.items():
            at_rate = latencies.setdefault(rate, [])
            if trial.status == "ok":
                at_rate.append(latency_ms(trial, limit))
    points = [Point(rate, median_or_none(at_rate)) for rate, at_rate in sorted(latencies.items())]
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
    return max((climb.step for climb in measured.climbs.values()), default=1.0)


def _load(
    measured: Measured,
    trials: Mapping[int, Trial],
    why: str | None,
    dropped: Dropped | None,
    points: Sequence[Point],
    response_times: Latency | None,
) -> CaseLoad:
    if measured.wrong:
        # Wrong responses have no figures.
        trials, points = {}, ()
    every = list(trials.values())
    rates = {number: trial.throughput for number, trial in sorted(trials.items())}
    figures = {number: rate for number, rate in rates.items() if rate is not None}
    reason, verdict, log = why, "", None
    if why:
        logs = [trial.evidence.log for trial in measured.trials if trial.status == "failed"]
        verdict, log = NOT_MEASURED, next(filter(None, logs), None)
    elif dropped:
        reason = f"dropped after {plural(dropped.round, 'round')}: {dropped.reason}"
    return CaseLoad(
        verdict=verdict,
        reason=reason,
        rates=figures,
        requests_per_second=median_or_none(figures.values()),
        ratio=None,
        capacity_low=None,
        capacity_high=None,
        visitors_per_hour=None,
        latency=response_times,
        points=tuple(points),
        memory_peak_bytes=median_or_none(total(trial.memory_peak_bytes) for trial in every),
        cpu_seconds_per_1000_requests=median_or_none(map(cpu_per_1000, every)),
        database_connections_peak=largest(trial.condition.database_connections_peak for trial in every),
        queries_per_request=median_of(every, "condition.queries_per_request"),
        imbalance=median_of(every, "imbalance"),
        errors=sum(trial.errors.total for trial in every),
        requests=sum(trial.requests for trial in every),
        log=log,
        trials=tuple(trial.trial_id for trial in every),
    )


def latency(measured: Measured, rate: int | None) -> Latency | None:
    """Response times in the open-loop trials at this rate; None without a trusted trial."""
    trials = list(usable(measured.levels("open").get(rate or 0, ())).values())
    merged = histogram.merged(trial.histogram for trial in trials)
    if rate is None or merged is None or not merged.total_count:
        return None
    p99 = None
    if histogram.enough(merged.total_count, 99):
        p99 = histogram.percentile_ms(merged, 99)
    return Latency(float(rate), histogram.percentile_ms(merged, 50), p99, merged.total_count)


def common_rate(every: Iterable[Measured]) -> int | None:
    """The rate at which most cases have a trusted open-loop trial, the highest of several; None without any."""
    counts: dict[int, int] = {}
    for measured in every:
        for rate, trials in measured.levels("open").items():
            counts[rate] = counts.get(rate, 0) + bool(usable(trials))
    if not any(counts.values()):
        return None
    return max(counts, key=lambda rate: (counts[rate], rate))


def median_or_none(values: Iterable[float | None]) -> float | None:
    """The median of the measured values; None without any."""
    measured = known(values)
    if not measured:
        return None
    return float(median(measured))


def median_of(records: Iterable[object], name: str) -> float | None:
    """The median of a field of these records, or of a field in a field; None without a measured value."""
    return median_or_none(map(attrgetter(name), records))


def cpu_per_1000(trial: Trial) -> float | None:
    """CPU seconds of a trial per 1,000 of its requests."""
    if not trial.costs or not trial.requests:
        return None
    seconds = total(trial.costs.cpu_seconds)
    if seconds is None:
        return None
    return seconds / trial.requests * 1000

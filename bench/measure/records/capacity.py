"""The capacity of each case of a run, from its trials: rates within the limit, and their meaning in visitors. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bench.measure.records.trials import Trial, discarded_by
from bench.measure.stats import histogram
from bench.measure.stats.rate_search import RATES, TRIES, Limit, Step, bracket, next_rate

# Guards triggered by an overloaded site itself: such trials show that the site does not hold the rate.
OVERLOAD = {"drift", "lost"}
# Number of repetitions of a disturbed trial. A staircase repeats every inconclusive trial as often; afterwards it
# counts as half a try.
MAX_REPEATS = 2
HOUR_S = 3600


def latency_ms(trial: Trial, limit: Limit) -> float | None:
    """The limit's percentile of a trial in milliseconds, however few requests lie beyond; None without responses."""
    merged = histogram.merged([trial.histogram])
    if merged and merged.total_count:
        return histogram.percentile_ms(merged, limit.percent)
    return None


def has_load(trial: Trial) -> bool:
    """True if the load tool reported figures: a trial may fail before its load, or because of the tool."""
    return trial.status != "failed" or trial.errors.responses_before_failure is not None


def overloaded(trial: Trial) -> bool:
    """True if a failed or discarded trial shows only that the site does not hold the rate."""
    if trial.status == "failed":
        return has_load(trial)
    return trial.status == "discarded" and {name for name, _ in discarded_by(trial)} <= OVERLOAD


def _is_inconclusive(trial: Trial) -> bool:
    """True if a trial has no trusted figures, for another reason than the site."""
    return trial.status != "ok" and not overloaded(trial)


class Staircase:
    """The staircase of a case in a round, from its trials in order.

    trials  rate -> its last conclusive trial, else its last one
    steps   rate -> the result so far
    """

    def __init__(self, limit: Limit, trials: Iterable[Trial] = ()):
        self._limit = limit
        self._halves: dict[int, int] = {}
        self._again: int | None = None
        self.trials: dict[int, Trial] = {}
        self.steps: dict[int, Step] = {}
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """Add the next trial. An inconclusive trial does not replace a conclusive one at the same rate."""
        rate, is_inconclusive = trial.level, _is_inconclusive(trial)
        counts_for = TRIES
        if is_inconclusive:
            counts_for = 1
        self._halves[rate] = self._halves.get(rate, 0) + counts_for
        self._again = None
        if is_inconclusive and self._halves[rate] <= MAX_REPEATS:
            self._again = rate
        if not is_inconclusive or rate not in self.trials or _is_inconclusive(self.trials[rate]):
            self.trials[rate] = trial
        counted = self.trials[rate]
        latency = None
        if counted.status == "ok":
            latency = latency_ms(counted, self._limit)
        held = latency is not None and latency <= self._limit.milliseconds
        self.steps[rate] = Step(held, max(1, self._halves[rate] // TRIES))

    def next_rate(self, first: int, *, near: bool) -> int | None:
        """The next rate; None at the end, or after a trial failed before its load."""
        if not all(map(has_load, self.trials.values())):
            return None
        return self._again or next_rate(self.steps, first, near=near)

    @property
    def in_doubt(self) -> list[Trial]:
        """The failed and discarded trials, the last one of each rate, that are inconclusive about the site."""
        return [trial for trial in self.trials.values() if _is_inconclusive(trial)]

    @property
    def low(self) -> int | None:
        """The highest rate that held, or None."""
        return bracket(self.steps)[0]

    @property
    def high(self) -> int | None:
        """The lowest rate that failed because of the site; None if something else ended the staircase."""
        high = bracket(self.steps)[1]
        if high is None or self.ended_by:
            return None
        return high

    @property
    def ended_by(self) -> str | None:
        """The reason to distrust the trial above the highest rate, in which case the capacity may be higher."""
        trial = self.trials.get(bracket(self.steps)[1] or 0)
        if trial and _is_inconclusive(trial):
            return trial.reason
        return None

    @property
    def highest(self) -> Trial | None:
        """The trial at the highest rate that held."""
        return self.trials.get(self.low or 0)

    @property
    def achieved(self) -> float:
        """Requests/s of the highest trial, which ends with its last response; 0 if no rate held."""
        if not self.highest:
            return 0.0
        return self.highest.throughput or 0.0

    @property
    def step(self) -> float:
        """Upper bound of the highest trial's requests/s as a multiple; infinity if no rate failed, 1 if none held."""
        if not self.achieved:
            return 1.0
        if self.high is None:
            return math.inf
        return self.high / self.achieved


def climbs(trials: Iterable[Trial], limit: Limit) -> dict[str, dict[int, Staircase]]:
    """Case -> round -> staircase."""
    staircases: dict[str, dict[int, Staircase]] = {}
    for trial in trials:
        staircases.setdefault(trial.case_id, {}).setdefault(trial.round, Staircase(limit)).add(trial)
    return staircases


@dataclass(frozen=True)
class Capacity:
    """The highest rate held by a case, over its rounds, as achieved.

    rate   median of the rounds, in requests a second
    low    lower bound: the capacity in the lowest round
    high   upper bound: the lowest failed rate in the highest round; None if not found
    """

    rate: float
    low: float
    high: float | None
    rounds: int


def capacity(rounds: Sequence[Staircase]) -> Capacity | None:
    """The capacity over the rounds; None if no rate held in any. A round without any held rate counts as 0."""
    ended = [climb for climb in rounds if climb.low is not None or climb.high == RATES[0]]
    if not any(climb.low for climb in ended):
        return None
    lows, highs = [climb.achieved for climb in ended], [climb.high for climb in ended if climb.high is not None]
    high = None
    if len(highs) == len(ended):
        high = max(highs)
    return Capacity(statistics.median(lows), min(lows), high, len(ended))


@dataclass(frozen=True)
class Visits:
    """A visit: one pass through a workload.

    requests  addresses of a visit
    pages     addresses of pages: a file has an ending, such as .css
    """

    requests: int
    pages: int

    def an_hour(self, rate: float) -> float:
        """Visitors an hour at a rate in requests a second."""
        return rate * HOUR_S / self.requests


def visits(addresses: Mapping[str, Sequence[str]]) -> dict[str, Visits]:
    """Workload -> its visit, for workloads with pages."""
    by_workload = {}
    for name, paths in addresses.items():
        if pages := sum(not PurePosixPath(path.partition("?")[0]).suffix for path in paths):
            by_workload[name] = Visits(len(paths), pages)
    return by_workload

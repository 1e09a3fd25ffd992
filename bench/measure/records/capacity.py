"""The capacity of each case of a run, from its trials: which rates held its limit, what that is in visitors. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bench.measure.records.trials import Trial, discarded_by
from bench.measure.stats import histogram
from bench.measure.stats.capacity import RATES, TRIES, Limit, Step, bracket, next_rate

# Guards that an overloaded site itself sets off: their trials show that it does not hold the rate.
OVERLOAD = {"drift", "lost"}
# How often a trial that other processes disturbed is repeated. A staircase repeats every trial that says nothing about
# the site as often; then it counts as half a try.
MAX_REPEATS = 2
HOUR_S = 3600


def latency_ms(trial: Trial, limit: Limit) -> float | None:
    """The limit's percentile of a trial in milliseconds, however few requests lie beyond it; None without responses."""
    merged = histogram.merged([trial.histogram])
    return float(merged.get_value_at_percentile(limit.percent) / 1000) if merged and merged.total_count else None


def made_load(trial: Trial) -> bool:
    """True if the load tool said what it measured: a trial may fail before its load, or because the tool does."""
    return trial.status != "failed" or trial.errors.responses_before_failure is not None


def overloaded(trial: Trial) -> bool:
    """True if a failed or discarded trial shows that the site does not hold the rate, and nothing else went wrong."""
    if trial.status == "failed":
        return made_load(trial)
    return trial.status == "discarded" and {name for name, _ in discarded_by(trial)} <= OVERLOAD


def _says_nothing(trial: Trial) -> bool:
    """True if a trial has no figures to trust for a reason that is not the site's."""
    return trial.status != "ok" and not overloaded(trial)


class Staircase:
    """The staircase of a case in a round, from its trials in their order.

    trials  rate -> its last trial that says something about the site, else its last one
    steps   rate -> what the staircase knows of it
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
        """The next trial. One that says nothing does not replace one at the same rate that did."""
        rate, says_nothing = trial.level, _says_nothing(trial)
        self._halves[rate] = self._halves.get(rate, 0) + (1 if says_nothing else TRIES)
        self._again = rate if says_nothing and self._halves[rate] <= MAX_REPEATS else None
        if not says_nothing or rate not in self.trials or _says_nothing(self.trials[rate]):
            self.trials[rate] = trial
        counted = self.trials[rate]
        latency = latency_ms(counted, self._limit) if counted.status == "ok" else None
        held = latency is not None and latency <= self._limit.milliseconds
        self.steps[rate] = Step(held, max(1, self._halves[rate] // TRIES))

    def next_rate(self, first: int, *, near: bool) -> int | None:
        """The rate to try next; None at the end, and when a trial failed before its load."""
        if not all(map(made_load, self.trials.values())):
            return None
        return self._again or next_rate(self.steps, first, near=near)

    @property
    def in_doubt(self) -> list[Trial]:
        """The failed and discarded trials, the last one of each rate, that say nothing about the site."""
        return [trial for trial in self.trials.values() if _says_nothing(trial)]

    @property
    def low(self) -> int | None:
        """The highest rate that held; None if none did."""
        return bracket(self.steps)[0]

    @property
    def high(self) -> int | None:
        """The lowest rate that the site was seen not to hold; None if something else ended the staircase."""
        high = bracket(self.steps)[1]
        return None if high is None or self.ended_by else high

    @property
    def ended_by(self) -> str | None:
        """Why the trial above the highest rate is not to be trusted, so that the capacity may be higher."""
        trial = self.trials.get(bracket(self.steps)[1] or 0)
        return trial.reason if trial and _says_nothing(trial) else None

    @property
    def held(self) -> Trial | None:
        """The trial at the highest rate that held."""
        return self.trials.get(self.low or 0)

    @property
    def achieved(self) -> float:
        """Requests/s in that trial, which ends with its last response; 0 when no rate held."""
        return (self.held.throughput or 0.0) if self.held else 0.0


def climbs(trials: Iterable[Trial], limit: Limit) -> dict[str, dict[int, Staircase]]:
    """Case -> round -> its staircase."""
    found: dict[str, dict[int, Staircase]] = {}
    for trial in trials:
        found.setdefault(trial.case_id, {}).setdefault(trial.round, Staircase(limit)).add(trial)
    return found


@dataclass(frozen=True)
class Capacity:
    """The highest rate that a case held, over its rounds, as achieved.

    rate   median of the rounds, in requests a second
    low    the capacity is at least this, that of the lowest round
    high   and at most this: the lowest rate that did not hold, of the highest round; None if that was not found
    """

    rate: float
    low: float
    high: float | None
    rounds: int


def capacity(rounds: Sequence[Staircase]) -> Capacity | None:
    """The capacity over the rounds; None if no rate held in any. One in which even the lowest did not counts as 0."""
    ended = [climb for climb in rounds if climb.low is not None or climb.high == RATES[0]]
    if not any(climb.low for climb in ended):
        return None
    lows, highs = [climb.achieved for climb in ended], [climb.high for climb in ended if climb.high is not None]
    return Capacity(statistics.median(lows), min(lows), max(highs) if len(highs) == len(ended) else None, len(ended))


@dataclass(frozen=True)
class Visits:
    """What a visitor does: goes through a workload once.

    requests  addresses of a visit
    pages     those of them that are pages: a file has an ending, such as .css
    """

    requests: int
    pages: int

    def an_hour(self, rate: float) -> float:
        """Visitors an hour at a rate in requests a second."""
        return rate * HOUR_S / self.requests


def visits(addresses: Mapping[str, Sequence[str]]) -> dict[str, Visits]:
    """Workload -> its visit, of those with pages."""
    found = {}
    for name, paths in addresses.items():
        if pages := sum(not PurePosixPath(path.partition("?")[0]).suffix for path in paths):
            found[name] = Visits(len(paths), pages)
    return found

"""Rate how stable a case was: HIGH, MEDIUM or LOW, by the criteria in docs/stability.md. Pure, over trials alone.

Each criterion gets its own rating. The worst one is the rating of the case. A criterion without a measurement does
not count; the report lists it as not measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.results.trials import Trial

HIGH, MEDIUM, LOW = "HIGH", "MEDIUM", "LOW"
ORDER = (HIGH, MEDIUM, LOW)

# Criterion -> the largest value that still rates HIGH, and the largest that still rates MEDIUM.
BOUNDS: dict[str, tuple[float, float]] = {
    "errors": (0.0, 0.01),  # share of failed requests, in the worst trial
    "spread": (0.25, 0.5),  # (highest - lowest) / median of requests/s over the rounds, at the worst level
    "growth": (0.1, 0.5),  # memory gained in a trial as a share of the start, median of rounds, at the worst level
    "kills": (0.0, 0.0),  # processes killed for lack of memory, all trials together
    "restarts": (0.0, 3.0),  # worker processes that ended and were replaced, in the worst trial
    "absence": (0.0, 0.0),  # trials after which the site did not recover by itself
}


@dataclass(frozen=True)
class Criterion:
    """One criterion of a case: its value and rating; both None when it was not measured."""

    name: str
    value: float | None
    rating: str | None

    @property
    def text(self) -> str:
        """The value in words, such as `2 processes killed for lack of memory`."""
        return TEXTS[self.name](self.value) if self.value is not None else f"{self.name} not measured"


@dataclass(frozen=True)
class Rating:
    """The rating of a case, None without a trial to judge by, and the criteria behind it."""

    rating: str | None
    criteria: tuple[Criterion, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the rating is below HIGH, worst reason first."""
        below_high = [item for item in self.criteria if item.rating in (MEDIUM, LOW)]
        return tuple(item.text for item in sorted(below_high, key=lambda item: item.rating != LOW))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Criteria that were not measured."""
        return tuple(item.name for item in self.criteria if item.rating is None)


def rate(trials: Iterable[Trial]) -> Rating:
    """Rate the trials of one case, all rounds and levels together. One without a valid trial can only be LOW."""
    trials = tuple(trials)
    if not any(trial.status == "ok" for trial in trials):
        trials = tuple(trial for trial in trials if trial.status == "failed")
    criteria = tuple(_criterion(name, MEASURES[name](trials)) for name in BOUNDS)
    known = [item.rating for item in criteria if item.rating is not None]
    return Rating(max(known, key=ORDER.index, default=None), criteria)


def _criterion(name: str, value: float | None) -> Criterion:
    high, medium = BOUNDS[name]
    if value is None:
        return Criterion(name, None, None)
    return Criterion(name, value, HIGH if value <= high else MEDIUM if value <= medium else LOW)


def errors(trials: Sequence[Trial]) -> float | None:
    """Largest share of failed requests in any trial; 1 for a trial whose load ended without any answer."""
    return _highest(_error_share(trial) for trial in trials)


def _error_share(trial: Trial) -> float | None:
    if trial.status == "failed" and trial.came_back is None:
        # The trial failed before its load, from wrong answers or a failed start: that is no evidence about stability.
        return None
    broken = [trial.errors_connect, trial.errors_read, trial.errors_timeout]
    answers = trial.requests_total or sum((trial.statuses or {}).values())
    failed = sum(count or 0 for count in (*broken, trial.responses_not_2xx))
    requests = answers + sum(count or 0 for count in broken)
    if requests:
        return failed / requests
    return 1.0 if trial.status == "failed" else None


def rate_spread(trials: Sequence[Trial]) -> float | None:
    """(Highest - lowest) / median of the rounds' requests/s, at the level where it is largest."""
    by_level: dict[int, list[float]] = {}
    for trial in trials:
        if trial.status == "ok" and trial.requests_per_second:
            by_level.setdefault(trial.level, []).append(trial.requests_per_second)
    return _highest(
        (max(rates) - min(rates)) / statistics.median(rates) if len(rates) > 1 else None for rates in by_level.values()
    )


def growth(trials: Sequence[Trial]) -> float | None:
    """Memory that all servers gained in a trial as a share of its start; median of rounds, at the worst level."""
    by_level: dict[int, list[float]] = {}
    for trial in trials:
        if (gained := _memory_gained(trial)) is not None:
            by_level.setdefault(trial.level, []).append(gained)
    return _highest(statistics.median(shares) for shares in by_level.values())


def _memory_gained(trial: Trial) -> float | None:
    slopes, memory = trial.memory_slope_bytes_per_s, trial.memory
    if not slopes or not memory or not trial.duration_s or not all(memory.values()):
        return None
    known = [slope for slope in slopes.values() if slope is not None]
    start = sum(samples[0][1] for samples in memory.values())
    if len(known) < len(slopes) or not start:
        return None
    return max(0.0, sum(known) * trial.duration_s / start)


def _highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


MEASURES: dict[str, Callable[[Sequence[Trial]], float | None]] = {
    "errors": errors,
    "spread": rate_spread,
    "growth": growth,
    "kills": lambda trials: _sum(trial.oom_kills for trial in trials),
    "restarts": lambda trials: _highest(trial.restarts for trial in trials),
    "absence": lambda trials: _sum(None if trial.came_back is None else int(not trial.came_back) for trial in trials),
}


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def _count(value: float, one: str, several: str) -> str:
    return f"{value:g} {one if value == 1 else several}"


TEXTS: dict[str, Callable[[float], str]] = {
    "errors": lambda value: f"{_percent(value)} of the requests of one trial failed",
    "spread": lambda value: f"requests/s varied by {_percent(value)} between rounds",
    "growth": lambda value: f"memory grew by {_percent(value)} during a trial",
    "kills": lambda value: _count(value, "process", "processes") + " killed for lack of memory",
    "restarts": lambda value: _count(value, "worker process", "worker processes") + " replaced during one trial",
    "absence": lambda value: f"the site did not recover by itself after {_count(value, 'trial', 'trials')}",
}

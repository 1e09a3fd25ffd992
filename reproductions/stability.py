"""Rate how stable a case was: HIGH, MEDIUM or LOW, by the criteria in docs/reproductions.md. Pure, over trials only.

Each criterion has a rating, and the worst is the rating of the case. A criterion without a measurement does not count.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.measure.records.trials import Trial, largest

HIGH, MEDIUM, LOW = "HIGH", "MEDIUM", "LOW"
ORDER = (HIGH, MEDIUM, LOW)
SPREAD = "spread"


# Criterion -> its rating, None without a measurement, and its value in words.
Rated = Mapping[str, tuple[str | None, str]]


def rate(trials: Iterable[Trial]) -> Rated:
    """Rate the trials of one case, all rounds and levels together. One without a valid trial can only be LOW."""
    trials = tuple(trials)
    if not any(trial.status == "ok" for trial in trials):
        trials = tuple(trial for trial in trials if trial.status == "failed")
    ratings: dict[str, tuple[str | None, str]] = {}
    for name, (measure, high, medium, text) in CRITERIA.items():
        value = measure(trials)
        if value is None:
            ratings[name] = None, ""
        elif value <= high:
            ratings[name] = HIGH, text.format(value)
        else:
            ratings[name] = MEDIUM if value <= medium else LOW, text.format(value)
    return ratings


def worst(rated: Rated, without: str = "") -> str | None:
    """The rating of the case, without one of the criteria; None without a trial to judge by."""
    ratings = (rating for name, (rating, _) in rated.items() if rating and name != without)
    return max(ratings, key=ORDER.index, default=None)


def reasons(rated: Rated) -> list[str]:
    """The reasons for a rating below HIGH, the worst first."""
    low = [text for rating, text in rated.values() if rating == LOW]
    return low + [text for rating, text in rated.values() if rating == MEDIUM]


def _error_share(trial: Trial) -> float | None:
    """The share of failed requests."""
    if trial.status == "failed" and trial.condition.came_back is None:
        # It failed before its load, from wrong responses or a failed start: no evidence about stability.
        return None
    bad = trial.errors.total
    # A failed load has no total, and not every tool counts statuses: the good and the bad responses are one, though.
    counted = (trial.errors.responses_before_failure or 0) + (trial.errors.responses_not_2xx or 0)
    responses = trial.requests or sum((trial.errors.statuses or {}).values()) or counted
    broken = bad - (trial.errors.responses_not_2xx or 0)
    if trial.status == "failed" and not bad:
        return 1.0
    return bad / (responses + broken) if responses + broken else None


def _spread(trials: Sequence[Trial]) -> float | None:
    """(Highest - lowest) / median of the rounds' requests/s, at the level with the largest."""
    levels = _by_level(trials, lambda trial: trial.throughput if trial.status == "ok" else None)
    return largest((max(rates) - min(rates)) / statistics.median(rates) for rates in levels if len(rates) > 1)


def _growth(trials: Sequence[Trial]) -> float | None:
    """Memory gained by all servers in a trial as a share of the start; median of the rounds, at the worst level."""
    return largest(map(statistics.median, _by_level(trials, _memory_gained)))


def _memory_gained(trial: Trial) -> float | None:
    if not trial.figures or not trial.costs:
        return None
    slopes, memory, lasted_s = trial.costs.memory_slope_bytes_per_s, trial.costs.memory, trial.figures.duration_s
    if not slopes or not memory or not all(memory.values()) or None in slopes.values():
        return None
    start = sum(samples[0][1] for samples in memory.values())
    return max(0.0, sum(slope or 0.0 for slope in slopes.values()) * lasted_s / start) if start else None


def _by_level(trials: Sequence[Trial], value: Callable[[Trial], float | None]) -> list[list[float]]:
    by_level: dict[int, list[float]] = {}
    for trial in trials:
        if (known := value(trial)) is not None:
            by_level.setdefault(trial.level, []).append(known)
    return list(by_level.values())


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _kills(trials: Sequence[Trial]) -> float | None:
    """Processes killed for lack of memory."""
    return _sum(trial.condition.oom_kills for trial in trials)


def _restarts(trials: Sequence[Trial]) -> float | None:
    """The most workers replaced in a trial."""
    return largest(trial.condition.restarts for trial in trials)


def _absences(trials: Sequence[Trial]) -> float | None:
    """Trials after which the site did not recover."""
    back = [trial.condition.came_back for trial in trials]
    return _sum(None if came_back is None else int(not came_back) for came_back in back)


# Criterion -> how it is measured, the largest value that rates HIGH, the largest that rates MEDIUM, and it in words.
CRITERIA: dict[str, tuple[Callable[[Sequence[Trial]], float | None], float, float, str]] = {
    "errors": (
        lambda trials: largest(map(_error_share, trials)),
        0.0,
        0.01,
        "a share of {:.3g} of the requests of one trial failed",
    ),
    SPREAD: (_spread, 0.25, 0.5, "requests/s varied by {:.0%} between rounds"),
    "growth": (_growth, 0.1, 0.5, "memory grew by {:.0%} during a trial"),
    "kills": (_kills, 0, 0, "{:g} processes killed for lack of memory"),
    "restarts": (_restarts, 0, 3, "{:g} workers replaced during one trial"),
    "absence": (_absences, 0, 0, "the site did not recover by itself after {:g} trials"),
}

"""How stable a case was: HIGH, MEDIUM or LOW, by the formula of docs/stability.md. Pure, over trials alone.

Each part of the formula is rated by itself; a case is rated as its worst part. A part that was not measured does not
rate, and is told as such.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.results.trials import Trial

HIGH, MEDIUM, LOW = "HIGH", "MEDIUM", "LOW"
ORDER = (HIGH, MEDIUM, LOW)

# Part -> the most that is still HIGH, and the most that is still MEDIUM.
BOUNDS: dict[str, tuple[float, float]] = {
    "errors": (
        0.0,
        0.01,
    ),  # share of requests that failed, of the trial with most; a trial without figures counts whole
    "spread": (0.25, 0.5),  # (highest - lowest) / median of requests/s over the rounds at a level, of the widest level
    "growth": (0.1, 0.5),  # memory gained in a trial as a share of what it began with, median over its rounds
    "kills": (0.0, 0.0),  # processes killed for want of memory, all trials together
    "restarts": (0.0, 3.0),  # worker processes that ended and were replaced in a trial, of the trial with most
    "absence": (0.0, 0.0),  # trials after which the site did not answer again by itself
}


@dataclass(frozen=True)
class Part:
    """One part of the formula: what was found, None when it was not measured, and what that rates."""

    name: str
    value: float | None
    rating: str | None

    @property
    def text(self) -> str:
        """In words: `2 processes killed for want of memory`."""
        return WORDS[self.name](self.value) if self.value is not None else f"{self.name} not measured"


@dataclass(frozen=True)
class Rating:
    """The rating of a case, None when nothing of it was measured, and the parts that it comes from."""

    rating: str | None
    parts: tuple[Part, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """What made it less than HIGH, the worst first, in words."""
        short = [part for part in self.parts if part.rating in (MEDIUM, LOW)]
        return tuple(part.text for part in sorted(short, key=lambda part: -ORDER.index(part.rating)))

    @property
    def unknown(self) -> tuple[str, ...]:
        """The parts that were not measured."""
        return tuple(part.name for part in self.parts if part.rating is None)


def rate(trials: Iterable[Trial]) -> Rating:
    """The rating of the trials of one case, all rounds and levels together."""
    trials = tuple(trials)
    measures: dict[str, Callable[[Sequence[Trial]], float | None]] = {
        "errors": errors,
        "spread": spread,
        "growth": growth,
        "kills": lambda found: _total(trial.oom_kills for trial in found),
        "restarts": lambda found: _most(trial.restarts for trial in found),
        "absence": lambda found: _total(
            None if trial.came_back is None else int(not trial.came_back) for trial in found
        ),
    }
    parts = tuple(_part(name, measures[name](trials)) for name in BOUNDS)
    known = [part.rating for part in parts if part.rating is not None]
    return Rating(max(known, key=ORDER.index, default=None), parts)


def _part(name: str, value: float | None) -> Part:
    high, medium = BOUNDS[name]
    if value is None:
        return Part(name, None, None)
    return Part(name, value, HIGH if value <= high else MEDIUM if value <= medium else LOW)


def errors(trials: Sequence[Trial]) -> float | None:
    """The largest share of failed requests of any trial; 1 for one whose load came to an end without an answer."""
    return _most(_errors_of(trial) for trial in trials)


def _errors_of(trial: Trial) -> float | None:
    if trial.status == "failed" and trial.came_back is None:
        # It failed before its load, for wrong answers or because it never came up: that says nothing of stability.
        return None
    broken = [trial.errors_connect, trial.errors_read, trial.errors_timeout]
    answers = trial.requests_total or sum((trial.statuses or {}).values())
    failed = sum(count or 0 for count in (*broken, trial.responses_not_2xx))
    asked = answers + sum(count or 0 for count in broken)
    if asked:
        return failed / asked
    return 1.0 if trial.status == "failed" else None


def spread(trials: Sequence[Trial]) -> float | None:
    """How far apart the rounds of a level lie, as a share of their median, at the level where they lie furthest."""
    by_level: dict[int, list[float]] = {}
    for trial in trials:
        if trial.status == "ok" and trial.requests_per_second:
            by_level.setdefault(trial.level, []).append(trial.requests_per_second)
    return _most(
        (max(rates) - min(rates)) / statistics.median(rates) if len(rates) > 1 else None for rates in by_level.values()
    )


def growth(trials: Sequence[Trial]) -> float | None:
    """How much memory all servers gained in a trial as a share of what they began with; the level that gained most."""
    by_level: dict[int, list[float]] = {}
    for trial in trials:
        if (gained := _growth_of(trial)) is not None:
            by_level.setdefault(trial.level, []).append(gained)
    return _most(statistics.median(shares) for shares in by_level.values())


def _growth_of(trial: Trial) -> float | None:
    slopes, memory = trial.memory_slope_bytes_per_s, trial.memory
    if not slopes or not memory or not trial.duration_s or None in slopes.values() or not all(memory.values()):
        return None
    began = sum(samples[0][1] for samples in memory.values())
    return max(0.0, sum(slopes.values()) * trial.duration_s / began) if began else None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def _count(value: float, one: str, several: str) -> str:
    return f"{value:g} {one if value == 1 else several}"


WORDS: dict[str, Callable[[float], str]] = {
    "errors": lambda value: f"{_percent(value)} of the requests of a trial failed",
    "spread": lambda value: f"rounds lay {_percent(value)} of their median apart",
    "growth": lambda value: f"memory grew by {_percent(value)} in a trial",
    "kills": lambda value: _count(value, "process", "processes") + " killed for want of memory",
    "restarts": lambda value: _count(value, "worker process", "worker processes") + " replaced in a trial",
    "absence": lambda value: f"did not come back by itself after {_count(value, 'trial', 'trials')}",
}

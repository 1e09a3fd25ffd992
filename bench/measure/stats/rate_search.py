"""The capacity of a site: the highest rate with a latency within a limit, found by a staircase. Pure.

A staircase tries one rate after another: it climbs while rates hold, then halves the distance to the lowest failed
rate, and ends when both are neighbours among `RATES`. Both ends are tried twice, and the second result counts: with
only one repeated end, noise would move the capacity to the other side.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Annotated

from msgspec import Meta

from bench.errors import BenchError
from bench.means import means

# Preferred numbers (ISO 3, R40): steps of 6 %, rounded to numbers that people can read.
_DECADE = (
    *(100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300),
    *(315, 335, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950),
)
# The possible rates, in requests a second. Below 22 all are whole numbers.
_POWERS = (0.01, 0.1, 1, 10, 100)
RATES = tuple(sorted({round(number * power) for number, power in product(_DECADE, _POWERS)} | {100_000}))
STEP = 0.06
# The first rate of a case; a later round begins at the end of earlier rounds.
FIRST_RATE = 50
# The largest step up, as a multiple of the rate; also the largest step down.
LONGEST_CLIMB = 4
# Number of tries of each end of a staircase.
TRIES = 2

PERCENTS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
_UNITS = {"ms": 1.0, "s": 1000.0}
_LIMIT = re.compile(r"(\w+)=([0-9]+(?:\.[0-9]+)?)(ms|s)")
MAX_LIMIT_MS = 10_000.0


@dataclass(frozen=True)
class Limit:
    """A percentile of the latency and its maximum: `p95=200ms`."""

    percentile: Annotated[
        str, means("Percentile of the latency: p50, p90, p95 or p99."), Meta(pattern="^p(50|90|95|99)$")
    ]
    milliseconds: Annotated[float, means("Highest latency at that percentile, in milliseconds."), Meta(gt=0)]

    @property
    def percent(self) -> float:
        """The percentile as a number, such as 95."""
        return PERCENTS[self.percentile]

    @property
    def words(self) -> str:
        """`p95 within 200 ms`."""
        return f"{self.percentile} within {self.milliseconds:g} ms"

    def __str__(self) -> str:
        """As on a command line."""
        return f"{self.percentile}={self.milliseconds:g}ms"


def parse_limit(text: str) -> Limit:
    """The limit in `p95=200ms`. Raises BenchError for another text."""
    match = _LIMIT.fullmatch(text)
    if not match or match[1] not in PERCENTS:
        names = ", ".join(PERCENTS)
        raise BenchError(f"{text}: write it as p95=200ms or p99=1.5s; percentiles are {names}, units ms and s")
    milliseconds = float(match[2]) * _UNITS[match[3]]
    if not 0 < milliseconds < MAX_LIMIT_MS:
        raise BenchError(
            f"{text}: use more than 0 and less than {MAX_LIMIT_MS / 1000:g} s, when a request counts as lost"
        )
    return Limit(match[1], milliseconds)


@dataclass(frozen=True)
class Step:
    """Result for a rate: whether the last try held, and the number of tries."""

    held: bool
    tries: int = 1


def bracket(steps: Mapping[int, Step]) -> tuple[int | None, int | None]:
    """The highest rate that held, and the lowest failed rate above it; or None."""
    low = max((rate for rate, step in steps.items() if step.held), default=None)
    high = min((rate for rate, step in steps.items() if not step.held and rate > (low or 0)), default=None)
    return low, high


def next_rate(steps: Mapping[int, Step], first: int, *, near: bool) -> int | None:
    """The next rate; None at the end of the staircase.

    first  the initial rate
    near   whether the initial rate is close to the capacity: then the first steps are small, and grow
    """
    if not steps:
        return first
    low, high = bracket(steps)
    far = len(RATES)
    if near:
        # Each time twice as many steps in the same direction.
        far = 2 ** (len(steps) - 1)
    if high is None and low is not None and low < RATES[-1]:
        return _moved(low, far, rate_near(low * LONGEST_CLIMB))
    if low is None and high is not None and high > RATES[0]:
        return _moved(high, -far, rate_near(high / LONGEST_CLIMB))
    if low is not None and high is not None and (between := RATES.index(high) - RATES.index(low) - 1):
        return RATES[RATES.index(low) + (between + 1) // 2]
    return next((rate for rate in (high, low) if rate is not None and steps[rate].tries < TRIES), None)


def _moved(rate: int, steps: int, end: int) -> int:
    """The rate so many steps away, up or down, but not beyond `end`; at least one step."""
    here, last = RATES.index(rate), RATES.index(end)
    if steps > 0:
        return RATES[max(here + 1, min(here + steps, last))]
    return RATES[min(here - 1, max(here + steps, last))]


def rate_near(rate: float) -> int:
    """The highest of RATES up to `rate`, at least the first."""
    return RATES[max(0, bisect.bisect_right(RATES, rate) - 1)]

"""The capacity of a site: the highest rate at which its latency stays within a limit, found by a staircase. Pure.

A staircase tries one rate after another. It climbs while rates hold, halves the distance to the lowest rate that does
not, and ends when both are neighbours among `RATES`. Both ends are tried twice, and the second time counts: if only one
of them were, noise would move the capacity to the other side.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping
from dataclasses import dataclass

from bench.errors import BenchError

# Preferred numbers (ISO 3, R40): steps of 6 %, rounded to numbers that people can read.
_DECADE = (
    *(100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300),
    *(315, 335, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950),
)
# The rates that are tried, in requests a second. Below 22 they are all whole numbers.
RATES = tuple(sorted({round(number * 10.0**power) for power in range(-2, 3) for number in _DECADE} | {100_000}))
STEP = 0.06
# The first rate of a case; a later round begins where the rounds before it ended.
FIRST_RATE = 50
# The longest climb at once is to so many times the rate, or down to that part of it.
LONGEST_CLIMB = 4
# How often each end of a staircase is tried.
TRIES = 2

PERCENTS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
_UNITS = {"ms": 1.0, "s": 1000.0}
_LIMIT = re.compile(r"(\w+)=([0-9]+(?:\.[0-9]+)?)(ms|s)")
MAX_LIMIT_MS = 10_000.0


@dataclass(frozen=True)
class Limit:
    """A percentile of the latency and how large it may be: `p95=200ms`."""

    percentile: str
    milliseconds: float

    @property
    def percent(self) -> float:
        """The percentile as a number, such as 95."""
        return PERCENTS[self.percentile]

    @property
    def words(self) -> str:
        """`p95 within 200 ms`."""
        return f"{self.percentile} within {self.milliseconds:g} ms"

    def __str__(self) -> str:
        """As on a command line and in records."""
        return f"{self.percentile}={self.milliseconds:g}ms"


def parse_limit(text: str) -> Limit:
    """The limit in `p95=200ms`. Raises BenchError for another text."""
    found = _LIMIT.fullmatch(text)
    if not found or found[1] not in PERCENTS:
        names = ", ".join(PERCENTS)
        raise BenchError(f"{text}: write it as p95=200ms or p99=1.5s; percentiles are {names}, units ms and s")
    milliseconds = float(found[2]) * _UNITS[found[3]]
    if not 0 < milliseconds < MAX_LIMIT_MS:
        raise BenchError(
            f"{text}: use more than 0 and less than {MAX_LIMIT_MS / 1000:g} s, when a request counts as lost"
        )
    return Limit(found[1], milliseconds)


@dataclass(frozen=True)
class Step:
    """What is known of a rate: whether it held when it was last tried, and how often it was tried."""

    held: bool
    tries: int = 1


def bracket(steps: Mapping[int, Step]) -> tuple[int | None, int | None]:
    """The highest rate that held, and the lowest one above it that did not; None if there is none."""
    low = max((rate for rate, step in steps.items() if step.held), default=None)
    high = min((rate for rate, step in steps.items() if not step.held and rate > (low or 0)), default=None)
    return low, high


def next_rate(steps: Mapping[int, Step], first: int, *, near: bool) -> int | None:
    """The rate to try next; None if the staircase is at its end.

    first  the rate that it began with
    near   whether that was close to the capacity: then it leaves it in small steps that grow
    """
    if not steps:
        return first
    low, high = bracket(steps)
    # Each time twice as many steps in the same direction.
    far = 2 ** (len(steps) - 1) if near else len(RATES)
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
    """The highest of RATES that is not above `rate`, at least the first."""
    return RATES[max(0, bisect.bisect_right(RATES, rate) - 1)]

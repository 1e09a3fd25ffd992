"""Medians of rounds with their confidence intervals. Pure: numbers in, numbers out.

An estimate is the median of the rounds with its bootstrap 95 % confidence interval. Nothing here averages percentiles
or keeps only the best round.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """One figure over the rounds of a case: median, ends of its 95 % confidence interval, number of rounds.

    With up to five rounds the interval is the range, from the lowest round to the highest.
    """

    median: float
    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        if self.count < 1 or not self.low <= self.median <= self.high:
            raise ValueError(f"not an estimate: {self.low} <= {self.median} <= {self.high} of {self.count}")


@dataclass(frozen=True)
class PooledPercentile:
    """A percentile over the requests of all rounds, with the lowest and highest round beside it.

    `count` is the number of rounds with enough requests for a percentile of their own, possibly 0.
    """

    median: float
    low: float
    high: float
    count: int


def estimate(values: Iterable[float | None]) -> Estimate | None:
    """Median and confidence interval of the measured values; None without one. NaN counts as not measured."""
    known = sorted(value for value in values if value is not None and math.isfinite(value))
    if not known:
        return None
    low, high = _interval(known)
    return Estimate(statistics.median(known), low, high, len(known))


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """The bootstrap percentile interval of the median, computed exactly instead of sampled: always the same."""
    chances = sorted(_medians_of_resamples(values))
    outside = (1 - CONFIDENCE) / 2
    reached, low, high = 0.0, chances[0][0], chances[-1][0]
    for value, chance in chances:
        if reached <= outside < reached + chance:
            low = value
        if reached < 1 - outside <= reached + chance:
            high = value
        reached += chance
    return low, high


def _medians_of_resamples(values: Sequence[float]) -> Iterable[tuple[float, float]]:
    """Every median that n draws with replacement from n sorted values can have, with its probability."""
    n = len(values)
    m = (n + 1) // 2

    def reaches(k: int, at_least: int) -> float:
        """The probability that at least `at_least` of n draws are among the k lowest values."""
        return sum(math.comb(n, d) * (k / n) ** d * (1 - k / n) ** (n - d) for d in range(at_least, n + 1))

    for i in range(1, n + 1):
        chance = reaches(i, m) - reaches(i - 1, m)
        if n % 2 == 0:
            # The median lies between the two middle draws: the lower is value i and the upper value j.
            for j in range(i + 1, n + 1):
                lower = (i / n) ** m - ((i - 1) / n) ** m
                upper = ((n - j + 1) / n) ** m - ((n - j) / n) ** m
                both = math.comb(n, m) * lower * upper
                chance -= both
                yield (values[i - 1] + values[j - 1]) / 2, both
        yield values[i - 1], chance


def paired_ratio(numerator: Mapping[int, float], denominator: Mapping[int, float]) -> Estimate | None:
    """The estimate of the ratios round by round (round -> figure); None without a shared round above zero.

    Rounds are paired because a disturbance in one round hits both sides of the ratio.
    """
    shared = [number for number in numerator if denominator.get(number, 0) > 0]
    return estimate(numerator[number] / denominator[number] for number in shared)

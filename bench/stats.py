"""Medians, ranges, percentiles and ratios of rounds. Pure: numbers in, numbers out.

A spread is the median with the lowest and highest round beside it. Nothing here averages percentiles or
keeps only the best round.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

FASTER, SLOWER, INCONCLUSIVE = "faster", "slower", "inconclusive"


@dataclass(frozen=True)
class Spread:
    """What the rounds of one case say about one figure: median, lowest, highest, number of rounds."""

    median: float
    low: float
    high: float
    count: int

    def __post_init__(self):
        if self.count < 1 or not self.low <= self.median <= self.high:
            raise ValueError(f"not a spread: {self.low} <= {self.median} <= {self.high} of {self.count}")

    def overlaps(self, other: Spread) -> bool:
        """True when the two ranges share at least one value."""
        return self.low <= other.high and other.low <= self.high


def spread(values: Iterable[float | None]) -> Spread | None:
    """Median and range of the values that were measured; None when none was. Not a number is not measured."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    return Spread(statistics.median(known), min(known), max(known), len(known))


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` in 100 of the values do not exceed (nearest rank)."""
    if not values:
        raise ValueError("a percentile needs at least one value")
    if not 0 < percent <= 100:
        raise ValueError(f"a percentile lies above 0 and up to 100, not at {percent}")
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


def paired_ratio(numerator: Mapping[int, float], denominator: Mapping[int, float]) -> Spread | None:
    """Spread of the ratios of equal rounds (round -> figure); None without a shared round above zero.

    Rounds are pairs because what disturbed the machine in one round disturbed both sides of the ratio.
    """
    shared = [number for number in numerator if denominator.get(number, 0) > 0]
    return spread(numerator[number] / denominator[number] for number in shared)


def verdict(before: Spread, after: Spread) -> str:
    """`faster` or `slower`: where `after` lies against `before` when more is faster.

    `inconclusive` when the ranges overlap, and when either side has one round only: one reading has no range.
    """
    if min(before.count, after.count) < 2 or before.overlaps(after):
        return INCONCLUSIVE
    return FASTER if after.low > before.high else SLOWER


def chance_of_separation(rounds: int) -> float:
    """How often the ranges of two equal things do not overlap, by chance alone, with `rounds` rounds each.

    Of all orders of 2n readings, two keep the n of each side together: 2 / C(2n, n).
    """
    if rounds < 1:
        raise ValueError("at least one round")
    return 2 / math.comb(2 * rounds, rounds)

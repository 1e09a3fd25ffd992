"""Medians, intervals, percentiles and comparisons of rounds. Pure: numbers in, numbers out.

A spread is the median of the rounds with its bootstrap 95 % interval. Nothing here averages percentiles or keeps only
the best round. A comparison says faster or slower only of what chance alone would rarely show and what is larger than
a margin; all else is inconclusive.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

FASTER, SLOWER, INCONCLUSIVE = "faster", "slower", "inconclusive"

CONFIDENCE = 0.95
MARGIN = 0.05

# Student's t for 95 % on both sides, by degrees of freedom from 1.
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Spread:
    """What the rounds of one case say about one figure: median, ends of its 95 % interval, number of rounds.

    Up to five rounds the interval reaches from the lowest round to the highest.
    """

    median: float
    low: float
    high: float
    count: int

    def __post_init__(self):
        if self.count < 1 or not self.low <= self.median <= self.high:
            raise ValueError(f"not a spread: {self.low} <= {self.median} <= {self.high} of {self.count}")


def spread(values: Iterable[float | None]) -> Spread | None:
    """Median and interval of the values that were measured; None when none was. Not a number is not measured."""
    known = sorted(value for value in values if value is not None and math.isfinite(value))
    if not known:
        return None
    low, high = _interval(known)
    return Spread(statistics.median(known), low, high, len(known))


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """The bootstrap percentile interval of the median of sorted values, computed and not drawn: always the same."""
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
    """Every median that n draws with replacement from n sorted values can have, and its chance."""
    n = len(values)
    m = (n + 1) // 2

    def reaches(k: int, at_least: int) -> float:
        """The chance that at least so many of n draws are among the k lowest values."""
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


@dataclass(frozen=True)
class Comparison:
    """What the rounds say of B against A.

    ratio      B / A: the median of the ratios of equal rounds, or the ratio of the medians when rounds are no pairs
    low, high  95 % interval of the ratio
    rounds     pairs of rounds, or the rounds of the side that has fewer
    margin     how far from 1 the ratio must be to be called a difference
    """

    ratio: float
    low: float
    high: float
    rounds: int
    margin: float

    @property
    def verdict(self) -> str:
        """`faster` or `slower` when the whole interval differs from 1 by more than the margin.

        Of a figure of which more is better, such as requests/s; otherwise `inconclusive`.
        """
        if self.rounds < 2:
            return INCONCLUSIVE
        if self.low > 1 + self.margin:
            return FASTER
        if self.high < 1 / (1 + self.margin):
            return SLOWER
        return INCONCLUSIVE


def paired(before: Mapping[int, float], after: Mapping[int, float], margin: float = MARGIN) -> Comparison | None:
    """B against A by the rounds (round -> figure) that both have in one run; None when they share none above zero.

    Rounds are pairs because what disturbed the machine in one round disturbed both. The interval is Student's on the
    logarithms of the ratios: it holds for few rounds, where a bootstrap is too narrow.
    """
    shared = [n for n in before if before[n] > 0 and after.get(n, 0) > 0]
    if not shared:
        return None
    ratios = [after[n] / before[n] for n in shared]
    logs = [math.log(ratio) for ratio in ratios]
    error = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return _comparison(statistics.median(ratios), statistics.fmean(logs), error, len(logs) - 1, len(logs), margin)


def unpaired(before: Sequence[float], after: Sequence[float], margin: float = MARGIN) -> Comparison | None:
    """B against A by rounds that are no pairs, those of two runs (Welch's interval); None when a side has none."""
    sides = [[math.log(value) for value in side if value > 0] for side in (before, after)]
    if not all(sides):
        return None
    first, second = sides
    ratio = statistics.median(after) / statistics.median(before)
    count = min(len(first), len(second))
    error, freedom = math.inf, 0.0
    if count > 1:
        parts = [statistics.variance(side) / len(side) for side in sides]
        error = math.sqrt(sum(parts))
        squares = sum(part**2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True))
        freedom = sum(parts) ** 2 / squares if squares else len(first) + len(second) - 2
    middle = statistics.fmean(second) - statistics.fmean(first)
    return _comparison(ratio, middle, error, freedom, count, margin)


def _comparison(ratio: float, middle: float, error: float, freedom: float, rounds: int, margin: float) -> Comparison:
    if error == math.inf:
        return Comparison(ratio, 0.0, math.inf, rounds, margin)
    reach = student(freedom) * error
    # The interval is one of the mean; the median shown lies in it.
    return Comparison(ratio, min(ratio, math.exp(middle - reach)), max(ratio, math.exp(middle + reach)), rounds, margin)


def student(freedom: float) -> float:
    """Student's t for 95 % on both sides; between whole degrees of freedom that of the lower, which is wider."""
    whole = max(1, int(freedom))
    # Beyond the table this is within 0.001 of the true value.
    return STUDENT[whole - 1] if whole <= len(STUDENT) else 1.96 + 2.5 / whole


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

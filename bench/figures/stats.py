"""Medians, confidence intervals and ratios of rounds. Pure: numbers in, numbers out.

A spread is the median of the rounds with its bootstrap 95 % confidence interval. Nothing here averages percentiles or
keeps only the best round. A ratio is `faster` or `slower` only when its whole confidence interval lies beyond a margin.
Everything else is inconclusive: a tie.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

FASTER, SLOWER, INCONCLUSIVE = "faster", "slower", "inconclusive"

CONFIDENCE = 0.95
MARGIN = 0.05

# Two-sided 95 % quantiles of Student's t, by degrees of freedom from 1.
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Spread:
    """One figure over the rounds of a case: median, ends of its 95 % confidence interval, number of rounds.

    With up to five rounds the interval is the range, from the lowest round to the highest.
    """

    median: float
    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        if self.count < 1 or not self.low <= self.median <= self.high:
            raise ValueError(f"not a spread: {self.low} <= {self.median} <= {self.high} of {self.count}")


@dataclass(frozen=True)
class PooledPercentile:
    """A percentile over the requests of all rounds, with the lowest and highest round beside it.

    `count` is the number of rounds with enough requests for a percentile of their own, possibly 0.
    """

    median: float
    low: float
    high: float
    count: int


def spread(values: Iterable[float | None]) -> Spread | None:
    """Median and confidence interval of the measured values; None without one. NaN counts as not measured."""
    known = sorted(value for value in values if value is not None and math.isfinite(value))
    if not known:
        return None
    low, high = _interval(known)
    return Spread(statistics.median(known), low, high, len(known))


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


@dataclass(frozen=True)
class Ratio:
    """B / A over the rounds.

    ratio      median of the ratios round by round; for unpaired rounds the ratio of the medians
    low, high  95 % confidence interval of the ratio
    rounds     pairs of rounds, or the rounds of the side with fewer
    margin     distance from 1 below which a difference does not count
    """

    ratio: float
    low: float
    high: float
    rounds: int
    margin: float

    @property
    def verdict(self) -> str:
        """`faster` or `slower` when the whole interval lies more than the margin from 1, else `inconclusive`.

        For figures where more is better, such as requests/s.
        """
        if self.rounds < 2:
            return INCONCLUSIVE
        if self.low > 1 + self.margin:
            return FASTER
        if self.high < 1 / (1 + self.margin):
            return SLOWER
        return INCONCLUSIVE


def paired(before: Mapping[int, float], after: Mapping[int, float], margin: float = MARGIN) -> Ratio | None:
    """B / A from the rounds (round -> figure) that both have in one run; None when they share none above zero.

    Rounds are paired because a disturbance in one round hits both sides. The interval is Student's on the logarithms of
    the ratios: it holds for few rounds, where a bootstrap is too narrow.
    """
    shared = [n for n in before if before[n] > 0 and after.get(n, 0) > 0]
    if not shared:
        return None
    ratios = [after[n] / before[n] for n in shared]
    logs = [math.log(ratio) for ratio in ratios]
    error = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return _ratio(statistics.median(ratios), statistics.fmean(logs), error, len(logs) - 1, len(logs), margin)


def unpaired(before: Sequence[float], after: Sequence[float], margin: float = MARGIN) -> Ratio | None:
    """B / A from the unpaired rounds of two runs (Welch's interval); None when a side has no round above zero."""
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
    return _ratio(ratio, middle, error, freedom, count, margin)


def _ratio(ratio: float, middle: float, error: float, freedom: float, rounds: int, margin: float) -> Ratio:
    if error == math.inf:
        return Ratio(ratio, 0.0, math.inf, rounds, margin)
    reach = student(freedom) * error
    # The interval is that of the mean. It is widened where it would not contain the median.
    return Ratio(ratio, min(ratio, math.exp(middle - reach)), max(ratio, math.exp(middle + reach)), rounds, margin)


def student(freedom: float) -> float:
    """Two-sided 95 % quantile of Student's t; fractional degrees of freedom are rounded down, which is wider."""
    whole = max(1, int(freedom))
    # Beyond the table this is within 0.001 of the true value.
    return STUDENT[whole - 1] if whole <= len(STUDENT) else 1.96 + 2.5 / whole


def paired_ratio(numerator: Mapping[int, float], denominator: Mapping[int, float]) -> Spread | None:
    """Spread of the ratios round by round (round -> figure); None without a shared round above zero.

    Rounds are paired because a disturbance in one round hits both sides of the ratio.
    """
    shared = [number for number in numerator if denominator.get(number, 0) > 0]
    return spread(numerator[number] / denominator[number] for number in shared)

"""Ratios of figures with their confidence intervals, and which cases may be the fastest. Pure: numbers in and out.

All arithmetic is on logarithms, with the noise of the whole table (bench.figures.noise). A ratio is `faster` or
`slower` only when its whole interval lies beyond a margin. Everything else is inconclusive: a tie.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from bench.figures.distributions import student
from bench.figures.noise import Difference, Name, Noise, noise_of, satterthwaite
from bench.figures.overall import Overall
from bench.figures.stats import CONFIDENCE

FASTER, SLOWER, INCONCLUSIVE = "faster", "slower", "inconclusive"

MARGIN = 0.05
MAX_LOGARITHM = 700.0
# Of one end of an interval to err.
CHANCE = (1 - CONFIDENCE) / 2
# Looks at growing figures -> the chance of one end at each, so that all of them together err in 2.5 % (Pocock 1977,
# Biometrika 64:191, table 1).
AT_EACH_LOOK = {1: CHANCE, 2: 0.0147, 3: 0.01105}


@dataclass(frozen=True)
class Ratio:
    """B / A over the rounds.

    ratio      how many times A's figure B's is
    low, high  95 % confidence interval of the ratio; 0 and infinity when the rounds say nothing about noise
    rounds     of the side with fewer
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
        if self.low > 1 + self.margin:
            return FASTER
        if self.high < 1 / (1 + self.margin):
            return SLOWER
        return INCONCLUSIVE


def logarithms(figures: Mapping[int, float]) -> dict[int, float]:
    """Round -> logarithm of its figure, for figures above zero: a row of the table that `noise_of` takes."""
    return {number: math.log(figure) for number, figure in figures.items() if figure > 0}


def paired(
    before: Mapping[int, float], after: Mapping[int, float], margin: float = MARGIN, chance: float = CHANCE
) -> Ratio | None:
    """B / A from the rounds (round -> figure) that both have in one run; None when they share none above zero.

    `chance` is that of each end of the interval to err.

    Rounds are paired because a disturbance in one round hits both sides. `ratio` is the median of the rounds' ratios.
    """
    shared = [n for n in before if before[n] > 0 and after.get(n, 0) > 0]
    if not shared:
        return None
    sides = {name: logarithms({n: side[n] for n in shared}) for name, side in (("before", before), ("after", after))}
    found = noise_of(sides).difference("after", "before")
    return _ratio(statistics.median(after[n] / before[n] for n in shared), found, len(shared), margin, chance)


def unpaired(
    before: Sequence[float], after: Sequence[float], margin: float = MARGIN, chance: float = CHANCE
) -> Ratio | None:
    """B / A of one case in two runs, from its rounds alone; None when a side has no round above zero.

    `chance` is that of each end of the interval to err.
    """
    sides = [dict(enumerate(figures)) for figures in (before, after)]
    if not all(logarithms(side) for side in sides):
        return None
    first, second = (noise_of({"case": logarithms(side)}) for side in sides)
    return between(first, second, "case", statistics.median(after) / statistics.median(before), margin, chance)


def between(
    before: Noise[Name], after: Noise[Name], name: Name, ratio: float, margin: float, chance: float = CHANCE
) -> Ratio:
    """B / A of one case in two runs. Nothing pairs the rounds of two runs: their effects count as noise.

    `ratio` is that of the figures as they are shown.
    """
    first, second = before.cases[name], after.cases[name]
    parts = [part for noise in (before, after) for part in _alone(noise, name)]
    found = Difference(second.mean - first.mean, sum(variance for variance, _ in parts), satterthwaite(parts))
    rounds = min(first.count, second.count)
    return _ratio(ratio, found if rounds > 1 and found.freedom else None, rounds, margin, chance)


def _alone(noise: Noise[Name], name: Name) -> Iterable[tuple[float, float]]:
    """The variance of a case's mean in two parts with their degrees of freedom: the rounds', and its own.

    The effects of the rounds were estimated from all cases: their variance has a part of the noise in it already.
    """
    case, rounds = noise.cases[name], len(noise.effects)
    if rounds > 1:
        yield statistics.variance(noise.effects) / case.count, rounds - 1
    yield case.variance / case.count * (1 - 1 / len(noise.cases)), case.freedom


def _ratio(ratio: float, found: Difference | None, rounds: int, margin: float, chance: float = CHANCE) -> Ratio:
    if found is None:
        return Ratio(ratio, 0.0, math.inf, rounds, margin)
    reach = student(chance, found.freedom) * math.sqrt(found.variance)
    # The interval is that of the mean. It is widened where it would not contain the ratio.
    low, high = _exp(found.estimate - reach), _exp(found.estimate + reach)
    return Ratio(ratio, min(ratio, low), max(ratio, high), rounds, margin)


@dataclass(frozen=True)
class Standings(Generic[Name]):
    """The cases of a table against the fastest of them, whichever that is.

    leader   the first of the cases that may be the fastest
    tied     the other cases that may be
    slower   the cases that are proven slower than another one
    ratios   case -> how many times its figure that of the fastest is, at least 1
    proven   False when nothing is known about noise, as after one round: then all cases but the leader are in `tied`
    """

    leader: Name
    tied: tuple[Name, ...]
    slower: tuple[Name, ...]
    ratios: dict[Name, Ratio]
    proven: bool


def tail(cases: int, looks: int = 1) -> float:
    """The chance that a bound may err with, so that all bounds of so many cases hold at once with 95 % confidence.

    Each pair is judged two-sided at 5 % divided by the number of other cases (Bonferroni), which holds for cases of
    unequal noise, too, and by the number of `looks` that a race takes at its figures (bench.figures.race).
    """
    return (1 - CONFIDENCE) / 2 / max(1, cases - 1) / looks


def compared(
    noise: Noise[Name] | Overall[Name], before: Name, after: Name, chance: float, margin: float = MARGIN
) -> Ratio:
    """B / A of two cases by the noise of their table; each end of the interval may err with this chance."""
    cases = noise.cases
    found = noise.difference(after, before)
    point = math.exp(found.estimate if found else cases[after].mean - cases[before].mean)
    rounds = min(cases[before].count, cases[after].count)
    return _ratio(point, found, rounds, margin, chance)


def standings(
    noise: Noise[Name] | Overall[Name],
    names: Sequence[Name],
    margin: float = MARGIN,
    chance: float | None = None,
    dropped: Collection[Name] = (),
) -> Standings[Name]:
    """Compare each of the cases with the best of them (multiple comparisons with the best, Hsu 1984).

    With 95 % confidence the fastest is the leader or tied with it, and all intervals hold at once. `chance` is that of
    a bound to err when it is not the `tail` of these cases.
    `names` are in the order of preference for the leader. Those `dropped` by a race are slower.
    """
    leads = _leads(noise, names, tail(len(names)) if chance is None else chance)
    # The fastest is at least as fast as any other case, so that the largest lead over a case is a bound for its lead.
    behind = {name: max((leads[other, name] for other in names if other != name), default=0.0) for name in names}
    left = [name for name in names if name not in dropped] or list(names)
    beaten = {name for name in left if any(leads[other, name] > math.log1p(margin) for other in left if other != name)}
    candidates = [name for name in left if name not in beaten]
    leader = candidates[0]
    ratios = {}
    for name in names:
        case = noise.cases[name]
        found = noise.difference(leader, name) if name != leader else None
        point = math.exp(found.estimate if found else noise.cases[leader].mean - case.mean)
        ahead = max((-leads[name, other] for other in candidates if other != name), default=0.0)
        low, high = _exp(max(behind[name], 0.0)), _exp(ahead)
        rounds = min(noise.cases[leader].count, case.count)
        ratios[name] = Ratio(point, min(point, low), max(point, high), rounds, margin)
    tied = tuple(name for name in candidates if name != leader)
    slower = tuple(name for name in names if name not in candidates)
    return Standings(leader, tied, slower, ratios, noise.freedom > 0)


def _leads(noise: Noise[Name] | Overall[Name], names: Sequence[Name], chance: float) -> dict[tuple[Name, Name], float]:
    """(case, other) -> the lower bound of the logarithm of case / other."""
    leads = {}
    for index, case in enumerate(names):
        for other in names[:index]:
            found = noise.difference(case, other)
            reach = student(chance, _coarse(found.freedom)) * math.sqrt(found.variance) if found else math.inf
            middle = found.estimate if found else 0.0
            leads[case, other], leads[other, case] = middle - reach, -middle - reach
    return leads


def _exp(logarithm: float) -> float:
    """The ratio of a logarithm; infinity where it is too large for a number, as bounds from hardly any noise are."""
    return math.exp(logarithm) if logarithm < MAX_LOGARITHM else math.inf


def _coarse(freedom: float) -> float:
    """Degrees of freedom rounded down to three digits: 143 cases have 10,000 pairs, and quantiles take time."""
    unit = math.pow(10, math.floor(math.log10(freedom)) - 2)
    return math.floor(freedom / unit) * unit

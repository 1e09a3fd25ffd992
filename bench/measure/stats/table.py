"""The one statistical model: how many times as fast a case is as another, and which case is the fastest. Pure.

A rate is the product of its case, its round and noise, so that logarithms add up: log(rate) = case + round + noise. A
slow round slows all cases, so two cases are compared by their differences in common rounds. Few rounds say little about
the noise of one case, but much about the noise of all cases together: the noise is pooled. A plainly noisier case (an F
test) is judged by its own noise. Intervals follow Student's t.

Rounds may be missing, such as after a discarded trial. A rate that is not a positive number counts as missing.
"""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Generic

from bench.measure.stats.distributions import student
from bench.measure.stats.least_squares import Fit, Logs, Name, Noise
from bench.words import INCONCLUSIVE, LEADS, TIES

MARGIN = 0.05
CONFIDENCE = 0.95
# A single round shows no noise. Then a case is out only if it would be out with this standard deviation of a logarithm,
# larger than in any trial that passes the guards. At least so many cases stay.
ASSUMED_NOISE = 0.25
MIN_LEFT = 4
MAX_LOGARITHM = 700.0

Ratio = tuple[float, float, float]  # estimate, low, high


@dataclass(frozen=True)
class Decision(Generic[Name]):
    """Verdict on the fastest case.

    verdict  `leads`: all others are slower than the best by more than the margin. `ties`: some are within the margin of
             the best, and all others are slower. `inconclusive`: the rounds do not suffice
    best     the case with the highest rate; None without a rate
    ties     the other cases within the margin of the best
    open     the other cases that may be the best, or tie with the best
    slower   the cases slower than the best by more than the margin
    """

    verdict: str
    best: Name | None
    ties: tuple[Name, ...] = ()
    open: tuple[Name, ...] = ()
    slower: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """The logarithm of a rate, or the difference of two, with its variance and degrees of freedom: 0 if unknown.

    less, more  possible deviation below and above without any noise, for rates found in steps
    """

    value: float
    variance: float = 0.0
    freedom: float = 0.0
    less: float = 0.0
    more: float = 0.0

    def __sub__(self, other: Estimate) -> Estimate:
        """The difference to an independent estimate."""
        noise = _sum([Noise(part.variance, part.freedom) for part in (self, other)])
        less, more = self.less + other.more, self.more + other.less
        return Estimate(self.value - other.value, noise.variance, noise.freedom, less, more)

    @property
    def rate(self) -> float:
        """The rate of the logarithm."""
        return _exp(self.value)

    def ends(self, chance: float) -> tuple[float, float]:
        """Confidence interval with error probability `chance` at each end."""
        if not self.freedom:
            return -math.inf, math.inf
        reach = 0.0
        if self.variance:
            reach = student(chance, self.freedom) * math.sqrt(self.variance)
        return self.value - reach - self.less, self.value + reach + self.more

    def ratio(self, confidence: float = CONFIDENCE) -> Ratio:
        """Estimate, low and high as ratios."""
        low, high = self.ends((1 - confidence) / 2)
        return _exp(self.value), _exp(low), _exp(high)


class Cases(ABC, Generic[Name]):
    """Comparable cases, from one table or several."""

    @property
    @abstractmethod
    def names(self) -> Sequence[Name]:
        """The cases with a rate."""

    @abstractmethod
    def rate(self, case: Name) -> float:
        """Requests/s of a case: the geometric mean of its rounds, corrected for missing rounds."""

    @abstractmethod
    def difference(self, case: Name, other: Name) -> Estimate:
        """Logarithm of a case's rate minus the logarithm of the other's."""

    def ratio(self, case: Name, other: Name, confidence: float = CONFIDENCE) -> Ratio:
        """Rate of `case` as a multiple of the rate of `other`: estimate, low and high end of the interval.

        The ends are 0 and infinity if the noise is unknown. Raises KeyError for a case without a rate, ValueError for a
        confidence outside of 0 to 1.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence {confidence}: use a share, such as {CONFIDENCE}")
        return self.difference(case, other).ratio(confidence)

    def decide(self, margin: float = MARGIN, look: int | None = None, dropped: Collection[Name] = ()) -> Decision[Name]:
        """Decide on the fastest case, with 95 % confidence in the whole decision.

        margin   minimum relative difference of rates
        look     1, 2, ...: number of the decision in a race; all decisions together err in at most 5 %
        dropped  cases found slower by earlier looks

        Raises ValueError for a margin outside of 0 to 1, or a look below 1.
        """
        if not 0 <= margin < math.inf or (look is not None and look < 1):
            raise ValueError(f"margin {margin}, look {look}: a margin is a share, the first look is 1")
        left = sorted((name for name in self.names if name not in dropped), key=self.rate, reverse=True)
        out = tuple(name for name in self.names if name in dropped)
        if not left:
            return Decision(INCONCLUSIVE, None, slower=out)
        best, *others = left
        chance = _chance(len(self.names), look)
        differences = {name: self.difference(best, name) for name in others}
        if others and not any(difference.freedom for difference in differences.values()):
            far = self._far_behind(left, chance, margin)
            return Decision(INCONCLUSIVE, best, open=tuple(n for n in others if n not in far), slower=(*far, *out))
        slower: list[Name] = []
        ties: list[Name] = []
        undecided: list[Name] = []
        for name, difference in differences.items():
            low, high = difference.ends(chance)
            if low > math.log1p(margin):
                slower.append(name)
            elif high <= math.log1p(margin):
                ties.append(name)
            else:
                undecided.append(name)
        verdict = LEADS
        if undecided or not self.repeated(best):
            verdict = INCONCLUSIVE
        elif ties:
            verdict = TIES
        return Decision(verdict, best, tuple(ties), tuple(undecided), (*slower, *out))

    @abstractmethod
    def repeated(self, case: Name) -> bool:
        """True if a case has more than one round."""

    def _far_behind(self, left: Sequence[Name], chance: float, margin: float) -> tuple[Name, ...]:
        """The cases, fastest first, that are slower than the first even with the assumed noise."""
        if any(self.repeated(name) for name in self.names):
            return ()  # they have no round in common
        reach = NormalDist().inv_cdf(1 - chance) * math.sqrt(2) * ASSUMED_NOISE + math.log1p(margin)
        return tuple(name for name in left[MIN_LEFT:] if math.log(self.rate(left[0]) / self.rate(name)) > reach)


class Table(Cases[Name]):
    """Rates of one run under one load: case -> round -> requests/s.

    steps  case -> upper bound as a multiple of its rate, for rates found in steps: between the highest that held and a
           higher failed one; infinity if none failed
    """

    def __init__(self, rates: Mapping[Name, Mapping[int, float]], steps: Mapping[Name, float] | None = None):
        self._steps = {name: math.log(times) for name, times in (steps or {}).items()}
        self._logs: dict[Name, Logs] = {}
        for name, rounds in rates.items():
            if logs := {n: math.log(rate) for n, rate in rounds.items() if 0 < rate < math.inf}:
                self._logs[name] = logs

    @property
    def names(self) -> Sequence[Name]:
        """The cases with a rate, in the given order."""
        return list(self._logs)

    def repeated(self, case: Name) -> bool:
        """True if a case has more than one round."""
        return len(self._logs[case]) > 1

    def rate(self, case: Name) -> float:
        """Requests/s of a case: the geometric mean of its rounds, corrected for missing rounds."""
        rounds, effects = self._logs[case], self._fit.rounds
        usual = statistics.fmean(effects.values())
        return math.exp(statistics.fmean(log - effects.get(n, usual) for n, log in rounds.items()) + usual)

    def difference(self, case: Name, other: Name) -> Estimate:
        """Logarithm of a case's rate minus the logarithm of the other's, from common rounds."""
        one, two = self._logs[case], self._logs[other]
        if case == other:
            return Estimate(0.0, 0.0, math.inf)
        shared = one.keys() & two.keys()
        if not shared:
            return Estimate(math.log(self.rate(case) / self.rate(other)))
        estimate = statistics.fmean(one[n] - two[n] for n in shared)
        own = [self._own[name] for name in (case, other) if name in self._own]
        pooled = Noise(self._fit.noise.variance * (2 - len(own)), self._fit.noise.freedom)
        total = _sum([*own, pooled])
        less, more = self._steps.get(other, 0.0), self._steps.get(case, 0.0)
        return Estimate(estimate, total.variance / len(shared), total.freedom, less, more)

    def alone(self, case: Name) -> Estimate:
        """Logarithm of a case's rate by itself: faster and slower rounds count as noise, too.

        For a comparison with another run, which has other rounds.
        """
        count, effects = len(self._logs[case]), self._fit.rounds
        mean = statistics.fmean(self._logs[case].values())
        if count < 2 or len(effects) < 2:
            return Estimate(mean)
        parts = [Noise(statistics.variance(effects.values()), len(effects) - 1)]
        if self._fit.cases > 1:
            # The rounds were estimated from all cases, so that their variance has a part of the noise already.
            noise = self._own.get(case, self._fit.noise)
            parts.append(Noise(noise.variance * (1 - 1 / self._fit.cases), noise.freedom))
        total = _sum(parts)
        return Estimate(mean, total.variance / count, total.freedom, more=self._steps.get(case, 0.0))

    @property
    def _fit(self) -> Fit[Name]:
        return self._fitted[0]

    @property
    def _own(self) -> dict[Name, Noise]:
        return self._fitted[1]

    @cached_property
    def _fitted(self) -> tuple[Fit[Name], dict[Name, Noise]]:
        """The cases with the pooled noise, and the noise of each plainly noisier case."""
        apart: list[Name] = []
        fit = Fit(self._logs)
        while (name := fit.noisiest()) is not None:
            apart.append(name)
            fit = Fit({name: rounds for name, rounds in self._logs.items() if name not in apart})
        return fit, {name: fit.noise_of(self._logs[name]) for name in apart}


class GeometricMean(Cases[Name]):
    """The same cases in several tables, such as workloads, with equal weights.

    The rate is the geometric mean, so that a quick workload does not outweigh the others (Fleming and Wallace 1986).
    Cases without a rate in one of the tables are left out.
    """

    def __init__(self, tables: Sequence[Cases[Name]]):
        self._tables = tables

    @cached_property
    def names(self) -> Sequence[Name]:
        """The cases with a rate in each table."""
        in_all = set.intersection(*(set(table.names) for table in self._tables))
        return [name for name in self._tables[0].names if name in in_all]

    def repeated(self, case: Name) -> bool:
        """True if a case has more than one round in each table."""
        return all(table.repeated(case) for table in self._tables)

    def rate(self, case: Name) -> float:
        """The geometric mean of the case's requests/s."""
        return statistics.geometric_mean([table.rate(case) for table in self._tables])

    def difference(self, case: Name, other: Name) -> Estimate:
        """The mean of the differences in the tables."""
        parts = [table.difference(case, other) for table in self._tables]
        total = _sum([Noise(part.variance / len(parts) ** 2, part.freedom) for part in parts])
        return Estimate(
            statistics.fmean(part.value for part in parts),
            total.variance,
            total.freedom,
            statistics.fmean(part.less for part in parts),
            statistics.fmean(part.more for part in parts),
        )


def _sum(parts: Sequence[Noise]) -> Noise:
    """The noise of a sum, with degrees of freedom by Satterthwaite (1946); 0 if a part has none."""
    variance = sum(part.variance for part in parts)
    least = min(part.freedom for part in parts)
    if not least:
        return Noise(variance, 0.0)
    spent = sum(part.variance**2 / part.freedom for part in parts)
    if not spent:
        return Noise(variance, least)
    return Noise(variance, variance**2 / spent)


def _chance(cases: int, look: int | None) -> float:
    """Error probability of each bound, for 5 % in the whole decision (Bonferroni).

    Look k of a race spends 0.05 / (k (k + 1)): all looks together at most 5 %, whatever their number.
    """
    spent = 1 - CONFIDENCE
    if look:
        spent /= look * (look + 1)
    return spent / 2 / max(1, cases - 1)


def _exp(logarithm: float) -> float:
    """The ratio of a logarithm; infinity for values too large for a float."""
    if logarithm < MAX_LOGARITHM:
        return math.exp(logarithm)
    return math.inf

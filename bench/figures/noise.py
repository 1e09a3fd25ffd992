"""The noise of a run, estimated from all of its cases. Pure: a table of logarithms in, variances out.

A figure is the product of its case, its round and noise, so that logarithms add up: log(figure) = case + round + noise.
All cases share a round: a slow one slows them all. The residuals of this two-way analysis are the noise. Few rounds
say little about the noise of one case, but much about that of all cases together. The variance of each case is
moderated: drawn towards the one that all share, the more so the more alike they are (empirical Bayes, Smyth 2004).

Cells of the table may be missing, as after a voided trial: the fit is by weighted least squares.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)
Vector = Sequence[float]
Matrix = list[list[float]]

FITS = 2  # weights need variances, and variances a fit: the first fit has equal weights
ROUNDING = 1e-9  # what is smaller than this in relation to what it comes from is an error of rounding
# A residual variance below this share of the average is raised to it: none at all would be infinitely likely.
SMALLEST = 1e-5
# Degrees of freedom that the shared variance may be worth. At the first the cases are equally noisy. At the last, 2, a
# case in a hundred is ten times as noisy as the others: more than that is not believed from two rounds.
PRIORS = tuple(2 ** (half / 2) for half in range(20, 1, -1))
CONVERGED = 1e-4


@dataclass(frozen=True)
class CaseNoise:
    """One case of the table, on the scale of logarithms.

    mean       of its rounds
    shares     weight of each round of the table in that mean: 1 / (number of its rounds), 0 for a missing round
    variance   of one round, moderated
    freedom    degrees of freedom of the variance
    """

    mean: float
    shares: tuple[float, ...]
    variance: float
    freedom: float

    @property
    def count(self) -> int:
        """Number of its rounds."""
        return sum(share > 0 for share in self.shares)


@dataclass(frozen=True)
class Difference:
    """How far two cases are apart, on the scale of logarithms: an estimate, its variance and degrees of freedom."""

    estimate: float
    variance: float
    freedom: float


@dataclass(frozen=True)
class Noise(Generic[Name]):
    """The two-way analysis of a table.

    cases         name -> its noise
    variance      of one round of an average case
    freedom       degrees of freedom of all residuals together; 0 when the table shows nothing about noise
    effects       of the rounds, up to a constant
    information   about the effects, in units of 1 / variance
    inverse       a generalized inverse of the information
    """

    cases: dict[Name, CaseNoise]
    variance: float
    freedom: float
    effects: tuple[float, ...]
    information: Matrix
    inverse: Matrix

    def difference(self, case: Name, other: Name) -> Difference | None:
        """`case` minus `other`, free of the effects of the rounds; None when the table does not show it.

        Two cases without a shared round can be compared when other cases show how their rounds differ.
        """
        one, two = self.cases[case], self.cases[other]
        parts = [(it.variance / it.count, it.freedom) for it in (one, two)]
        freedom = min(self.freedom, satterthwaite(parts))
        estimate, variance = one.mean - two.mean, sum(part for part, _ in parts)
        uneven = [a - b for a, b in zip(one.shares, two.shares, strict=True)]
        if any(uneven):  # they were measured in different rounds
            weights = _times(self.inverse, uneven)
            if any(abs(a - b) > ROUNDING for a, b in zip(_times(self.information, weights), uneven, strict=True)):
                return None
            estimate -= _dot(uneven, self.effects)
            variance += self.variance * _dot(uneven, weights)
        return Difference(estimate, variance, freedom) if freedom else None


def noise_of(table: Mapping[Name, Mapping[int, float]]) -> Noise[Name]:
    """The noise of a table: case -> round -> logarithm of its figure. Each case needs a round."""
    rounds = sorted({number for cells in table.values() for number in cells})
    rows = [_Row([cells.get(number) for number in rounds]) for cells in table.values()]
    weights = [1.0] * len(rows)
    for _ in range(FITS):
        fit = _Fit(rows, weights)
        variance, prior = _prior(fit.squares, fit.freedoms)
        variances = [_moderated(*own, variance, prior) for own in zip(fit.squares, fit.freedoms, strict=True)]
        weights = [variance / own if own else 1.0 for own in variances]
    total = sum(fit.freedoms)
    cases = {
        name: CaseNoise(row.mean, row.shares, own, min(freedom + prior, total))
        for name, row, own, freedom in zip(table, rows, variances, fit.freedoms, strict=True)
    }
    return Noise(cases, variance, total, fit.effects, fit.information, fit.inverse)


def satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """Degrees of freedom of a sum of variances, from each variance and its own (Satterthwaite 1946)."""
    counted = [(variance, freedom) for variance, freedom in parts if variance]
    if not counted:
        return sum(freedom for _, freedom in parts)
    if not all(freedom for _, freedom in counted):
        return 0.0
    return sum(variance for variance, _ in counted) ** 2 / sum(variance**2 / freedom for variance, freedom in counted)


class _Row:
    """The logarithms of a case by round, None where one is missing."""

    def __init__(self, cells: Sequence[float | None]):
        known = [cell for cell in cells if cell is not None]
        self.count = len(known)
        self.mean = statistics.fmean(known)
        self.shares = tuple(0.0 if cell is None else 1 / self.count for cell in cells)
        self.deviations = [0.0 if cell is None else cell - self.mean for cell in cells]

    def information(self, weight: float) -> Matrix:
        """The information that this case has about the effects of the rounds."""
        return [
            [weight * self.count * ((share if i == j else 0.0) - share * other) for j, other in enumerate(self.shares)]
            for i, share in enumerate(self.shares)
        ]


class _Fit:
    """Weighted least squares of case + round: effects of the rounds, and what is left to each case.

    squares    residual sum of squares of each case
    freedoms   its degrees of freedom: its number of rounds less its leverages
    """

    def __init__(self, rows: Sequence[_Row], weights: Sequence[float]):
        parts = [row.information(weight) for row, weight in zip(rows, weights, strict=True)]
        self.information = [[sum(cells) for cells in zip(*lines, strict=True)] for lines in zip(*parts, strict=True)]
        self.inverse = generalized_inverse(self.information)
        pulls = [[weight * cell for cell in row.deviations] for row, weight in zip(rows, weights, strict=True)]
        self.effects = tuple(_times(self.inverse, [sum(cells) for cells in zip(*pulls, strict=True)]))
        self.squares = [self._squares(row) for row in rows]
        self.freedoms = [self._freedom(row, part) for row, part in zip(rows, parts, strict=True)]

    def _squares(self, row: _Row) -> float:
        shift = _dot(row.shares, self.effects)
        cells = zip(row.deviations, self.effects, row.shares, strict=True)
        return sum((deviation - effect + shift) ** 2 for deviation, effect, share in cells if share)

    def _freedom(self, row: _Row, information: Matrix) -> float:
        used = sum(_dot(line, other) for line, other in zip(self.inverse, information, strict=True))
        left = row.count - 1 - used
        return left if left > ROUNDING else 0.0


def _prior(squares: Vector, freedoms: Vector) -> tuple[float, float]:
    """The variance that all cases share, and how many degrees of freedom it is worth.

    Both by maximum likelihood: in Smyth's model a residual variance divided by the shared one is distributed as F. More
    stable for two rounds than his moments of logarithms, which one lucky pair of rounds upsets.
    """
    total = sum(freedoms)
    pooled = sum(squares) / total if total else 0.0
    known = [
        (max(square, SMALLEST * pooled * freedom), freedom)
        for square, freedom in zip(squares, freedoms, strict=True)
        if freedom
    ]
    if pooled == 0 or len(known) < 2:
        return pooled, math.inf
    variance = pooled
    found = []
    for prior in PRIORS:
        variance = _shared(known, prior, variance)
        found.append((_likelihood(known, prior, variance), variance, prior))
    _, variance, prior = max(found)
    return (pooled, math.inf) if prior == PRIORS[0] else (variance, prior)


def _shared(known: Sequence[tuple[float, float]], prior: float, variance: float) -> float:
    """The most likely shared variance for a prior: the harmonic mean of the moderated ones. By Newton's method."""
    for _ in range(50):
        shares = [((freedom + prior) * variance / (square + prior * variance), square) for square, freedom in known]
        slope = sum(share * square / (square + prior * variance) for share, square in shares)
        step = (len(known) - sum(share for share, _ in shares)) / slope
        variance *= math.exp(max(-1.0, min(step, 1.0)))
        if abs(step) < CONVERGED:
            break
    return variance


def _likelihood(known: Sequence[tuple[float, float]], prior: float, variance: float) -> float:
    """The logarithm of the likelihood of prior and variance, up to a constant."""
    return sum(
        math.lgamma((freedom + prior) / 2)
        - math.lgamma(prior / 2)
        + prior / 2 * math.log(prior * variance)
        - (freedom + prior) / 2 * math.log(square + prior * variance)
        for square, freedom in known
    )


def _moderated(squares: float, freedom: float, variance: float, prior: float) -> float:
    """The variance of a case, drawn towards the shared one."""
    return variance if math.isinf(prior) else (prior * variance + squares) / (prior + freedom)


def generalized_inverse(matrix: Matrix) -> Matrix:
    """A generalized inverse of a symmetric matrix without negative eigenvalues, by sweeping its pivots."""
    swept = [list(line) for line in matrix]
    size = range(len(swept))
    for k in size:
        pivot = swept[k][k]
        if pivot <= ROUNDING * matrix[k][k]:  # it depends on the rounds before
            for i in size:
                swept[i][k] = swept[k][i] = 0.0
            continue
        column = [swept[i][k] for i in size]
        for i in size:
            for j in size:
                if i != k and j != k:
                    swept[i][j] -= column[i] * column[j] / pivot
        for i in size:
            swept[i][k] = swept[k][i] = column[i] / pivot
        swept[k][k] = -1 / pivot
    return [[-cell for cell in line] for line in swept]


def _times(matrix: Matrix, vector: Vector) -> list[float]:
    return [_dot(line, vector) for line in matrix]


def _dot(one: Vector, two: Vector) -> float:
    return sum(a * b for a, b in zip(one, two, strict=True))

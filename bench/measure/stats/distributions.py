"""Quantiles of Student's t and tails of Fisher's F, missing in the standard library. Pure.

Tests compare both with SciPy, which is too large to install for two functions.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

PRECISION = 1e-10


@lru_cache(maxsize=4096)
def student(tail: float, freedom: float) -> float:
    """Upper quantile of Student's t with probability `tail` (above 0, below 0.5); any positive degrees of freedom.

    Infinity for values too large for a float, as with a hundredth of a degree of freedom.
    """
    try:
        return _student(tail, freedom)
    except OverflowError:
        return math.inf


def fisher_tail(ratio: float, freedom: float, other: float) -> float:
    """The probability of F above `ratio`, which must be positive: a variance with `freedom` to one with `other` degrees
    of freedom."""
    return _beta(other / (other + freedom * ratio), other / 2, freedom / 2)


def _student(tail: float, freedom: float) -> float:
    """Newton's method on logarithms converges: the logarithm of the tail is a concave function of the logarithm of
    t."""
    t = NormalDist().inv_cdf(1 - tail)
    for _ in range(100):
        beyond = _tail(t, freedom)
        step = (math.log(beyond) - math.log(tail)) * beyond / (t * _density(t, freedom))
        t *= math.exp(step)
        if abs(step) < PRECISION:
            break
    return t


def _tail(t: float, freedom: float) -> float:
    """The probability of Student's t above `t`, which must be positive."""
    return _beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


def _density(t: float, freedom: float) -> float:
    gammas = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    return math.exp(gammas - (freedom + 1) / 2 * math.log1p(t * t / freedom)) / math.sqrt(freedom * math.pi)


def _beta(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    gammas = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(gammas + a * math.log(x) + b * math.log1p(-x)) / a * _beta_fraction(x, a, b)


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction (DLMF 8.17.22) by Lentz's method."""
    value = c = 1.0
    d = 0.0
    for m in range(10_000):
        for term in (
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
            (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2)),
        ):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            value *= c * d
        if abs(c * d - 1) < PRECISION:
            break
    return 1 / value

"""What more web hosts would serve, projected from measured ones, or the reason why nothing is said. Pure.

Two laws bound the requests/s X of N hosts. The Universal Scalability Law (Gunther 1993) has three parameters: the rate
of one host, contention (what hosts wait for in turn) and coherency (what each has to agree on with every other):

    X = rate * N / (1 + contention * (N - 1) + coherency * N * (N - 1))

The other is the processors: no tier serves more requests than its processors have seconds for. What is projected is the
lower of both, as a band by parametric bootstrap. N / X is linear in its parameters, so that the fits to redrawn points
have a distribution that is known: it is drawn from. No host is said to serve more than one alone.

SciPy is imported by `project` alone, which nothing but `hosts project` needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.figures.stats import CONFIDENCE

MIN_POINTS = 6
MIN_NUMBERS = 3  # of hosts: as many as the law has parameters
FURTHEST = 2  # times the largest measured number
MAX_WIDTH = 2.0  # a band whose high end is more times its low end says nothing
MISFIT = 0.01  # chance below which points are not called scatter around the law
DRAWS = 4000
SEED = 1993


@dataclass(frozen=True)
class Point:
    """A trial: the number of web hosts, and the requests/s of all of them together."""

    hosts: int
    rate: float

    def __post_init__(self) -> None:
        if self.hosts < 1 or not self.rate > 0:
            raise ValueError(f"not a point: {self.rate} requests/s of {self.hosts} hosts")


@dataclass(frozen=True)
class Tier:
    """What a group of hosts spends.

    processors  cores of the whole tier, or of one of its hosts where it grows
    seconds     of processor time per request, a figure a trial
    grows       with the number of web hosts: it is the web tier
    """

    name: str
    processors: float
    seconds: tuple[float, ...]
    grows: bool = False

    def __post_init__(self) -> None:
        if not self.processors > 0 or not self.seconds or min(self.seconds) <= 0:
            raise ValueError(f"not a tier: {self}")


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % interval, each None where it has no end."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Projected:
    """What so many web hosts would serve.

    law    requests/s by the law alone
    bound  requests/s that the processors of the busiest tier allow, and that tier; None without costs per host
    low    the band of the lower of both
    """

    hosts: int
    law: float
    bound: float | None
    tier: str | None
    low: float
    high: float


@dataclass(frozen=True)
class Projection:
    """The law fitted to points, and what follows from it.

    refused    why nothing is projected; empty when something is
    residuals  of each point: its share above or below the law
    rows       of more hosts than were measured
    ends       why there are no rows up to twice the largest measured number; empty when there are
    """

    points: tuple[Point, ...]
    refused: str
    rate: Interval | None = None
    contention: Interval | None = None
    coherency: Interval | None = None
    residuals: tuple[float, ...] = ()
    rows: tuple[Projected, ...] = ()
    ends: str = ""


def project(points: Sequence[Point], tiers: Sequence[Tier] = ()) -> Projection:
    """The projection of these points, up to twice their largest number of hosts; the same each time."""
    points = tuple(sorted(points, key=lambda point: point.hosts))
    if reason := _too_few(points):
        return Projection(points, reason)
    fit = _Fit(points)
    rate, contention, coherency = (fit.interval(drawn) for drawn in (fit.rate, fit.contention, fit.coherency))
    found = Projection(points, fit.refused(), rate, contention, coherency, fit.off)
    if found.refused:
        return found
    largest = points[-1].hosts
    rows: list[Projected] = []
    for hosts in range(largest + 1, FURTHEST * largest + 1):
        row = fit.row(hosts, tiers)
        if row.high > MAX_WIDTH * row.low:
            wide = f"the band of {hosts} web hosts is too wide: it ends at more than {MAX_WIDTH:g} times its beginning"
            return replace(found, rows=tuple(rows), ends=wide) if rows else replace(found, refused=wide)
        rows.append(row)
    return replace(found, rows=tuple(rows))


def _too_few(points: Sequence[Point]) -> str:
    numbers = len({point.hosts for point in points})
    if len(points) >= MIN_POINTS and numbers >= MIN_NUMBERS:
        return ""
    need = f"it takes {MIN_POINTS} trials with {MIN_NUMBERS} different numbers of web hosts"
    return f"{need}, and there are {len(points)} with {numbers}"


class _Fit:
    """The law fitted to points by least squares of relative errors, and fits to redrawn points.

    N / X = a + b (N - 1) + c N (N - 1), where a is 1 / rate, b contention / rate and c coherency / rate.
    """

    def __init__(self, points: Sequence[Point]):
        import numpy
        from scipy import optimize

        self._numpy = numpy
        hosts = numpy.array([point.hosts for point in points], float)
        costs = hosts / numpy.array([point.rate for point in points])
        weights = costs
        for _ in range(2):  # weighted by the points, then by the law, so that low outliers do not weigh more
            best, covariance = optimize.curve_fit(_cost, hosts, costs, (costs[0], 0, 0), weights, jac=_slopes)
            weights = abs(_cost(hosts, *best))
        self._hosts, self._freedom = hosts, len(points) - len(best)
        self.off = tuple(float(share) for share in _cost(hosts, *best) / costs - 1)
        draw = numpy.random.default_rng(SEED)
        scale = numpy.sqrt(self._freedom / draw.chisquare(self._freedom, DRAWS))
        redrawn = draw.multivariate_normal((0, 0, 0), covariance, DRAWS, method="eigh")
        # The estimate comes first, then the draws.
        self._a, self._b, self._c = numpy.vstack([best, best + redrawn * scale[:, None]]).T
        with numpy.errstate(divide="ignore", invalid="ignore"):
            self.rate = numpy.where(self._a > 0, 1 / self._a, numpy.inf)
            self.contention, self.coherency = self._b / self._a, self._c / self._a
        self._draw = draw

    def interval(self, drawn: Any) -> Interval:
        """The estimate, which is the first of the drawn figures, and the interval of the others."""
        low, high = self._ends(drawn)
        return Interval(float(drawn[0]), *(end if abs(end) < float("inf") else None for end in (low, high)))

    def _ends(self, drawn: Any) -> tuple[float, float]:
        outside = (1 - CONFIDENCE) / 2
        low = self._numpy.quantile(drawn[1:], outside, method="lower")
        return float(low), float(self._numpy.quantile(drawn[1:], 1 - outside, method="higher"))

    def refused(self) -> str:
        """Why the interval of a parameter holds nothing, or an empty string."""
        if not self._ends(self._a)[0] > 0:
            return "unidentified: the interval of one host's requests/s has no upper end"
        for name, drawn in (("contention", self.contention), ("coherency", self.coherency)):
            low, high = self._ends(drawn)
            if high < 0:
                more = "the requests/s grow faster than the number of hosts, or do not follow the law"
                return f"the interval of {name} is negative, {low:.2g} to {high:.2g}: {more}"
        low, high = self._ends(self.contention)
        if low <= 0 and high >= 1:
            return f"the interval of contention is too wide: {low:.2g} to {high:.2g} covers all from 0 to 1"
        return self._misfit()

    def _misfit(self) -> str:
        """Why the points are not scatter around the law: their means are further off it than trials are apart."""
        from scipy import stats

        numbers = Counter(self._hosts)
        between, within = len(numbers) - MIN_NUMBERS, len(self._hosts) - len(numbers)
        if not between or not within:
            return ""
        off = self._numpy.array(self.off)
        groups = (off[self._hosts == hosts] for hosts in numbers)
        apart = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
        beyond = float((off**2).sum()) - apart
        if not apart or stats.f.sf(beyond / between * within / apart, between, within) >= MISFIT:
            return ""
        return (
            "the law does not describe them: the means of the numbers of hosts lie further from it than trials scatter"
        )

    def row(self, hosts: int, tiers: Sequence[Tier]) -> Projected:
        """What so many hosts would serve."""
        costs = self._a + self._b * (hosts - 1) + self._c * hosts * (hosts - 1)
        with self._numpy.errstate(divide="ignore"):
            law = self._numpy.where(costs > 0, hosts / costs, self._numpy.inf)
        bounds = {tier.name: self._bound(tier) * (hosts if tier.grows else 1) for tier in tiers}
        lower = self._numpy.minimum.reduce([law, *bounds.values()])
        low, high = self._ends(lower)
        busiest = min(bounds, key=lambda name: bounds[name][0], default=None)
        bound = None if busiest is None else float(bounds[busiest][0])
        # No host serves more than one alone, whatever the law says.
        most = hosts * self._ends(self.rate)[1]
        estimate = float(min(law[0], hosts * self.rate[0]))
        return Projected(hosts, estimate, bound, busiest, min(low, most), min(high, most))

    def _bound(self, tier: Tier) -> Any:
        """Requests/s that a tier's processors allow: by the mean cost of its trials, and by means as likely as that."""
        logs = self._numpy.log(tier.seconds)
        free = len(logs) - 1
        draws = self._draw.standard_t(free, DRAWS) * logs.std(ddof=1) / len(logs) ** 0.5 if free else [0] * DRAWS
        return tier.processors / self._numpy.exp(logs.mean() + self._numpy.concatenate([[0], draws]))


def _cost(hosts: Any, a: float, b: float, c: float) -> Any:
    """Seconds of one host for a request, N / X."""
    return _slopes(hosts, a, b, c) @ (a, b, c)


def _slopes(hosts: Any, *_: float) -> Any:
    """By how much that cost grows with each of its parameters."""
    import numpy

    return numpy.stack([hosts**0, hosts - 1, hosts * (hosts - 1)], axis=1)

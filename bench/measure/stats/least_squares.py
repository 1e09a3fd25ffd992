"""Least squares of log(rate) = case + round + noise, and detection of a plainly noisier case. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from bench.measure.stats.distributions import fisher_tail

Name = TypeVar("Name", bound=Hashable)
Logs = dict[int, float]  # round -> logarithm of its rate

# Probability of mistaking a case for a noisier one under equal noise, for each of its degrees of freedom, up to the
# maximum. Two rounds hardly tell, and each mistake makes the pooled noise look smaller.
PLAINLY, MAX_PLAINLY = 0.002, 0.02
# Least squares with missing cells: sweeps until a round moves by less.
SWEEPS, SMALLEST_MOVE = 500, 1e-12


@dataclass(frozen=True)
class Noise:
    """The variance of a logarithm and its degrees of freedom."""

    variance: float
    freedom: float


class Fit(Generic[Name]):
    """Least squares of case + round for cases of equal noise.

    rounds  round -> effect on all cases
    noise   pooled over the cases
    cases   number of cases
    """

    def __init__(self, logs: Mapping[Name, Logs]):
        self._logs = logs
        self.cases = len(logs)
        self.rounds = _effects(logs)
        # Sum of squares of each case.
        self._squares: dict[Name, float] = {}
        for name, rounds in logs.items():
            own = self.noise_of(rounds)
            self._squares[name] = own.variance * own.freedom
        self._total = sum(self._squares.values())
        cells = sum(map(len, logs.values()))
        freedom = cells - len(logs) - len(self.rounds) + _parts(logs)
        self.noise = Noise(0.0, freedom)
        if freedom:
            self.noise = Noise(self._total / freedom, freedom)

    def noisiest(self) -> Name | None:
        """The plainly noisiest case; None without one, or with too few cases to tell."""
        count = sum(len(rounds) > 1 for rounds in self._logs.values())
        if count < 3:
            return None
        chances = {}
        for name, rounds in self._logs.items():
            # As if the others were fitted without this case: of a whole table these are the very sums of squares.
            squares, freedom = self._squares[name] * count / (count - 1), len(rounds) - 1
            others, left = self._total - squares, self.noise.freedom - freedom
            if freedom and left > 0 and squares * left > others * freedom:
                chances[name] = 0.0
                if others > 0:
                    chances[name] = fisher_tail(squares / freedom / (others / left), freedom, left)
        candidate = min(chances, key=chances.__getitem__, default=None)
        if candidate is None or chances[candidate] >= min(PLAINLY * (len(self._logs[candidate]) - 1), MAX_PLAINLY):
            return None
        return candidate

    def noise_of(self, rounds: Logs) -> Noise:
        """The noise of one case, in the fit or not, by its distance to the fitted cases in each round."""
        left = [log - self.rounds[n] for n, log in rounds.items() if n in self.rounds]
        if len(left) > 1:
            return Noise(statistics.variance(left), len(left) - 1)
        return Noise(0.0, 0)


def _effects(logs: Mapping[Name, Logs]) -> Logs:
    """Round -> effect. One sweep is exact without missing rounds; otherwise it approaches the least squares."""
    numbers = sorted(set[int]().union(*logs.values()))
    effects = dict.fromkeys(numbers, 0.0)
    for _ in range(SWEEPS):
        left: dict[int, list[float]] = {n: [] for n in numbers}
        for rounds in logs.values():
            level = statistics.fmean(log - effects[n] for n, log in rounds.items())
            for n, log in rounds.items():
                left[n].append(log - level)
        improved = {n: statistics.fmean(values) for n, values in left.items()}
        move = max((abs(improved[n] - effects[n]) for n in numbers), default=0.0)
        effects = improved
        if move < SMALLEST_MOVE:
            break
    return effects


def _parts(logs: Mapping[Name, Logs]) -> int:
    """Number of parts of the table that share neither a case nor a round."""
    parts: list[set[int]] = []
    for rounds in logs.values():
        joined = set(rounds).union(*(part for part in parts if part & rounds.keys()))
        parts = [part for part in parts if not part & rounds.keys()] + [joined]
    return len(parts)

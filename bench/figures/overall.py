"""The same cases in several tables, as one figure each. Pure.

A case's figure over several workloads is the geometric mean of its figures on each of them: ratios count, so that no
workload outweighs the others because it is quick (Fleming and Wallace 1986, Communications of the ACM 29:218). On the
scale of logarithms that is a mean, and the noise of the tables adds up.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

from bench.figures.noise import CaseNoise, Difference, Name, Noise, satterthwaite


@dataclass(frozen=True)
class Overall(Generic[Name]):
    """The noise of one or several tables together; of cases that are in each of them."""

    tables: Sequence[Noise[Name]]

    @cached_property
    def cases(self) -> dict[Name, CaseNoise]:
        """Name -> its mean over the tables, with the rounds of the table that has the fewest of them."""
        shared = [name for name in self.tables[0].cases if all(name in table.cases for table in self.tables)]
        return {name: self._case([table.cases[name] for table in self.tables]) for name in shared}

    @staticmethod
    def _case(parts: Sequence[CaseNoise]) -> CaseNoise:
        count = min(part.count for part in parts)
        variance = sum(part.variance for part in parts) / len(parts) ** 2
        freedom = min(part.freedom for part in parts)
        return CaseNoise(statistics.fmean(part.mean for part in parts), (1 / count,) * count, variance, freedom)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the table that has the fewest; 0 when one of them shows nothing about noise."""
        return min(table.freedom for table in self.tables)

    def difference(self, case: Name, other: Name) -> Difference | None:
        """`case` minus `other`; None when one of the tables does not show it."""
        parts = [found for table in self.tables if (found := table.difference(case, other))]
        count = len(self.tables)
        if len(parts) < count:
            return None
        variances = [(part.variance / count**2, part.freedom) for part in parts]
        estimate = statistics.fmean(part.estimate for part in parts)
        return Difference(estimate, sum(variance for variance, _ in variances), satterthwaite(variances))

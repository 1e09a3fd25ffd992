"""Which cases go on to the next round, and when the best of them is decided. Pure: figures in, names out.

A race is a successive elimination (Even-Dar, Mannor and Mansour 2006, JMLR 7:1079): after each round the
cases that cannot be the best any more are dropped, and the others go on. Every round is one more look at the figures
and one more chance to err. Each look may spend an equal share of the 5 % (the simplest spending of alpha, Lan and
DeMets 1983, Biometrika 70:659), which holds by the union bound whenever the race stops and whichever cases are left.

The best over several tables, such as workloads, is that of the geometric mean (bench.figures.overall).

One round shows no noise. The first look assumes more than a trial has that its guards do not void: FIRST_NOISE.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Generic

from bench.figures.noise import Name, noise_of
from bench.figures.overall import Overall
from bench.figures.ratios import MARGIN, standings, tail

# Noise of a figure that the first look reckons with: one standard deviation of its logarithm.
FIRST_NOISE = 0.25
# As many cases the first look leaves in the race at least: a second round of one case alone would show no noise.
MIN_LEFT = 4

Table = Mapping[Name, Mapping[int, float]]


@dataclass(frozen=True)
class Race(Generic[Name]):
    """A race after some of its rounds.

    dropped  case -> the round after which it could not be the best any more
    leads    whether one case is left
    ties     whether the cases that are left differ by no more than the margin
    """

    dropped: dict[Name, int]
    leads: bool = False
    ties: bool = False

    @property
    def decided(self) -> bool:
        """Whether no more rounds are needed."""
        return self.leads or self.ties


def look(
    tables: Sequence[Table[Name]], before: Race[Name], number: int, looks: int, margin: float = MARGIN
) -> Race[Name]:
    """The race after its round `number`, as it was `before`; it takes at most as many `looks`.

    Each of the `tables`: case -> round -> logarithm of its figure, of the rounds made so far. A case without a figure
    in one of them takes no part.
    The same figures give the same race: a run that is resumed goes on as it would have gone on.
    """
    names = [name for name in tables[0] if all(table.get(name) for table in tables)]
    if len(names) < 2:
        return Race({}, leads=any(all(len(table[name]) > 1 for table in tables) for name in names))
    parts = [noise_of({name: cells for name, cells in table.items() if cells}) for table in tables]
    noise, chance = parts[0] if len(parts) == 1 else Overall(parts), tail(len(names), looks)
    if not noise.freedom:
        # Figures of different rounds cannot be compared before it is known how the rounds differ.
        one_round = all(len(part.effects) == 1 for part in parts)
        first = {name: noise.cases[name].mean for name in names} if one_round else {}
        return Race({**before.dropped, **dict.fromkeys(_far_behind(first, chance, margin), number)})
    found = standings(noise, [name for name in names if name not in before.dropped], margin, chance)
    dropped = {**dict.fromkeys(found.slower, number), **before.dropped}
    ties = all(found.ratios[name].high <= 1 + margin for name in (found.leader, *found.tied))
    return Race(dropped, leads=not found.tied, ties=ties and bool(found.tied))


def _far_behind(first: Mapping[Name, float], chance: float, margin: float) -> list[Name]:
    """The cases that are slower than the best even with the noise that is assumed."""
    reach = NormalDist().inv_cdf(1 - chance) * math.sqrt(2) * FIRST_NOISE
    best = max(first.values(), default=0.0)
    kept = heapq.nlargest(MIN_LEFT, first, key=first.__getitem__)
    far = [name for name, value in first.items() if best - value > reach + math.log1p(margin)]
    return [name for name in far if name not in kept]

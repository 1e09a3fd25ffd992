"""Simulate runs whose truth is known: how often is a false winner named, and how often is the fastest found?

    python -m tests.proofs.verdicts [--runs 500] [--seed 1]

A run is a table of cases and rounds. Each round is 20 % (one standard deviation) faster or slower for all of its cases,
and each figure has noise of its own. The verdicts are those of the report. With equal cases the margin is 0, so that it
hides nothing.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from dataclasses import dataclass

from bench.cli.options import count
from bench.figures.noise import noise_of
from bench.figures.ratios import MARGIN, standings

NOISE = 0.05
ROUND_NOISE = 0.2
CASES = 12
MAX_FALSE = 0.05  # share of runs that may name a false winner
CHANCE = 3  # standard errors by which a simulated share may exceed that
MAX_RUNS = 10_000


@dataclass(frozen=True)
class Scenario:
    """Runs of one kind.

    fastest   how many times the figure of the others that of the first case is; 1 when all are equal
    noise     of each case, one standard deviation of a figure's logarithm
    missing   share of voided trials
    found     share of runs that must find the fastest
    """

    name: str
    noise: tuple[float, ...]
    rounds: int
    fastest: float = 1.0
    missing: float = 0.0
    found: float | None = None

    @property
    def margin(self) -> float:
        """The margin of the verdicts."""
        return 0.0 if self.fastest == 1 else MARGIN


@dataclass(frozen=True)
class Shares:
    """Shares of the runs: that named a false winner, named the true one, and called the first case slower."""

    runs: int
    false: float
    found: float
    dropped: float

    def passes(self, scenario: Scenario) -> bool:
        """Whether the verdicts are right often enough."""
        error = math.sqrt(MAX_FALSE * (1 - MAX_FALSE) / self.runs)
        return self.false <= MAX_FALSE + CHANCE * error and (scenario.found is None or self.found >= scenario.found)


EVEN = (NOISE,) * CASES
THIRD = (2 * NOISE,) * (CASES // 3) + (NOISE,) * (CASES - CASES // 3)
SPREAD = tuple(0.02 * 1.25**index for index in range(CASES))
ONE = (NOISE,) * (CASES - 1) + (4 * NOISE,)

UNEQUAL = {
    "even noise": EVEN,
    "a third twice as noisy": THIRD,
    "noise from 2 to 23 %": SPREAD,
    "one four times as noisy": ONE,
}

SCENARIOS = [
    *(
        Scenario(f"{CASES} equal, {name}", noise, rounds, missing=missing)
        for name, noise in UNEQUAL.items()
        for rounds, missing in ((2, 0.0), (3, 0.0), (3, 0.15), (5, 0.0), (10, 0.0))
    ),
    *(Scenario(f"{few} equal, even noise", EVEN[:few], rounds) for few in (2, 3, 4) for rounds in (2, 5)),
    *(Scenario(f"{few} equal, one four times as noisy", ONE[-few:], rounds) for few in (2, 3, 4) for rounds in (2, 5)),
    Scenario("1.3 times, even noise", EVEN, 3, 1.3, found=0.8),
    Scenario("1.3 times, even noise", EVEN, 5, 1.3, found=0.95),
    Scenario("twice, even noise", EVEN, 2, 2.0, found=0.9),
    Scenario("twice, even noise", EVEN, 2, 2.0, missing=0.1, found=0.9),
    Scenario("twice, it and others twice as noisy", THIRD, 2, 2.0, found=0.9),
    Scenario("twice, others twice as noisy", THIRD[::-1], 2, 2.0, found=0.9),
]


def main(arguments: list[str] | None = None) -> int:
    """Simulate and print a table; 0 when every line keeps its bound."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.verdicts", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=count, default=500, metavar="N", help="of each line (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="default: %(default)s")
    args = parser.parse_args(arguments)
    print(f"{'runs of':44} {'rounds':>6} {'voided':>6} {'false winner':>12} {'found':>6} {'bound':>6} {'dropped':>7}")
    failed = 0
    for scenario in SCENARIOS:
        outcome = simulate(scenario, min(args.runs, MAX_RUNS), args.seed)
        failed += not outcome.passes(scenario)
        print(line(scenario, outcome), flush=True)
    print(
        f"{len(SCENARIOS) - failed} of {len(SCENARIOS)} lines keep their bound: at most {MAX_FALSE:.0%} false winners"
    )
    return 1 if failed else 0


def line(scenario: Scenario, outcome: Shares) -> str:
    """A line of the table."""
    found, bound = ("", "") if scenario.found is None else (f"{outcome.found:.1%}", f"{scenario.found:.0%}")
    return (
        f"{scenario.name:44} {scenario.rounds:6} {scenario.missing:6.0%} {outcome.false:12.1%} {found:>6} {bound:>6} "
        f"{outcome.dropped:7.1%}{'' if outcome.passes(scenario) else '  MISSED'}"
    )


def simulate(scenario: Scenario, runs: int, seed: int) -> Shares:
    """Judge simulated runs."""
    draw = random.Random(f"{seed} {scenario}")
    false = found = dropped = 0
    for _ in range(runs):
        table = simulated(draw, scenario)
        judged = standings(noise_of(table), list(table), scenario.margin)
        wins = judged.leader == 0 and scenario.fastest > 1
        found += wins and not judged.tied
        false += not wins and not judged.tied
        dropped += 0 in judged.slower
    return Shares(runs, false / runs, found / runs, dropped / runs)


def simulated(draw: random.Random, scenario: Scenario) -> dict[int, dict[int, float]]:
    """The table of one run: case -> round -> logarithm."""
    machine = [draw.gauss(0, ROUND_NOISE) for _ in range(scenario.rounds)]
    table = {}
    for case, noise in enumerate(scenario.noise):
        level = math.log(scenario.fastest) if case == 0 else 0.0
        cells = {number: level + speed + draw.gauss(0, noise) for number, speed in enumerate(machine)}
        table[case] = _voided(draw, cells, scenario.missing)
    return table


def _voided(draw: random.Random, cells: dict[int, float], share: float) -> dict[int, float]:
    """The cells that are left; all of them where none would be."""
    return {number: cell for number, cell in cells.items() if draw.random() >= share} or cells


if __name__ == "__main__":
    sys.exit(main())

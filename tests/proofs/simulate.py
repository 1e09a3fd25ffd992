"""Simulate runs whose truth is known: how often is an interval right, and how often is a false leader named?

    python -m tests.proofs.simulate [--runs 500] [--seed 1] [--world drift]

The cases are equal. A run is a race with a margin of 0, which hides nothing: after each round a look drops cases. The
same rounds without drops give the interval of the first case to the second. Some worlds are not as the model assumes
them (bench.measure.stats.table): there the figures say how much it matters.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.measure.stats import Table
from bench.words import INCONCLUSIVE, LEADS
from tests.proofs.arguments import count

ROUND_NOISE = 0.2
MAX_FALSE = 0.05
# Standard errors by which a simulated share may miss its bound.
ERRORS = 3

Draw = random.Random
Rates = dict[int, dict[int, float]]
World = Callable[[Draw, int, int, float], list[float]]  # of one round: draw, number of cases, round, noise


def normal(draw: Draw, cases: int, _round: int, noise: float) -> list[float]:
    """As the model assumes it."""
    return [draw.gauss(0, noise) for _ in range(cases)]


def one_noisy(draw: Draw, cases: int, number: int, noise: float) -> list[float]:
    """The first case is three times as noisy as the others."""
    first, *others = normal(draw, cases, number, noise)
    return [3 * first, *others]


def third_noisy(draw: Draw, cases: int, number: int, noise: float) -> list[float]:
    """Every third case is three times as noisy."""
    return [3 * e if case % 3 == 0 else e for case, e in enumerate(normal(draw, cases, number, noise))]


def heavy_tails(draw: Draw, cases: int, _round: int, noise: float) -> list[float]:
    """Student's t with three degrees of freedom: now and then a trial is far off."""
    return [noise * draw.gauss(0, 1) / math.sqrt(draw.gammavariate(1.5, 2)) for _ in range(cases)]


def bad_round(draw: Draw, cases: int, number: int, noise: float) -> list[float]:
    """In the second round half of the cases, drawn at random, lose four times the noise, as to a backup that runs."""
    errors = normal(draw, cases, number, noise)
    hit = set(draw.sample(range(cases), cases // 2)) if number == 2 else set()
    return [e - 4 * noise if case in hit else e for case, e in enumerate(errors)]


def drift(draw: Draw, cases: int, _round: int, noise: float) -> list[float]:
    """The machine slows down by six times the noise in each round, and the order of the cases is drawn at random."""
    order = draw.sample(range(cases), cases)
    return [draw.gauss(0, noise) - 6 * noise * order[case] / max(1, cases - 1) for case in range(cases)]


def skewed(draw: Draw, cases: int, _round: int, noise: float) -> list[float]:
    """Disturbances only slow down: trials are never faster than possible."""
    return [-draw.expovariate(1 / noise) for _ in range(cases)]


WORLDS: dict[str, World] = {
    "normal": normal,
    "one noisy": one_noisy,
    "a third noisy": third_noisy,
    "heavy tails": heavy_tails,
    "bad round": bad_round,
    "drift": drift,
    "skewed": skewed,
}
# World -> number of rounds -> the share of intervals that must be right. Few rounds do not show one noisy case.
COVERED = {
    "normal": {2: 0.94, 3: 0.94, 5: 0.94, 10: 0.94},
    "one noisy": {5: 0.86, 10: 0.91},
}


@dataclass(frozen=True)
class Scenario:
    """Runs of one kind; `discarded` is the share of trials that guards discard."""

    world: str
    cases: int
    rounds: int
    noise: float = 0.05
    discarded: float = 0.0


@dataclass(frozen=True)
class Shares:
    """Shares of the runs: whose interval is right, and which name a leader among equals."""

    runs: int
    covered: float
    false: float

    def problems(self, scenario: Scenario) -> Iterator[str]:
        """The figures that miss their bound by more than chance explains."""
        least = COVERED.get(scenario.world, {}).get(scenario.rounds, 0.0)
        if self.covered < least - ERRORS * math.sqrt(least * (1 - least) / self.runs):
            yield f"fewer than {least:.0%} right"
        if self.false > MAX_FALSE + ERRORS * math.sqrt(MAX_FALSE * (1 - MAX_FALSE) / self.runs):
            yield f"more than {MAX_FALSE:.0%} false"


SCENARIOS = [
    *(Scenario(world, cases, rounds) for world in WORLDS for cases in (2, 3, 8, 40) for rounds in (2, 3, 5, 10)),
    *(Scenario("normal", 8, rounds, noise) for rounds in (2, 5) for noise in (0.01, 0.2)),
    *(Scenario("normal", cases, rounds, discarded=0.15) for cases in (2, 8) for rounds in (3, 10)),
]


def simulate(scenario: Scenario, runs: int, seed: int) -> Shares:
    """Simulate so many runs."""
    draw = random.Random(f"{seed} {scenario}")
    samples = [drawn(draw, scenario) for _ in range(runs)]
    covered = sum(low <= 1 <= high for _, low, high in (Table(rates).ratio(0, 1) for rates in samples))
    return Shares(runs, covered / runs, sum(race(rates, scenario.rounds) for rates in samples) / runs)


def drawn(draw: Draw, scenario: Scenario) -> Rates:
    """Case -> round -> requests/s of one run."""
    rates: Rates = {case: {} for case in range(scenario.cases)}
    for number in range(1, scenario.rounds + 1):
        speed = draw.gauss(5, ROUND_NOISE)
        for case, error in enumerate(WORLDS[scenario.world](draw, scenario.cases, number, scenario.noise)):
            if draw.random() >= scenario.discarded or not rates[case]:
                rates[case][number] = math.exp(speed + error)
    return rates


def race(rates: Rates, rounds: int) -> bool:
    """True if a race on these rates names a leader."""
    dropped: set[int] = set()
    last = dict.fromkeys(rates, rounds)
    for number in range(1, rounds + 1):
        so_far = {
            case: {n: rate for n, rate in row.items() if n <= min(number, last[case])} for case, row in rates.items()
        }
        decision = Table(so_far).decide(0.0, number, dropped)
        last.update(dict.fromkeys(set(decision.slower) - dropped, number))
        dropped |= set(decision.slower)
        if decision.verdict != INCONCLUSIVE:
            return decision.verdict == LEADS
    return False


def main(arguments: list[str] | None = None) -> int:
    """Simulate and print a table; 0 when every line keeps its bounds."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.simulate", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=count(), default=500, metavar="N", help="of each line (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="default: %(default)s")
    parser.add_argument("--world", choices=WORLDS, help="only this one")
    args = parser.parse_args(arguments)
    print(f"{'world':14} {'cases':>5} {'rounds':>6} {'noise':>6} {'discarded':>6} {'right':>6} {'false leader':>12}")
    failed = 0
    for it in SCENARIOS:
        if args.world in (None, it.world):
            result = simulate(it, args.runs, args.seed)
            problems = ", ".join(result.problems(it))
            failed += bool(problems)
            shares = f"{result.covered:6.1%} {result.false:12.1%}"
            print(f"{it.world:14} {it.cases:5} {it.rounds:6} {it.noise:6.0%} {it.discarded:6.0%} {shares}  {problems}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

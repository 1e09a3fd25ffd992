"""Simulate reproductions whose truth is known: how often is a claim judged falsely, and how often is it decided?

    python -m tests.proofs.claims [--runs 2000] [--seed 1]

A claim says that one case is at least as fast as another. Its truth is beyond that bound, on it, or short of it. The
claim is judged after the planned rounds and, while it is open, after as many again, as `reproduce` does.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from dataclasses import dataclass

from bench.cli.options import count
from bench.figures.ratios import AT_EACH_LOOK, CHANCE, Ratio, paired
from bench.results.reproduction import LOOKS
from tests.proofs.verdicts import CHANCE as ERRORS
from tests.proofs.verdicts import MAX_RUNS, ROUND_NOISE

HOLDS, NOT, OPEN = "holds", "does not hold", "open"


@dataclass(frozen=True)
class Scenario:
    """Claims of one kind: `truth` is the ratio of the cases, each figure has so much `noise`, of so many `rounds`."""

    rounds: int
    noise: float
    truth: float


# At a truth on the bound no verdict is right; that it holds would be the error of one end, and so would the other.
SCENARIOS = [
    Scenario(rounds, noise, truth) for rounds in (3, 5) for noise in (0.02, 0.1, 0.2) for truth in (0.8, 1.0, 1.1, 1.5)
]


def main(arguments: list[str] | None = None) -> int:
    """Simulate and print a table; 0 when false verdicts are rare enough."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.claims", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=count, default=1000, metavar="N", help="of each line (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="default: %(default)s")
    args = parser.parse_args(arguments)
    runs, failed = min(args.runs, MAX_RUNS), 0
    print(f"{'rounds':>6} {'noise':>6} {'truth':>6} {'first look':>22} {'with added rounds':>26}")
    print(f"{'':>20} {'false':>10} {'decided':>11} {'false':>10} {'decided':>9} {'rounds':>8}")
    for scenario in SCENARIOS:
        once = [judged(random.Random(f"{args.seed} {scenario} {run}"), scenario, looks=1) for run in range(runs)]
        more = [judged(random.Random(f"{args.seed} {scenario} {run}"), scenario, LOOKS) for run in range(runs)]
        wrong = false_share(scenario, more)
        missed = wrong > CHANCE + ERRORS * math.sqrt(CHANCE * (1 - CHANCE) / runs)
        failed += missed
        cells = [f"{scenario.rounds:6} {scenario.noise:6.0%} {scenario.truth:6.2f}"]
        cells += [f"{false_share(scenario, once):10.1%} {_decided(once):11.1%} {wrong:10.1%} {_decided(more):9.1%}"]
        cells += [f"{sum(made for _, made in more) / runs:8.1f}{'  MISSED' if missed else ''}"]
        print(" ".join(cells), flush=True)
    return 1 if failed else 0


def judged(draw: random.Random, scenario: Scenario, looks: int) -> tuple[str, int]:
    """The verdict on one claim that is judged so many times at most, and the rounds that were made."""
    left: dict[int, float] = {}
    right: dict[int, float] = {}
    for look in range(1, looks + 1):
        for number in range(len(left) + 1, look * scenario.rounds + 1):
            speed = draw.gauss(0, ROUND_NOISE)
            left[number] = scenario.truth * math.exp(speed + draw.gauss(0, scenario.noise))
            right[number] = math.exp(speed + draw.gauss(0, scenario.noise))
        ratio = paired(right, left, chance=AT_EACH_LOOK[looks])
        if ratio and (verdict := _verdict(ratio)) != OPEN:
            return verdict, len(left)
    return OPEN, len(left)


def _verdict(ratio: Ratio) -> str:
    if ratio.low >= 1:
        return HOLDS
    return NOT if ratio.high < 1 else OPEN


def false_share(scenario: Scenario, found: list[tuple[str, int]]) -> float:
    """The share of verdicts that are false; of a truth on the bound those that err to one side."""
    false = NOT if scenario.truth >= 1 else HOLDS
    return sum(verdict == false for verdict, _ in found) / len(found)


def _decided(found: list[tuple[str, int]]) -> float:
    return sum(verdict != OPEN for verdict, _ in found) / len(found)


if __name__ == "__main__":
    sys.exit(main())

"""Simulate runs until decided whose truth is known: how often is the best case dropped, and how often is it named?

    python -m tests.proofs.races [--runs 100] [--seed 1] [--cases 143]

A run is a race of cases: the first is the best, by 1.3 times or 2 %. Each round is 20 % (one standard deviation) faster
or slower for all of its cases, and each figure has noise of its own. With two workloads each case is up to ten times
better at one of them, and the best is that of the geometric mean. The race is that of `run --until decided`, with its
number of rounds.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from dataclasses import dataclass

from bench.cli.options import count
from bench.figures.race import Race, look
from bench.measure.begin import ROUNDS_UNTIL_DECIDED
from tests.proofs.verdicts import MAX_FALSE, MAX_RUNS, ROUND_NOISE

NEAR, APART = 1.02, 1.3
TILTS = 10.0
# Noise of a case -> share of runs in which the best must be named when it is 1.3 times as fast.
FOUND = {0.01: 1.0, 0.05: 0.99, 0.1: 0.9}
# The same where so many cases are all as far behind: each of them has to be beaten, and some are lucky.
MANY, FOUND_OF_MANY = 100, {**FOUND, 0.1: 0.75}


@dataclass(frozen=True)
class Scenario:
    """Races of one kind.

    noise    of each case, one standard deviation of a figure's logarithm
    fastest  how many times the figure of the next that of the first case is
    spread   of the other cases: the slowest is so many times slower than the next
    missing  share of voided trials
    found    share of runs that must name the first case
    tilts    how much better a case may be at one of two workloads; 1: there is one workload
    """

    name: str
    noise: tuple[float, ...]
    fastest: float = NEAR
    spread: float = 1.0
    missing: float = 0.0
    found: float | None = None
    tilts: float = 1.0


@dataclass(frozen=True)
class Shares:
    """Shares of the runs: that dropped the best, named it, named a tie, and left it open; and what they cost.

    trials  as a share of those that all rounds of all cases would take
    """

    runs: int
    dropped: float
    found: float
    tied: float
    open: float
    trials: float

    def passes(self, scenario: Scenario) -> bool:
        """Whether the best was kept and named often enough."""
        return self.dropped <= MAX_FALSE and self.found >= (scenario.found or 0)


def even(cases: int, noise: float, **how: float) -> Scenario:
    """Cases of equal noise."""
    return Scenario(f"{cases} cases, noise {noise:.0%}", (noise,) * cases, **how)


def uneven(cases: int, **how: float) -> Scenario:
    """Cases of which every third has 20 % noise, and the others less, down to 1 %."""
    noise = tuple((0.2, 0.01, 0.05)[index % 3] for index in range(cases))
    return Scenario(f"{cases} cases, noise 1 to 20 %", noise, **how)


def two_workloads(cases: int, noise: float, **how: float) -> Scenario:
    """Cases of equal noise on two workloads."""
    return Scenario(f"{cases} cases, 2 workloads, noise {noise:.0%}", (noise,) * cases, tilts=TILTS, **how)


def scenarios(cases: int) -> list[Scenario]:
    """What is simulated of so many cases."""
    found = FOUND_OF_MANY if cases > MANY else FOUND
    return [
        *(even(cases, noise) for noise in (0.01, 0.05, 0.1, 0.2)),
        *(even(cases, noise, spread=10.0, missing=0.1) for noise in (0.05, 0.2)),
        uneven(cases, spread=3.0),
        *(even(cases, noise, fastest=APART, found=share) for noise, share in found.items()),
        *(even(cases, noise, fastest=APART, spread=30.0, found=FOUND[noise]) for noise in (0.05, 0.1)),
        # Too noisy for so many rounds: the best must be kept, and a tie is an answer.
        *(even(cases, 0.2, fastest=APART, spread=spread) for spread in (1.0, 30.0)),
        *(two_workloads(cases, 0.05, fastest=fastest, spread=3.0) for fastest in (NEAR, APART)),
    ]


# Numbers of cases: few, one stack with its layers, two workloads of that, and all stacks with all layers.
CASES = (4, 14, 28, 143)
SCENARIOS = [scenario for cases in CASES for scenario in scenarios(cases)]


def main(arguments: list[str] | None = None) -> int:
    """Simulate and print a table; 0 when every line keeps its bound."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.races", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=count, default=100, metavar="N", help="of each line (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="default: %(default)s")
    parser.add_argument(
        "--cases", type=int, choices=CASES, metavar="N", help=f"only races of so many: {', '.join(map(str, CASES))}"
    )
    args = parser.parse_args(arguments)
    chosen = [scenario for scenario in SCENARIOS if args.cases in (None, len(scenario.noise))]
    heads = ("best by", "slowest", "voided", "dropped", "named", "bound", "tie", "open", "trials")
    print(f"{'runs of':32} {' '.join(f'{head:>7}' for head in heads)}")
    failed = 0
    for scenario in chosen:
        outcome = simulate(scenario, min(args.runs, MAX_RUNS), args.seed)
        failed += not outcome.passes(scenario)
        print(line(scenario, outcome), flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} lines keep their bounds: at most {MAX_FALSE:.0%} dropped")
    return 1 if failed else 0


def line(scenario: Scenario, outcome: Shares) -> str:
    """A line of the table."""
    bound = "" if scenario.found is None else f"{scenario.found:.0%}"
    cells = [f"{scenario.fastest:.2f}x", f"{scenario.spread:.0f}x", f"{scenario.missing:.0%}"]
    cells += [f"{outcome.dropped:.1%}", f"{outcome.found:.1%}", bound]
    cells += [f"{share:.1%}" for share in (outcome.tied, outcome.open, outcome.trials)]
    missed = "" if outcome.passes(scenario) else "  MISSED"
    return f"{scenario.name:32} {' '.join(f'{cell:>7}' for cell in cells)}{missed}"


def simulate(scenario: Scenario, runs: int, seed: int, rounds: int = ROUNDS_UNTIL_DECIDED) -> Shares:
    """Race simulated runs of at most so many rounds."""
    draw = random.Random(f"{seed} {scenario}")
    races = [run(draw, scenario, rounds) for _ in range(runs)]
    dropped = sum(0 in race.dropped for race, _ in races)
    named = sum(race.leads and 0 not in race.dropped for race, _ in races)
    tied = sum(race.ties for race, _ in races)
    left = sum(not race.decided for race, _ in races)
    trials = sum(trials for _, trials in races) / (rounds * len(scenario.noise) * (1 + (scenario.tilts > 1)))
    return Shares(runs, *(count / runs for count in (dropped, named, tied, left, trials)))


def run(draw: random.Random, scenario: Scenario, rounds: int) -> tuple[Race[int], int]:
    """One race, and how many trials it took."""
    levels = [math.log(scenario.fastest)]
    levels += [-draw.uniform(0, math.log(scenario.spread)) for _ in scenario.noise[1:]]
    tilts = [draw.uniform(-1, 1) * math.log(scenario.tilts) / 2 for _ in levels]
    # With one workload there is no tilt.
    signs = (1, -1) if scenario.tilts > 1 else (1,)
    tables: list[dict[int, dict[int, float]]] = [{case: {} for case in range(len(levels))} for _ in signs]
    race: Race[int] = Race({})
    trials = 0
    for number in range(1, rounds + 1):
        for table, sign in zip(tables, signs, strict=True):
            speed = draw.gauss(0, ROUND_NOISE)
            for case in table.keys() - race.dropped.keys():
                trials += 1
                figure = levels[case] + sign * tilts[case] + speed + draw.gauss(0, scenario.noise[case])
                if draw.random() >= scenario.missing:
                    table[case][number] = figure
        race = look(tables, race, number, rounds)
        if race.decided:
            break
    return race, trials


if __name__ == "__main__":
    sys.exit(main())

"""Race the rounds of a finished run again in other orders: how soon is it decided, and with the answer of all rounds?

    python -m tests.proofs.race_replays DIR [--orders 10] [--seed 1]

DIR is a `bench run` of several rounds, each case in each round. A replay takes its rounds in an order drawn at random
and gives their trials to the race of `run --until decided`, which leaves out what it has dropped. It costs the seconds
from the start of each visited deployment to the next one's.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from bench.cli.options import count
from bench.measure.begin import ROUNDS_UNTIL_DECIDED
from bench.measure.plan import Measurement
from bench.measure.racing import Racing
from bench.report.arrange import arrange
from bench.report.choice import Choice, choices
from bench.results.folder import Run, read_run
from bench.results.trials import Trial

# Bounds: a race takes at most this share of the time of all rounds, with the same answer in so many of its replays.
MAX_TIME, MIN_SAME = 1 / 3, 9 / 10
# A longer pause was none of the run's own: it was stopped and resumed.
PAUSE_S = 120.0

Visit = tuple[str, str, int]  # stack, layer, round


@dataclass(frozen=True)
class Replay:
    """What one order of the rounds gave.

    rounds   that were made until it was decided, or all
    time     share of the seconds of all rounds
    choices  the answer to each question, from the trials that were made
    """

    rounds: int
    decided: bool
    time: float
    choices: list[Choice]


def main(arguments: list[str] | None = None) -> int:
    """Replay and print a line each; 0 when the bounds are kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.race_replays", description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR", help="of a finished run")
    parser.add_argument("--orders", type=count, default=10, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="default: %(default)s")
    args = parser.parse_args(arguments)
    run = read_run(args.directory)
    if run.info.plan.until or run.info.plan.rounds < 2:
        print(f"{args.directory}: name a run of several rounds in which no case was dropped", file=sys.stderr)
        return 2
    wanted = choices(arrange(run))
    for choice in wanted:
        print(f"all {run.info.plan.rounds} rounds {choice.where}: {_named(choice)}")
    draw = random.Random(args.seed)
    numbers = list(range(1, run.info.plan.rounds + 1))
    found = [replay(run, draw.sample(numbers, len(numbers))) for _ in range(args.orders)]
    same = [agrees(wanted, made.choices) for made in found]
    for made, agreed in zip(found, same, strict=True):
        end = "decided" if made.decided else "open"
        names = "; ".join(map(_named, made.choices))
        print(f"{end} after round {made.rounds}, {made.time:.0%} of the time: {names}{'' if agreed else '  OTHER'}")
    time = statistics.fmean(made.time for made in found)
    print(f"the same answer in {sum(same)} of {len(same)}, in {time:.0%} of the time on average")
    return 0 if time <= MAX_TIME and sum(same) >= MIN_SAME * len(same) else 1


def _named(choice: Choice) -> str:
    return " with ".join(choice.chosen) + (f", of {len(choice.tied) + 1} that tie" if choice.tied else "")


def agrees(wanted: Sequence[Choice], found: Sequence[Choice]) -> bool:
    """Whether each question gets the deployment that all rounds choose, or one that ties with it there."""
    return len(wanted) == len(found) and all(
        other.chosen in (choice.chosen, *choice.tied) for choice, other in zip(wanted, found, strict=True)
    )


def replay(run: Run, order: Sequence[int]) -> Replay:
    """Race the rounds of a run in this order."""
    cases = {case.case_id: case for case in run.info.cases}
    racing = Racing(
        [Measurement(cases[trial.case_id], trial.level, 1) for trial in run.trials],
        ROUNDS_UNTIL_DECIDED,
        run.info.plan.margin,
    )
    seconds = visits(run.trials)
    made: list[Trial] = []
    spent, number = 0.0, 0
    for number, original in enumerate(order, 1):
        again = [replace(trial, round=number) for trial in run.latest.values() if trial.round == original]
        wanted = [trial for trial in again if racing.goes_on(Measurement(cases[trial.case_id], trial.level, number))]
        # The first visits are longer, whichever figures they get: the site is verified.
        spent += sum(seconds.get(visit, 0.0) for visit in {(trial.stack, trial.layer, number) for trial in wanted})
        for trial in wanted:
            racing.add(trial)
        made += wanted
        racing.look(())
        if racing.decided:
            break
    info = replace(run.info, plan=replace(run.info.plan, until="decided"), dropped=racing.dropped)
    found = choices(arrange(replace(run, info=info, trials=tuple(made))))
    return Replay(number, racing.decided, spent / sum(seconds.values()), found)


def visits(trials: Sequence[Trial]) -> dict[Visit, float]:
    """Seconds of each deployment in each round, to the start of the next one."""
    starts: list[tuple[Visit, float]] = []
    for trial in sorted(trials, key=lambda trial: trial.started_at):
        visit = (trial.stack, trial.layer, trial.round)
        if not starts or starts[-1][0] != visit:
            starts.append((visit, datetime.fromisoformat(trial.started_at).timestamp()))
    lengths = [after - before for (_, before), (_, after) in pairwise(starts)]
    usual = statistics.median(lengths or [1.0])
    found: dict[Visit, float] = {}
    for (visit, _), length in zip(starts, [*lengths, usual], strict=True):
        found[visit] = found.get(visit, 0.0) + (length if length < PAUSE_S else usual)
    return found


if __name__ == "__main__":
    sys.exit(main())

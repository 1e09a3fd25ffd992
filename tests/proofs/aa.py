"""Measure the same stack twice, again and again: is no difference found between equals, and a real one found?

    python -m tests.proofs.aa [--stack nginx-uwsgi] [--comparisons 21] [--output DIR]

The second of the two is the stack with a value set to what it is anyway: it is brought up, measured and taken down as a
separate stack. One `benchapp run` of many rounds measures both; every five rounds of a workload are one comparison. At
most 1 in 20 may find a difference. What disturbs the machine is left in: guards that discard disturbed trials are off.

Then the figures of the second are multiplied, so that it is 10, 20 and 50 % faster with the noise that was measured:
how often is that found?
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import paths
from bench.measure.records.folder import RUN_FILE, Run, read_run
from bench.measure.stats import MARGIN, Table
from bench.serve.catalog import catalog
from bench.words import LEADS
from tests.proofs.arguments import count

FIRST, SECOND = "first", "second"
WORKLOADS = ("home", "login", "static-small")
ROUNDS = 5
# How often the comparison must find no difference.
RIGHT = 19 / 20
# How many times as fast as the first the second is made out to be.
FASTER = (1.1, 1.2, 1.5)


def main(arguments: list[str] | None = None) -> int:
    """Measure and judge; 0 when no difference was found at least 19 times in 20."""
    args = _parser().parse_args(arguments)
    if not (args.output / RUN_FILE).exists():
        _measure(args)
    run = read_run(args.output)
    compared = list(comparisons(run))
    if not compared:
        print(f"{args.output}: no two rounds of the same workload were measured", file=sys.stderr)
        return 2
    for name, table in compared:
        ratio, low, high = table.ratio(SECOND, FIRST)
        print(f"{name:30} ratio {ratio:.3f} ({low:.3f} to {high:.3f}, 95 %): {table.decide(args.margin).verdict}")
    right = sum(table.decide(args.margin).verdict != LEADS for _, table in compared)
    print(f"no difference in {right} of {len(compared)} comparisons of a stack with itself, margin {args.margin:.0%}")
    for factor in FASTER:
        verdicts = [table.decide(args.margin) for _, table in comparisons(run, factor)]
        seen = sum((verdict.verdict, verdict.best) == (LEADS, SECOND) for verdict in verdicts)
        print(f"a difference of {factor - 1:.0%} was found in {seen} of {len(compared)}")
    return 0 if right >= RIGHT * len(compared) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.aa", description=__doc__.splitlines()[0])
    parser.add_argument("--stack", default="nginx-uwsgi", metavar="S", help="the stack (default: %(default)s)")
    parser.add_argument("--comparisons", type=count(), default=21, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--duration", type=count(), default=2, metavar="SEC", help="of a trial (default: %(default)s)")
    parser.add_argument(
        "--connections", type=count(), default=16, metavar="N", help="connections (default: %(default)s)"
    )
    parser.add_argument("--margin", type=float, default=MARGIN, metavar="SHARE", help="default: %(default)s")
    parser.add_argument(
        "--output",
        type=Path,
        default=paths.RESULTS / "aa",
        metavar="DIR",
        help="of the run; one that is there is judged",
    )
    return parser


def _measure(args: argparse.Namespace) -> None:
    same = f"{args.stack}@processes={catalog.read().values['bench'].names['processes']}"
    rounds = ROUNDS * -(-args.comparisons // len(WORKLOADS))
    words = ["--stack", args.stack, "--stack", same, "--layer", "none", "--rounds", str(rounds)]
    words += [word for workload in WORKLOADS for word in ("--workload", workload)]
    words += ["--connections", str(args.connections), "--duration", str(args.duration), "--output", str(args.output)]
    words += ["--guard", "interference=off", "--guard", "drift=off", "--guard", "tool=off"]
    subprocess.run([str(paths.PYTHON), "-m", "bench", "run", *words], cwd=paths.KIT, check=False)


def comparisons(run: Run, factor: float = 1.0) -> Iterator[tuple[str, Table[str]]]:
    """Every five rounds of a workload, the second stack against the first, with a name.

    `factor` multiplies the figures of the second.
    """
    first, second = run.info.plan.stacks
    for workload in run.info.plan.workloads:
        for begin in range(1, run.info.plan.rounds + 1, ROUNDS):
            rates = {
                name: {
                    trial.round: (trial.throughput or 0.0) * times
                    for trial in run.trials
                    if (trial.stack, trial.workload, trial.status) == (stack, workload, "ok")
                    and begin <= trial.round < begin + ROUNDS
                }
                for name, stack, times in ((FIRST, first, 1.0), (SECOND, second, factor))
            }
            if len(rates[FIRST].keys() & rates[SECOND].keys()) > 1:
                yield f"{workload}, rounds {begin} to {begin + ROUNDS - 1}", Table(rates)


if __name__ == "__main__":
    sys.exit(main())

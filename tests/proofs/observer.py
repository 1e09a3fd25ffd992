"""What observing costs: a stack with the observer on and off, by turns, and the observer's own share.

In each round the same load is made twice, once observed as a trial of `python -m bench run` is, once not, in an order
drawn anew. The two of a round are a pair: other work on the machine disturbs both. Printed are the median of
the pairs' ratios with its 95 % interval, of requests/s and of the CPU time that the servers take for a request
(which other work on the machine disturbs less), and the CPU time the observer itself took, of one core. The limit
is 2 % for each.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench import load, programs
from bench.cli.options import count
from bench.figures import ratios
from bench.load import Figures, Job
from bench.machine import processes
from bench.measure.resource_usage import Observer
from bench.measure.trial import Load, load_once
from bench.project.under_test import open_project
from bench.results.records import NO_LAYER
from bench.serve import database, deployment
from bench.serve.case import must_resolve
from bench.serve.deployment import Running

LIMIT = 0.02


@dataclass
class Measured:
    """By round, observed and not: requests/s, and CPU seconds of the servers for 1,000 requests.

    shares  of the observer, of one core, in each round
    """

    rates: dict[bool, dict[int, float]] = field(default_factory=lambda: {True: {}, False: {}})
    prices: dict[bool, dict[int, float]] = field(default_factory=lambda: {True: {}, False: {}})
    shares: list[float] = field(default_factory=list)

    def compared(self, figures: dict[bool, dict[int, float]]) -> ratios.Ratio:
        """Observed against not observed."""
        return ratios.paired(figures[False], figures[True], LIMIT)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("stack", nargs="?", default="nginx-uwsgi", help="default: nginx-uwsgi")
    parser.add_argument("--layer", default=NO_LAYER, help="default: none")
    parser.add_argument("--path", default="/", help="what is asked for (default: /)")
    parser.add_argument("--level", type=count, default=16, help="connections (default: 16)")
    parser.add_argument("--rounds", type=count, default=15, help="pairs (default: 15)")
    parser.add_argument("--duration", type=count, default=3, help="seconds of each load (default: 3)")
    parser.add_argument("--database", default="sqlite", help="as of `up` (default: sqlite)")
    return parser.parse_args(arguments)


def measure(running: Running, load: Load, job: Job, rounds: int) -> Measured:
    """Make the pairs, after one load that is not counted."""
    measured = Measured()
    _load(load, job)
    for number in range(1, rounds + 1):
        for observed in random.sample([True, False], 2):
            observer = Observer(running) if observed else None
            before = _cpu_seconds(running)
            if observer:
                observer.start()
            figures = _load(load, job)
            if observer:
                observer.stop()
                measured.shares.append(observer.condition.observer_share * (os.cpu_count() or 1))
            used = _cpu_seconds(running) - before
            measured.rates[observed][number] = figures.requests_per_second
            measured.prices[observed][number] = 1000 * used / figures.requests_total
    return measured


def _cpu_seconds(running: Running) -> float:
    return sum(processes.cpu_seconds(pid) for pid in running.pids.values())


def _load(load: Load, job: Job) -> Figures:
    """The figures of the load tool. Exits when it failed."""
    with tempfile.TemporaryDirectory() as folder:
        figures, _ = load_once(job, load, Path(folder))
    if problem := figures.failure():
        raise SystemExit(f"{load.tool.name}: {problem}")
    return figures


def as_text(measured: Measured) -> str:
    """The result in three lines."""
    share = statistics.median(measured.shares)
    lines = []
    for name, figures in (("requests/s", measured.rates), ("CPU seconds per 1,000 requests", measured.prices)):
        compared = measured.compared(figures)
        on, off = (statistics.median(figures[observed].values()) for observed in (True, False))
        lines.append(
            f"{name}: observed {on:,.2f}, not observed {off:,.2f} (medians of {compared.rounds} rounds); "
            f"ratio {compared.ratio:.4f}, 95 % interval {compared.low:.4f} to {compared.high:.4f}"
        )
    lines.append(f"the observer took {100 * share:.2f} % of one core (largest {100 * max(measured.shares):.2f} %)")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns 1 when the observer is shown to cost more than the limit."""
    args = parse(arguments)
    tool, program = load.choose([(args.path,)], programs.find)
    project = open_project()
    rows = database.parse(project, args.database)
    with deployment.deployed(must_resolve(project, args.stack, args.layer, database=rows)) as running:
        how = Load(tool, str(program), args.duration, threads=1)
        measured = measure(running, how, how.job(running.url, (args.path,), args.level, keep_alive=True), args.rounds)
    print(f"load average: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores", file=sys.stderr)
    print(as_text(measured))
    fewer = measured.compared(measured.rates).verdict == ratios.SLOWER
    # Of a price, more is worse.
    dearer = measured.compared(measured.prices).verdict == ratios.FASTER
    return int(fewer or dearer or statistics.median(measured.shares) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())

"""The cost of observing: a stack with the observer on and off, by turns, and the observer's own share.

In each round the same load is made twice, once observed as a trial of `python -m bench run` is, once not, in an order
drawn again. The two of a round are a pair: other work on the machine disturbs both. Printed are the median of
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
from dataclasses import dataclass, field

from bench.measure.load import LoadJob
from bench.measure.run.local import Observer
from bench.measure.run.trial import LoadSettings
from bench.measure.stats import Table
from bench.serve.catalog.names import NO_LAYER
from bench.serve.deployment import database, deployment
from bench.serve.deployment.case import must_resolve
from bench.serve.deployment.deployment import Running
from bench.serve.project.opened import open_project
from bench.words import LEADS
from tests.proofs.arguments import count
from tests.proofs.loading import closed_loop, loaded

LIMIT = 0.02


@dataclass
class Measured:
    """By round, observed and not: requests/s, and CPU seconds of the servers for 1,000 requests.

    shares  of the observer, of one core, in each round
    """

    rates: dict[bool, dict[int, float]] = field(default_factory=lambda: {True: {}, False: {}})
    prices: dict[bool, dict[int, float]] = field(default_factory=lambda: {True: {}, False: {}})
    shares: list[float] = field(default_factory=list)

    @property
    def is_too_dear(self) -> bool:
        """True if the observer provably costs more than the limit: fewer requests/s, or more CPU time."""
        rates, prices = (Table(figures).decide(LIMIT) for figures in (self.rates, self.prices))
        dearer = (rates.verdict == LEADS and not rates.best) or (prices.verdict == LEADS and prices.best)
        return bool(dearer) or statistics.median(self.shares) > LIMIT


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("stack", nargs="?", default="nginx-uwsgi", help="default: nginx-uwsgi")
    parser.add_argument("--layer", default=NO_LAYER, help="default: none")
    parser.add_argument("--path", default="/", help="the requested page (default: /)")
    parser.add_argument("--connections", type=count(), default=16, help="connections (default: 16)")
    parser.add_argument("--rounds", type=count(), default=15, help="pairs (default: 15)")
    parser.add_argument("--duration", type=count(), default=3, help="seconds of each load (default: 3)")
    parser.add_argument("--database", default="sqlite", help="as of `up` (default: sqlite)")
    return parser.parse_args(arguments)


def measure(running: Running, load: LoadSettings, job: LoadJob, rounds: int) -> Measured:
    """Make the pairs, after one load that is not counted."""
    measured, pids = Measured(), running.pids.values()
    loaded(load, job, pids)
    for number in range(1, rounds + 1):
        for observed in random.sample([True, False], 2):
            observer = Observer(running) if observed else None
            if observer:
                observer.start()
            rate, per_cpu_s = loaded(load, job, pids)
            if observer:
                observer.stop()
                measured.shares.append(observer.condition.observer_share * (os.cpu_count() or 1))
            measured.rates[observed][number], measured.prices[observed][number] = rate, 1000 / per_cpu_s
    return measured


def as_text(measured: Measured) -> str:
    """The result in three lines."""
    share = statistics.median(measured.shares)
    lines = []
    for name, figures in (("requests/s", measured.rates), ("CPU seconds per 1,000 requests", measured.prices)):
        ratio, low, high = Table(figures).ratio(True, False)
        on, off = (statistics.median(figures[observed].values()) for observed in (True, False))
        lines.append(
            f"{name}: observed {on:,.2f}, not observed {off:,.2f} (medians of {len(figures[True])} rounds); "
            f"ratio {ratio:.4f}, 95 % interval {low:.4f} to {high:.4f}"
        )
    lines.append(f"the observer took {100 * share:.2f} % of one core (largest {100 * max(measured.shares):.2f} %)")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns 1 when the observer is shown to cost more than the limit."""
    args = parse(arguments)
    project = open_project()
    rows = database.parse(project, args.database)
    with deployment.deployed(must_resolve(project, args.stack, args.layer, database=rows)) as running:
        how = closed_loop([args.path], args.duration)
        measured = measure(
            running, how, how.job(running.url, (args.path,), args.connections, keep_alive=True), args.rounds
        )
    print(f"load average: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores", file=sys.stderr)
    print(as_text(measured))
    return int(measured.is_too_dear)


if __name__ == "__main__":
    sys.exit(main())

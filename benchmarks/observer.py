"""What observing costs: requests/s of a stack with the observer on and off, by turns, and the observer's own share.

In each round the same load is made twice, once observed as a trial of `python -m bench run` is, once not, in an order
drawn anew. The two of a round are a pair: what disturbs the machine meanwhile disturbs both. Printed are the median of
the pairs' ratios with its 95 % interval, and the processor time the observer itself took, of one core. Both have a
limit of 2 %.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench import deployment, load, programs, stats
from bench.costs import Observer
from bench.deployment import Running
from bench.load import Job, Tool

LIMIT = 0.02


@dataclass
class Measured:
    """Requests/s by round, observed and not, and the observer's share of one core in each round."""

    with_it: dict[int, float] = field(default_factory=dict)
    without: dict[int, float] = field(default_factory=dict)
    shares: list[float] = field(default_factory=list)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("stack", nargs="?", default="nginx-uwsgi", help="default: nginx-uwsgi")
    parser.add_argument("--layer", default="none", help="default: none")
    parser.add_argument("--path", default="/", help="what is asked for (default: /)")
    parser.add_argument("--level", type=int, default=16, help="connections (default: 16)")
    parser.add_argument("--rounds", type=int, default=15, help="pairs (default: 15)")
    parser.add_argument("--duration", type=int, default=3, help="seconds of each load (default: 3)")
    parser.add_argument("--database", default="sqlite", help="as of `up` (default: sqlite)")
    return parser.parse_args(arguments)


def measure(running: Running, tool: Tool, program: str, job: Job, rounds: int) -> Measured:
    """Make the pairs, after one load that is not counted."""
    measured = Measured()
    _load(tool, program, job)
    for number in range(1, rounds + 1):
        for observed in random.sample([True, False], 2):
            if not observed:
                measured.without[number] = _load(tool, program, job)
                continue
            observer = Observer(running)
            observer.start()
            try:
                measured.with_it[number] = _load(tool, program, job)
            finally:
                observer.stop()
            measured.shares.append(observer.costs.aftermath["observer_cpu_seconds"] / job.seconds)
    return measured


def _load(tool: Tool, program: str, job: Job) -> float:
    command = tool.command(program, job)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in command.files.items():
            (Path(folder) / name).write_text(content, "utf-8")
        environment = {"PATH": os.environ["PATH"], "HOME": folder, **command.env}
        done = subprocess.run(command.argv, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    figures = tool.parse(done.stdout, done.stderr)
    if problem := figures.failure():
        raise SystemExit(f"{tool.name}: {problem}")
    return figures.requests_per_second


def as_text(measured: Measured) -> str:
    """The result in three lines."""
    compared = stats.paired(measured.without, measured.with_it, LIMIT)
    share = statistics.median(measured.shares)
    on, off = (statistics.median(rates.values()) for rates in (measured.with_it, measured.without))
    return "\n".join(
        (
            f"requests/s observed {on:,.1f}, not observed {off:,.1f} (medians of {compared.rounds} rounds)",
            f"ratio {compared.ratio:.4f}, 95 % interval {compared.low:.4f} to {compared.high:.4f}: "
            f"{'no difference beyond 2 % shown' if compared.verdict == stats.INCONCLUSIVE else compared.verdict}",
            f"the observer took {100 * share:.2f} % of one core (largest {100 * max(measured.shares):.2f} %)",
        )
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns 1 when the observer is shown to cost more than the limit."""
    args = parse(arguments)
    tool, program = load.choose([(args.path,)], programs.find)
    with deployment.deployed(args.stack, args.layer, database=args.database) as running:
        job = Job(running.url, (args.path,), args.level, args.duration, keep_alive=tool.can_keep_alive)
        measured = measure(running, tool, str(program), job, args.rounds)
    print(as_text(measured))
    slower = stats.paired(measured.without, measured.with_it, LIMIT).verdict == stats.SLOWER
    return int(slower or statistics.median(measured.shares) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())

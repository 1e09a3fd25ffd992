"""The times from `python -m bench up` to `ready`, and to its end, for every stack.

Both are measured from outside, as a user sees them: from starting the command to its line
`ready`, and from SIGTERM to the end of the command, by when every process and port of the stack must be gone, too. The
stacks take turns, a round after another, so that what disturbs the machine disturbs them all alike. The table shows the
median and the largest of the rounds, in seconds. The limits are for an idle machine with two
cores, so the load average of before is printed too.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field

from bench import paths
from bench.serve.deployment.case import CannotRun, resolve
from bench.serve.deployment.survey import survey
from bench.serve.machine.supervise import Address
from bench.serve.project.opened import open_project
from tests.proofs.arguments import count

READY_LIMIT_S, GONE_LIMIT_S = 3.0, 2.0
PATIENCE_S = 60


@dataclass
class StartStop:
    """The seconds of each round for one stack, and why it could not be measured, if so."""

    stack: str
    servers: str
    ready_s: list[float] = field(default_factory=list)
    gone_s: list[float] = field(default_factory=list)
    problem: str = ""

    @property
    def slow(self) -> bool:
        """True if a median is over its limit."""
        return statistics.median(self.ready_s) > READY_LIMIT_S or statistics.median(self.gone_s) > GONE_LIMIT_S

    def take(self, words: list[str]) -> None:
        """Bring the stack up and down once more."""
        argv = [sys.executable, "-m", "bench", "up", self.stack, *words]
        begun = time.perf_counter()
        process = subprocess.Popen(
            argv, cwd=paths.KIT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            line = process.stdout.readline()
            ready = time.perf_counter() - begun
            if not line.startswith("ready "):
                self.problem = (process.communicate(timeout=PATIENCE_S)[1].splitlines() or ["it printed nothing"])[-1]
                return
            signalled = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)
            gone = time.perf_counter() - signalled
        finally:
            process.kill()
            process.communicate()
        if Address("127.0.0.1", int(line.rstrip("/\n").rpartition(":")[2])).accepts():
            self.problem = "its port still accepts connections"
            return
        self.ready_s.append(ready)
        self.gone_s.append(gone)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("stacks", nargs="*", metavar="STACK", help="stacks to measure (default: all that can run here)")
    parser.add_argument("--rounds", type=count(), default=5, help="how often (default: 5)")
    parser.add_argument("--database", default="sqlite", help="as of `up` (default: sqlite)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="as of `up`")
    return parser.parse_args(arguments)


def chosen(names: list[str]) -> list[StartStop]:
    """The stacks to measure: the named ones, else all that can run here."""
    project = open_project()
    known = survey(project)["stacks"]
    stacks = []
    for name in names or known:
        if isinstance(case := resolve(project, name), CannotRun):
            print(f"skipped: {name}: {case.reason}", file=sys.stderr)
            continue
        servers = [f"{item['name']} {item['version'] or '?'}" for item in known[name.partition("@")[0]]["servers"]]
        stacks.append(StartStop(name, " <- ".join(servers)))
    return stacks


def as_text(measured: list[StartStop], rounds: int) -> str:
    """The table, with what is over its limit marked."""
    lines = ["| stack | servers | ready, median | largest | gone, median | largest |", "|---|---|---|---|---|---|"]
    for item in measured:
        if item.problem or not item.ready_s:
            lines.append(f"| {item.stack} | {item.servers} | failed: {item.problem} | | | |")
            continue
        figures = [f(times) for times in (item.ready_s, item.gone_s) for f in (statistics.median, max)]
        lines.append(
            f"| {item.stack} | {item.servers} | {' | '.join(f'{figure:.2f}' for figure in figures)} |"
            + (" over the limit" if item.slow else "")
        )
    return "\n".join([*lines, "", f"{rounds} rounds; limits: ready {READY_LIMIT_S:g} s, gone {GONE_LIMIT_S:g} s"])


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns 1 when a stack is over a limit or did not come up."""
    args = parse(arguments)
    words = ["--database", args.database, *(word for text in args.set for word in ("--set", text))]
    measured = chosen(args.stacks)
    print(f"load average before: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores", file=sys.stderr)
    for _ in range(args.rounds):
        for item in random.sample(measured, len(measured)):
            if not item.problem:
                item.take(words)
    print(as_text(measured, args.rounds))
    return 1 if any(item.problem or item.slow for item in measured) else 0


if __name__ == "__main__":
    sys.exit(main())

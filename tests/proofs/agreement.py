"""Compare the instrument's closed-loop figures with plain runs of wrk and ab on the same live stack.

    python -m tests.proofs.agreement [--stack nginx-uwsgi] [--workload home] [--rounds 5]

In each round, in an order shuffled again: a trial of the instrument with wrk, ab and the load tool of this project, and
wrk and ab on their own as a person would type them, read from the text they print. A plain figure agrees when it is
inconclusive against the instrument's, paired by round, or its median lies in the interval of the instrument's rounds.

On a workload that the server serves faster than the tools can request it, `static-small` or `static-small-close`, the
ratios are those of what the tools can do at most: there they differ.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import programs
from bench.measure import load
from bench.measure.records.folder import Folder
from bench.measure.run import workload
from bench.measure.run.local import HereLoad
from bench.measure.run.plan import Deployment, Measurement, record
from bench.measure.run.trial import LoadSettings, measure
from bench.measure.stats import Table
from bench.serve.catalog.names import NO_LAYER
from bench.serve.deployment import deployment
from bench.serve.deployment.case import must_resolve
from bench.serve.machine.http import get
from bench.serve.project import commands
from bench.serve.project.opened import open_project
from bench.words import LEADS
from tests.proofs.arguments import count

# A tool of the instrument -> the plain tool that it is compared with.
TOOLS = {"wrk": "wrk", "ab": "ab", "closedloop": "wrk"}
RATE = {"wrk": r"^Requests/sec:\s+([\d.]+)", "ab": r"^Requests per second:\s+([\d.]+)"}


def main(arguments: list[str] | None = None) -> int:
    """Measure and judge; 0 when all plain figures agree."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.agreement", description=__doc__.splitlines()[0])
    parser.add_argument("--stack", default="nginx-uwsgi", metavar="S")
    parser.add_argument("--layer", default=NO_LAYER, metavar="L")
    parser.add_argument("--workload", default="home", metavar="W", help="one of a single URL (default: %(default)s)")
    parser.add_argument("--connections", type=count(), default=16, metavar="N")
    parser.add_argument("--duration", type=count(), default=5, metavar="SEC")
    parser.add_argument("--rounds", type=count(), default=5, metavar="R")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this tool of the instrument (repeatable)")
    args = parser.parse_args(arguments)
    tools = {tool: TOOLS[tool] for tool in args.tool or TOOLS}
    case = must_resolve(open_project(), args.stack, args.layer)
    with tempfile.TemporaryDirectory() as folder, deployment.deployed(case) as running:
        rates = _rates(args, tools, running, Folder(Path(folder)))
    agree = [_judge(tool, plain, rates["instrument", tool], rates["plain", plain]) for tool, plain in tools.items()]
    return 0 if all(agree) else 1


def _rates(
    args: argparse.Namespace, tools: dict[str, str], running: deployment.Running, folder: Folder
) -> dict[tuple[str, str], dict[int, float]]:
    """(instrument or plain, tool) -> round -> requests/s."""
    case, project = record(running.case, args.workload), running.case.project
    steps = workload.workload(project, args.workload)
    addresses = workload.resolve(
        steps, lambda path: get(running.url, path).decode(), commands.static_names(project), "/static/"
    )
    rates: dict[tuple[str, str], dict[int, float]] = {("instrument", tool): {} for tool in tools}
    rates |= {("plain", tool): {} for tool in tools.values()}
    for number in range(1, args.rounds + 1):
        for who, name in random.sample(list(rates), len(rates)):
            tool, program = load.choose([steps.steps], programs.find, name)
            if who == "plain":
                rate = _plain(name, str(program), args, running.url + addresses[0], steps.keep_alive)
            else:
                how = LoadSettings(tool, str(program), args.duration, threads=1)
                item = Measurement(case, args.connections, number, Deployment(running.case, number))
                (folder.raw / item.key).mkdir(parents=True, exist_ok=True)
                loading = HereLoad(running, how, folder.raw / item.key)
                trial = measure(item, addresses, running.case.project, loading, folder)
                rate = trial.throughput
                if rate is None:
                    sys.exit(f"agreement: {trial.reason}")
            rates[who, name][number] = rate
            print(f"round {number} of {args.rounds}: {who} {name}: {rate:,.1f} requests/s", flush=True)
    return rates


def _plain(name: str, program: str, args: argparse.Namespace, url: str, keep_alive: bool) -> float:
    """The output of the tool for a person."""
    close, keep = ([], ["-k"]) if keep_alive else (["-H", "Connection: close"], [])
    argv = {
        "wrk": [program, "-t1", f"-c{args.connections}", f"-d{args.duration}s", *close, url],
        "ab": [program, "-q", *keep, "-c", str(args.connections), "-t", str(args.duration), "-n", "5000000", url],
    }[name]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return float(re.search(RATE[name], done.stdout, re.MULTILINE)[1])


def _judge(tool: str, plain_tool: str, instrument: dict[int, float], plain: dict[int, float]) -> bool:
    table = Table({"instrument": instrument, "plain": plain})
    ratio, low, high = table.ratio("plain", "instrument")
    agrees = table.decide().verdict != LEADS
    print(
        f"the instrument with {tool} {table.rate('instrument'):,.1f}, plain {plain_tool} {table.rate('plain'):,.1f} "
        f"requests/s; plain / instrument {ratio:.3f} ({low:.3f} to {high:.3f}, 95 % confidence): "
        f"{'they agree' if agrees else 'THEY DIFFER'}"
    )
    return agrees


if __name__ == "__main__":
    sys.exit(main())

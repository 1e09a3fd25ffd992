"""Several hosts, as an Ansible inventory names them: see docs/hosts.md."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import sys
import time
from pathlib import Path

import msgspec

from bench.catalog import catalog
from bench.cli import options
from bench.errors import BenchError
from bench.figures.projection import project
from bench.fleet import inventory, reach
from bench.fleet.reach import Found
from bench.fleet.world import build, plan
from bench.interrupt import Interrupts, Stopped
from bench.measure.printer import Printer
from bench.report import comparison, projection
from bench.report.write import read_measured
from bench.results.scaling import scalings

POLL_S = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hosts`."""
    verbs = parser.add_subparsers(title="what to do", required=True, metavar="WHAT", dest="what")
    check = verbs.add_parser("check", help="what the hosts of an inventory lack")
    add_inventory(check, required=True)
    check.set_defaults(act=_check)
    tried = verbs.add_parser("try", help="a world of hosts on this machine, until Ctrl-C (as root)")
    tried.add_argument("--web", type=options.count, default=3, metavar="N", help="web hosts (default: 3)")
    tried.add_argument("--load", type=options.count, default=2, metavar="N", help="load hosts (default: 2)")
    tried.add_argument(
        "--link",
        default="1gbit",
        metavar="RATE",
        help="rate of each host's link, both ways, as for tc (default: 1gbit)",
    )
    options.add_size(tried)
    tried.set_defaults(act=_try)
    projected = verbs.add_parser(
        "project", help="what more web hosts would serve, from runs on different numbers of them"
    )
    projected.add_argument(
        "runs", metavar="RUN", nargs="+", type=options.results_folder, help="folder of a run on hosts"
    )
    options.add_json(projected)
    projected.set_defaults(act=_project)


def add_inventory(parser: argparse.ArgumentParser, what: str = "", required: bool = False) -> None:
    """`--inventory`; the value is a path, or None."""
    help = f"an Ansible inventory with the groups {', '.join(inventory.GROUPS)}"
    parser.add_argument(
        "--inventory",
        required=required,
        type=Path,
        metavar="FILE",
        help=f"{help}: {what}" if what else help,
    )


def main(args: argparse.Namespace) -> int:
    """Do it; returns 1 when something is lacking."""
    status: int = args.act(args)
    return status


def _check(args: argparse.Namespace) -> int:
    """Print a line a host, or one for each thing that it lacks."""
    found = reach.look(inventory.read(args.inventory))
    for item in found:
        print("\n".join(_lines(item)))
    return 1 if any(item.lacks for item in found) else 0


def _try(args: argparse.Namespace) -> int:
    """Stay in the foreground while the world stands; Ctrl-C and SIGTERM end it."""
    size = catalog.read().size(args.size)
    chosen = plan.members(args.web, args.load)
    with (
        contextlib.suppress(Stopped),
        Interrupts() as interrupts,
        build.standing(chosen, args.link, size) as world,
    ):
        print(f"ready {world.inventory}", flush=True)
        try:
            while not (ended := world.ended()):
                time.sleep(POLL_S)
            raise BenchError(f"{ended} has ended; all hosts are removed")
        finally:
            # All is removed before another signal counts.
            interrupts.hold()
    return 0


def _project(args: argparse.Namespace) -> int:
    """Print every case of the runs; returns 1 when none of them can be projected."""
    if importlib.util.find_spec("scipy") is None:
        raise BenchError(f"package not installed: scipy; install it: {inventory.INSTALL}")
    runs = [read_measured(folder) for folder in args.runs]
    found = [(scaling, project(scaling.points, scaling.tiers)) for scaling in scalings(runs)]
    for run in runs[1:]:
        for warning in comparison.warnings(runs[0], run, configs=False):
            print(f"warning: A = {runs[0].directory}, B = {run.directory}: {warning}", file=sys.stderr)
    printer = Printer()
    if args.json:
        print(msgspec.json.format(msgspec.json.encode([projection.content(*case) for case in found])).decode())
    else:
        printer.say("\n\n".join("\n".join(projection.render(*case, printer.width)) for case in found))
    return 1 if all(projection.refusal(*case) for case in found) else 0


def _lines(found: Found) -> list[str]:
    host = found.host
    if found.lacks:
        return [f"FAIL  {host.name} {host.target}: {lack}" for lack in found.lacks]
    clock = f"; clock {found.clock.ahead_ms:+.1f} ms (±{found.clock.error_ms:.1f})" if found.clock else ""
    return [f"ok    {host.name} {host.target} is {' and '.join(host.groups)}{clock}"]

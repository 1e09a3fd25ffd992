"""Several hosts, as an Ansible inventory names them: see docs/hosts.md."""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path

from bench.catalog import catalog
from bench.cli import options
from bench.errors import BenchError
from bench.fleet import inventory, reach
from bench.fleet.reach import Found
from bench.fleet.world import build, plan
from bench.interrupt import Interrupts, Stopped

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


def add_inventory(parser: argparse.ArgumentParser, required: bool = False) -> None:
    """`--inventory`; the value is a path, or None."""
    parser.add_argument(
        "--inventory",
        required=required,
        type=Path,
        metavar="FILE",
        help=f"an Ansible inventory with the groups {', '.join(inventory.GROUPS)}",
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


def _lines(found: Found) -> list[str]:
    host = found.host
    if found.lacks:
        return [f"FAIL  {host.name} {host.target}: {lack}" for lack in found.lacks]
    clock = f"; clock {found.clock.ahead_ms:+.1f} ms (±{found.clock.error_ms:.1f})" if found.clock else ""
    return [f"ok    {host.name} {host.target} is {' and '.join(host.groups)}{clock}"]

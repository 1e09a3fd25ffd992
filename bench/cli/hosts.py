"""Several hosts, named in an Ansible inventory: see docs/hosts.md."""

from __future__ import annotations

import argparse
from dataclasses import replace

from bench.cli import options
from bench.serve.production import inventory
from bench.verify.hosts import reach
from bench.verify.hosts.reach import HostState

INVENTORY = replace(options.INVENTORY, help="an Ansible inventory", required=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hosts`."""
    verbs = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="what", prog=parser.prog)
    check = verbs.add_parser("check", help="check hosts for missing requirements")
    options.add(check, (INVENTORY,))


def main(args: argparse.Namespace) -> int:
    """Print a line for each host, or for each missing requirement; returns 1 if anything is missing."""
    hosts = reach.probe_hosts(inventory.read(args.inventory))
    for item in hosts:
        print("\n".join(_lines(item)))
    if any(item.lacks for item in hosts):
        return 1
    return 0


def _lines(state: HostState) -> list[str]:
    host = state.host
    if state.lacks:
        return [f"FAIL  {host.name} {host.target}: {lack}" for lack in state.lacks]
    clock = ""
    if state.clock:
        clock = f"; clock {state.clock.ahead_ms:+.1f} ms (±{state.clock.error_ms:.1f})"
    return [f"ok    {host.name} {host.target} is {' and '.join(host.groups)}{clock}"]

"""`verify --inventory`: prove on deployed hosts what a layer promises with several of them."""

from __future__ import annotations

import argparse
import sys
import time

from bench.catalog import catalog, values
from bench.cli import asked, options
from bench.errors import BenchError
from bench.hosts import proofs
from bench.hosts.deployed import reached
from bench.measure.printer import Printer
from bench.measure.progress import show_check
from bench.production import inventory
from bench.records.records import Outcome
from bench.serve.case import for_files
from bench.verify import table

VALUES = "production"
# Options of a deployment that `verify` itself brings up, or of its own checks.
OTHERS = (
    *("--target", "--project", "--database", "--check", "--group", "--quick"),
    *("--env", "--python", "--write", "--size"),
)


def verify(args: argparse.Namespace) -> list[Outcome]:
    """The outcomes; raises BenchError for an option that would do nothing, and for hosts that cannot be asked."""
    asked.refuse(args, OTHERS, f"--inventory {args.inventory}: it verifies what is deployed")
    layers = args.layer or []
    if len(args.stacks) != 1 or len(layers) != 1:
        raise BenchError(f"--inventory {args.inventory}: name the one STACK that is deployed, and its --layer")
    chosen = catalog.read().value_set(VALUES).changed(values.parse_changes(args.set))
    case = for_files(options.project_of(args), args.stacks[0], layers[0], chosen)
    found = inventory.read(args.inventory)
    started = time.monotonic()
    with Printer(sys.stderr) as printer:
        for promise in proofs.promises(case):
            printer.say(f"promise of {promise}")
        what = f"{args.stacks[0]} with layer {layers[0]}"
        with reached(case, found) as deployed:
            outcomes = proofs.prove(deployed, show_check(printer, f"{what}: "))
        printer.say(f"{what} on {len(found.hosts)} hosts: {table.count(outcomes)} ({time.monotonic() - started:.1f} s)")
    return outcomes

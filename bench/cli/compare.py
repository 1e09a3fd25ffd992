"""Compare two runs case by case: requests/s of A and B, their ratio, and a verdict.

One leads when the whole 95 % confidence interval of the ratio lies beyond the margin; they tie when it lies within it.
Otherwise the case is open. Runs from different environments are refused, with the differences; --force compares them.
"""

from __future__ import annotations

import argparse
import json
import sys

from bench.cli.options import results_folder
from bench.errors import BenchError
from bench.measure.report.build import read_measured
from bench.measure.report.comparison import compare, render
from bench.printer import Printer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("before", metavar="DIR_A", type=results_folder, help="folder of a run")
    parser.add_argument("after", metavar="DIR_B", type=results_folder, help="folder of the run to compare with it")
    parser.add_argument("--force", action="store_true", help="compare runs from different environments anyway")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")


def main(args: argparse.Namespace) -> int:
    """Print the comparison. Raises BenchError, in one line, when there is none to make."""
    comparison = compare(read_measured(args.before), read_measured(args.after))
    if comparison.warnings and not args.force:
        raise BenchError(
            f"{args.before} and {args.after} come from different environments: {'; '.join(comparison.warnings)}; "
            "--force compares them anyway"
        )
    for warning in comparison.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if args.json:
        print(json.dumps(comparison.record(), indent=2))
        return 0
    printer = Printer()
    printer.say("\n".join(render(comparison, args.before, args.after, printer.width)))
    return 0

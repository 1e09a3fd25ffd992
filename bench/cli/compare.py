"""Compare two runs case by case: requests/s of A and B, their ratio, and a verdict.

A run leads if the whole 95 % confidence interval of the ratio lies beyond the margin; the runs tie if the interval lies
within the margin. Otherwise the case is inconclusive. Runs from different environments are refused, with the
differences; --force compares them.
"""

from __future__ import annotations

import argparse
import json
import sys

from bench.cli import measure_options, options
from bench.errors import BenchError
from bench.measure.report.build import read_measured
from bench.measure.report.comparison import compare, render
from bench.printer import Printer

OPTIONS = (
    *(measure_options.BEFORE, measure_options.AFTER, measure_options.FORCE_COMPARE, measure_options.FAIL_IF_B),
    options.JSON,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Print the comparison. Raises BenchError, in one line, if the runs cannot be compared."""
    comparison = compare(read_measured(args.dir_a), read_measured(args.dir_b))
    if comparison.warnings and not args.force:
        raise BenchError(
            f"{args.dir_a} and {args.dir_b} come from different environments: {'; '.join(comparison.warnings)}; "
            "--force compares them anyway"
        )
    for warning in comparison.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if args.json:
        print(json.dumps(comparison.record(), indent=2))
    else:
        printer = Printer()
        printer.say("\n".join(render(comparison, args.dir_a, args.dir_b, printer.width)))
    if any(item.of_b in args.fail_if for item in comparison.cases):
        return 1
    return 0

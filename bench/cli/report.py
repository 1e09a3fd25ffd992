"""Write DIR/report.html from the files of the run in DIR and print its path as the last line.

The report is one file that needs no network. Beside it lies DIR/throughput.svg, the throughput chart alone, for a
README. With --schema, print the JSON Schema of the files of results.
"""

from __future__ import annotations

import argparse

from bench.cli.options import results_folder
from bench.measure.printer import working
from bench.report.write import write_report
from bench.results import schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "directory", metavar="DIR", nargs="?", type=results_folder, help="folder of a run, faults or a reproduction"
    )
    what.add_argument("--schema", action="store_true", help="print the JSON Schema of the files of results")


def main(args: argparse.Namespace) -> int:
    """Write the report and print its path, or print the schema. Raises BenchError, in one line, when it cannot."""
    if args.schema:
        print(schema.text(), end="")
        return 0
    with working("writing the report"):
        path = write_report(args.directory)
    print(path)
    return 0

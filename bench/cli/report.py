"""Write DIR/report.html (or .md, .csv) from the files of the run in DIR and print its path as the last line.

The HTML report is one file that needs no network. Beside it lies DIR/throughput.svg, the throughput chart alone, for a
README.
"""

from __future__ import annotations

import argparse

from bench.cli.options import results_folder
from bench.measure.printer import working
from bench.report.write import FORMATS, write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "directory", metavar="DIR", type=results_folder, help="folder of a run, faults or a reproduction"
    )
    parser.add_argument("--format", choices=FORMATS, default="html", help="html (default), md or csv")


def main(args: argparse.Namespace) -> int:
    """Write the report and print its path. Raises BenchError, in one line, when it cannot."""
    with working("writing the report"):
        path = write_report(args.directory, args.format)
    print(path)
    return 0

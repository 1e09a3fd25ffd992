"""Write DIR/report.html (or .md, .csv) from the run in DIR alone and print its path as the last line.

The HTML report is one file that needs no network. Beside it stands DIR/throughput.svg, the throughput chart
alone, on its own card, for a README.
"""

from __future__ import annotations

import argparse

from bench.cli.options import results_folder
from bench.report import FORMATS, write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("directory", metavar="DIR", type=results_folder, help="folder of a run or a reproduction")
    parser.add_argument("--format", choices=FORMATS, default="html", help="html (default), md or csv")


def main(args: argparse.Namespace) -> int:
    """Write the report and print its path. Raises BenchError, in one line, when it cannot."""
    print(write(args.directory, args.format))
    return 0

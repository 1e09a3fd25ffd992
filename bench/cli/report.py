"""Write DIR/report.html (or .md, .csv) from the files of the run in DIR and print its path as the last line.

The HTML report is one file that needs no network. Beside it lies DIR/throughput.svg, the throughput chart alone, for a
README. With --site, write a page of several runs, with a JSON file of each in its folder runs; without DIR, make the
page again from the files that are there.
"""

from __future__ import annotations

import argparse

from bench.cli.options import results_folder
from bench.errors import BenchError
from bench.measure.printer import working
from bench.report.site.write import write_site
from bench.report.write import FORMATS, write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "directories",
        metavar="DIR",
        nargs="*",
        type=results_folder,
        help="folder of a run, faults or a reproduction; several with --site",
    )
    parser.add_argument("--format", choices=FORMATS, help="html (default), md or csv")
    parser.add_argument("--site", metavar="SITE", type=results_folder, help="add the runs to the site in that folder")


def main(args: argparse.Namespace) -> int:
    """Write the report or the site and print its path. Raises BenchError, in one line, when it cannot."""
    if args.site is None and len(args.directories) != 1:
        raise BenchError("give one folder of results, or several with --site SITE")
    if args.site is not None and args.format:
        raise BenchError("a site has no other format; leave out --format")
    if args.site is not None:
        with working("writing the site"):
            path = write_site(args.site, args.directories)
    else:
        with working("writing the report"):
            path = write_report(args.directories[0], args.format or "html")
    print(path)
    return 0

"""Write one page from the files of one or several runs; the last line is the answer.

DIR/report.html is one file that needs no network. Beside it lie its data, report.json, and report.svg, the throughput
chart alone for a README. With --schema, print the JSON Schema of the files of results and of report.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.cli.options import results_folder
from bench.errors import BenchError
from bench.measure.records import schema
from bench.measure.report import write
from bench.measure.report.document import Document
from bench.printer import say, working


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "directories", metavar="DIR", nargs="*", type=results_folder, help="folder of a run or of faults"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the page (default: DIR/report.html)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--json", action="store_true", help="print report.json; write nothing")
    what.add_argument("--schema", action="store_true", help="print the JSON Schema of the files of results")


def main(args: argparse.Namespace) -> int:
    """Write the report, or print its data or the schema. Raises BenchError, in one line, when it cannot."""
    if args.schema:
        print(schema.text(Document), end="")
        return 0
    if not args.directories:
        raise BenchError("give a folder of results, such as results/DIR, or --schema")
    if args.json:
        print(write.document(args.directories, args.output or args.directories[0] / write.NAME)[1], end="")
        return 0
    with working("writing the report"):
        path, found = write.write(args.directories, args.output)
    print(path)
    say(found.answer[0])
    return 0

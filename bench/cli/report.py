"""Write one page from the files of one or several runs; the last line is the verdict.

DIR/report.html is one file that needs no network. Its data is in report.json; report.svg is only the throughput chart,
for a README. With --schema, print the JSON Schema of the files of results and of report.json.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from bench.cli import measure_options, options
from bench.errors import BenchError
from bench.measure.records import schema
from bench.measure.records.folder import read_run
from bench.measure.report import ci, write
from bench.measure.report.document import Document
from bench.printer import say, working

FORMAT = replace(
    options.format_of(ci.FORMATS, f"print it for continuous integration: {', '.join(ci.FORMATS)}"),
    excludes=("--json", "--schema"),
)

OPTIONS = (measure_options.FOLDERS, measure_options.OUTPUT_PAGE, options.JSON, FORMAT, measure_options.SCHEMA)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Write the report, or print its data or the schema. Raises BenchError, in one line, on failure."""
    options.refuse(args, OPTIONS)
    if args.schema:
        print(schema.text(Document), end="")
        return 0
    if not args.dir:
        raise BenchError("give a folder of results, such as results/DIR, or --schema")
    if args.json:
        print(write.document(args.dir, args.output or args.dir[0] / write.NAME)[1], end="")
        return 0
    if args.format:
        document, _ = write.document(args.dir, args.output or args.dir[0] / write.NAME)
        print(ci.written(args.format, [read_run(path) for path in args.dir], document), end="")
        return 0
    with working("writing the report"):
        path, document = write.write(args.dir, args.output)
    print(path)
    if document.warning:
        say(document.warning)
    say(document.answer[0])
    return 0

"""Write DIR/report.html (or .md, .csv) from the run in DIR alone and print its path as the last line.

The HTML report is one file that needs no network. Beside it stands DIR/throughput.svg, the throughput chart
alone, on its own card, for a README.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.errors import BenchError
from bench.report import configs, csvfile, html, markdown
from bench.report.model import Report, arrange
from bench.results import Run, read_run

FORMATS = ("html", "md", "csv")
PICTURE = "throughput.svg"

SUMMARY = "write a run's report: HTML (with its throughput chart as SVG), Markdown or CSV"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="folder of a run")
    parser.add_argument("--format", choices=FORMATS, default="html", help="html (default), md or csv")


def main(args: argparse.Namespace) -> int:
    """Write the report and print its path. Raises BenchError, in one line, when it cannot."""
    print(write(args.directory, args.format))
    return 0


def write(directory: Path, form: str = "html") -> Path:
    """Write the report of the run in `directory` and return its path. Raises BenchError."""
    report = arrange(read_measured(directory))
    path = directory / f"report.{form}"
    if form == "html":
        _write(path, html.render(report, configs.read_configs(directory)))
        if (picture := html.picture(report)) is not None:
            _write(directory / PICTURE, picture)
    else:
        _write(path, markdown.render(report) if form == "md" else csvfile.render(report))
    return path


def read_measured(directory: Path) -> Run:
    """The run in `directory`, which must hold at least one trial. Raises BenchError."""
    run = read_run(directory)
    if not run.trials:
        raise BenchError(
            f"{directory}: the run has no trials; finish it with `python -m bench run --resume {directory}`"
        )
    return run


def _write(path: Path, text: str) -> None:
    """Write beside and rename, so that nobody opens half a report."""
    beside = path.with_name(path.name + ".new")
    try:
        beside.write_text(text, encoding="utf-8", newline="")
        beside.replace(path)
    except OSError as error:
        raise BenchError(f"{path}: cannot be written: {error.strerror}") from None


__all__ = ["FORMATS", "PICTURE", "Report", "add_arguments", "arrange", "main", "read_measured", "write"]

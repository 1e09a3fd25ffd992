"""Write DIR/report.html (or .md, .csv) from the run in DIR alone and print its path as the last line.

The HTML report is one file that needs no network. Beside it stands DIR/throughput.svg, the throughput chart
alone, on its own card, for a README.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.errors import BenchError
from bench.report import configs, csv, html, markdown, redact
from bench.report.model import Report, arrange
from bench.report.reproduction import compared, side_by_side
from bench.results import reproduction
from bench.results.folder import Run, read_run

FORMATS = ("html", "md", "csv")
PICTURE = "throughput.svg"


def write(directory: Path, form: str = "html") -> Path:
    """Write the report of the run or reproduction in `directory` and return its path. Raises BenchError.

    A reproduction's runs get their own reports too, each in its folder.
    """
    if reproduction.is_reproduction(directory):
        return _write_reproduction(directory, form)
    report = arrange(read_measured(directory))
    path = directory / f"report.{form}"
    files = configs.read_configs(directory)
    places = redact.places(directory, (file.text for rendered in files.values() for file in rendered))
    if form == "html":
        _write(path, html.render(report, files), places)
        if (picture := html.picture(report)) is not None:
            _write(directory / PICTURE, picture, places)
    else:
        _write(path, markdown.render(report) if form == "md" else csv.render(report), places)
    return path


def _write_reproduction(directory: Path, form: str) -> Path:
    found = side_by_side.read(directory)
    for part in found.parts:
        if part.report:
            write(directory / part.name, form)
    path = directory / f"report.{form}"
    _write(path, compared.FORMS[form](found), redact.places(directory))
    return path


def read_measured(directory: Path) -> Run:
    """The run in `directory`, which must hold at least one trial. Raises BenchError."""
    run = read_run(directory)
    if not run.trials:
        raise BenchError(
            f"{directory}: the run has no trials; finish it with `python -m bench run --resume {directory}`"
        )
    return run


def _write(path: Path, text: str, places: Mapping[str, str]) -> None:
    """Write beside and rename, so that nobody opens half a report; no path of this machine is in it."""
    beside = path.with_name(path.name + ".new")
    try:
        beside.write_text(redact.placed(text, places), encoding="utf-8", newline="")
        beside.replace(path)
    except OSError as error:
        raise BenchError(f"{path}: cannot be written: {error.strerror}") from None


__all__ = ["FORMATS", "PICTURE", "Report", "arrange", "read_measured", "write"]

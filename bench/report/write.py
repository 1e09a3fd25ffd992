"""Write the report of a run, of faults or of a reproduction beside its files.

The report is one file that needs no network. Beside it lies throughput.svg: the throughput chart alone, for a
README.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from bench.errors import BenchError
from bench.report import html, redact, rendered_configs
from bench.report.arrange import arrange
from bench.report.faults import page as faults_page
from bench.report.faults.model import arrange as arrange_faults
from bench.report.reproduction import page as reproduction_page
from bench.report.reproduction import side_by_side
from bench.results import reproduction
from bench.results.faults import FaultsRun, is_faults, read_faults
from bench.results.folder import Run, read_run

NAME = "report.html"
PICTURE = "throughput.svg"
FAULTS = "faults"  # the folder of faults beside a run


def write_report(directory: Path) -> Path:
    """Write the report of the run, faults or reproduction in `directory` and return its path. Raises BenchError.

    Each run of a reproduction gets a report of its own in its folder, too.
    """
    if reproduction.is_reproduction(directory):
        return _write_reproduction(directory)
    if is_faults(directory):
        return _write_faults(directory)
    report = arrange(read_measured(directory), faults_beside(directory))
    files = rendered_configs.read_configs(directory)
    places = redact.places(directory, (file.text for rendered in files.values() for file in rendered))
    path = directory / NAME
    write_text(path, html.render(report, rendered_configs.by_stack(files, places)), places)
    if (picture := html.picture(report)) is not None:
        write_text(directory / PICTURE, picture, places)
    return path


def _write_reproduction(directory: Path) -> Path:
    found = side_by_side.read(directory)
    for part in found.parts:
        if part.report or part.faults:
            write_report(directory / part.name)
    path = directory / NAME
    write_text(path, reproduction_page.render(found), redact.places(directory))
    return path


def _write_faults(directory: Path) -> Path:
    run = read_faults(directory)
    if not run.outcomes:
        raise BenchError(f"{directory}: no fault was made; go on with `python -m bench faults --resume {directory}`")
    path = directory / NAME
    write_text(path, faults_page.render(arrange_faults(run)), redact.places(directory))
    return path


def faults_beside(directory: Path) -> FaultsRun | None:
    """The faults that were made for a run, in the folder `faults` beside its files; None without."""
    folder = directory / FAULTS
    return read_faults(folder) if is_faults(folder) else None


def read_measured(directory: Path) -> Run:
    """The run in `directory`, which must hold at least one trial. Raises BenchError."""
    run = read_run(directory)
    if not run.trials:
        raise BenchError(f"{directory}: the run has no trials; finish it with `{run.resume_command()}`")
    return run


def write_text(path: Path, text: str, places: Mapping[str, str]) -> None:
    """Write a temporary file and rename it, so that nobody opens half a report; paths of this machine are replaced."""
    temporary = path.with_name(path.name + ".new")
    try:
        temporary.write_text(redact.placed(text, places), encoding="utf-8", newline="")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise BenchError(f"{path}: cannot be written: {error.strerror}") from None

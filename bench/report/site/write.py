"""Write a site of several runs: ``index.html`` with everything in it, and ``runs/``, a JSON file a run.

The page is made from the files in ``runs/`` alone. A file that somebody else made is shown after the next writing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from bench.errors import BenchError
from bench.report import html, redact
from bench.report.arrange import arrange
from bench.report.site import arrange as site
from bench.report.site import summary
from bench.report.write import FAULTS, faults_beside, read_measured, write_text
from bench.results import reproduction
from bench.results.faults import INFO_FILE, is_faults, read_faults
from bench.results.folder import RUN_FILE, read_run
from bench.results.site import RUNS_DIRECTORY, SiteRun, read_site

INDEX = "index.html"


def write_site(directory: Path, runs: Iterable[Path] = ()) -> Path:
    """Add the runs to the site in `directory`, write its page and return its path. Raises BenchError.

    `runs` are folders of runs, faults and reproductions. Nothing is written when one of them cannot be read.
    """
    if any((directory / name).exists() for name in (RUN_FILE, INFO_FILE, reproduction.FILE)):
        raise BenchError(f"{directory}: a folder of results; give --site another folder for the site")
    added = [(folder, run) for given in runs for folder, run in _summaries(given)]
    known = read_site(directory)
    if not added and not known:
        raise BenchError(f"{directory}: no run in its folder {RUNS_DIRECTORY} and none given; name folders of results")
    try:
        (directory / RUNS_DIRECTORY).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"{directory}: cannot be made: {error.strerror}") from None
    for folder, run in added:
        text = msgspec.json.format(msgspec.json.encode(run), indent=1).decode() + "\n"
        write_text(directory / RUNS_DIRECTORY / summary.file_name(run), text, redact.places(folder))
    write_text(directory / INDEX, page(site.AllRuns(read_site(directory))), {})
    return directory / INDEX


def page(found: site.AllRuns) -> str:
    """The page, which loads nothing."""
    context = {"title": found.title, "site": found, "day": site.day, "deployment": site.deployment}
    return html.document("site.html.j2", context, ("report.js", "site.js"))


def _summaries(directory: Path) -> Iterator[tuple[Path, SiteRun]]:
    """The runs of a folder of results, each with the folder it is in."""
    place = directory.resolve()
    name = f"{place.parent.name}-{FAULTS}" if place.name == FAULTS else place.name
    if reproduction.is_reproduction(directory):
        for part in reproduction.read(directory).parts:
            folder = directory / part.name
            if is_faults(folder) or ((folder / RUN_FILE).exists() and read_run(folder).trials):
                for where, run in _summaries(folder):
                    yield where, replace(run, name=f"{name}-{part.name}")
    elif is_faults(directory):
        found = read_faults(directory)
        if not found.outcomes:
            raise BenchError(f"{directory}: no fault was made; leave it out")
        yield directory, summary.of_faults(found, name)
    else:
        report = arrange(read_measured(directory), faults_beside(directory))
        yield directory, summary.of_run(report, name)

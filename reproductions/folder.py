"""The folder of a reproduction: a run or faults for each part, and `reproduction.json`, the list of the parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated

from bench.means import means
from bench.measure.records.folder import RUN_FILE, convert, read_json, read_run, require_format, write_json
from bench.measure.records.records import ResultsError
from bench.verify.outcome import Outcome
from reproductions.figures import Figures
from reproductions.published import publications

FORMAT = 4
FILE = "reproduction.json"
# The folder of the outcomes of checks, a file each.
CHECKS = "checks"


@dataclass(frozen=True)
class PartRecord:
    """The state of a part."""

    name: Annotated[str, means("Name of the part, and of its folder.")]
    reason: Annotated[str | None, means("Why it cannot run here; null when it ran or is still to run.")] = None
    notes: Annotated[tuple[str, ...], means("What differs from the publication, and why.")] = ()


@dataclass(frozen=True)
class Reproduction:
    """The published benchmark of a folder, and the options."""

    format: Annotated[int, means("Version of this file's format.")]
    benchmark: Annotated[str, means("Name of the published benchmark.")]
    quick: Annotated[bool, means("True when rounds and seconds were shortened.")]
    started_at: Annotated[str, means("When it began, ISO 8601 with offset.")]
    finished_at: Annotated[str | None, means("When it ended; null when it was stopped and can be resumed.")]
    parts: Annotated[tuple[PartRecord, ...], means("Its parts.")]
    guards: Annotated[tuple[str, ...], means("Guards with other bounds than usual, as NAME=BOUND or NAME=off.")] = ()

    def part(self, name: str) -> PartRecord:
        """The state of a part."""
        return next(part for part in self.parts if part.name == name)

    def with_part(self, done: PartRecord) -> Reproduction:
        """The same with the record of a part."""
        return replace(self, parts=tuple(done if part.name == done.name else part for part in self.parts))


def read(directory: Path) -> Reproduction:
    """The reproduction.json of `directory`. Raises ResultsError, in one line, for an unreadable file."""
    path = directory / FILE
    if not path.exists():
        raise ResultsError(
            f"{directory}: not a reproduction, it has no {FILE}; give a folder that `python -m reproductions` made"
        )
    content = read_json(path)
    require_format(path, content, FORMAT)
    reproduction = convert(Reproduction, content, path)
    if reproduction.benchmark not in publications():
        raise ResultsError(f"{path}: no published benchmark called {reproduction.benchmark!r}")
    return reproduction


def write(directory: Path, record: Reproduction) -> None:
    """Write reproduction.json, whole or not at all."""
    write_json(directory / FILE, record)


def figures(directory: Path, record: Reproduction) -> Figures:
    """The measurements of all parts so far."""
    folders = [directory / part.name for part in record.parts]
    runs = [read_run(folder) for folder in folders if (folder / RUN_FILE).exists()]
    return Figures(
        runs=[run for run in runs if not run.info.plan.faults],
        outcomes=list(chain.from_iterable(run.latest_outcomes.values() for run in runs)),
        left_out={part.name: part.reason for part in record.parts if part.reason},
        parts=publications()[record.benchmark].parts,
        checks=_checks(directory / CHECKS),
    )


def _checks(directory: Path) -> list[Outcome]:
    """The outcomes of checks made for a claim."""
    outcomes: list[Outcome] = []
    for path in sorted(directory.glob("*.json")):
        outcomes += convert(list[Outcome], read_json(path).get("outcomes"), path)
    return outcomes

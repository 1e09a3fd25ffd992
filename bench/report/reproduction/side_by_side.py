"""Arrange a reproduction for reading: published rows beside measured figures, each with a ratio to its own baseline.

Pure, except for `read`, which reads the folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.figures.stats import Estimate
from bench.report import numbers
from bench.report.arrange import arrange
from bench.report.model import Report
from bench.report.reproduction import claims
from bench.report.reproduction.claims import ClaimVerdict
from bench.report.reproduction.measured import Cell, MeasuredFigures, Place, quotient
from bench.report.reproduction.undecided import undecided
from bench.results import reproduction
from bench.results.faults import FaultsRun, is_faults, read_faults
from bench.results.folder import RUN_FILE, read_run
from bench.results.records import NO_LAYER, UNLIMITED
from bench.results.reproduction import Part, Reproduction

STABILITY = "stability"

Table = Mapping[str, Any]  # a table of published.toml


@dataclass(frozen=True)
class PublishedColumn:
    """A figure that every row of the publication has."""

    key: str
    title: str
    metric: str
    place: Place  # added to the place of a row
    variant: str  # added to the name of a row's stack
    lower_is_better: bool
    is_published: bool  # whether any row of the publication has it

    @property
    def show(self) -> numbers.Show:
        """How its figures are written."""
        return numbers.mebibytes if self.metric == "memory_total" else numbers.number

    @property
    def is_rating(self) -> bool:
        """Whether it holds stability ratings instead of numbers."""
        return self.metric == STABILITY


@dataclass(frozen=True)
class PublishedFigure:
    """One figure as published and as measured here, each with the ratio to its own baseline."""

    published: float | str | None
    published_ratio: float | None
    measured: Estimate | str | None  # a text for ratings
    ratio: Estimate | None
    why: str  # why nothing was measured; empty where something was
    reasons: tuple[str, ...] = ()  # why a rating is below HIGH


@dataclass(frozen=True)
class PublishedRow:
    """One row of the publication, or one added here."""

    title: str
    details: str
    stack: str
    layer: str
    size: str
    added: bool
    baseline: bool
    against: str  # title of the baseline of its ratios
    against_size: str
    figures: tuple[PublishedFigure, ...]  # one a column


@dataclass(frozen=True)
class RunPart(Part):
    """One run of the reproduction, or its faults; both are None when it could not run."""

    report: Report | None = None
    faults: FaultsRun | None = None


@dataclass(frozen=True)
class Reproduced:
    """A reproduction as every form of its report shows it."""

    record: Reproduction
    data: Table
    parts: tuple[RunPart, ...]
    columns: tuple[PublishedColumn, ...]
    rows: tuple[PublishedRow, ...]
    verdicts: tuple[ClaimVerdict, ...]
    undecided: Mapping[str, list[Cell]]  # part -> what to measure further, because a claim is open

    @property
    def reports(self) -> list[Report]:
        """The reports of the parts that ran."""
        return [part.report for part in self.parts if part.report]


def read(directory: Path) -> Reproduced:
    """The reproduction in a folder. Raises BenchError when it holds no trial yet."""
    record = reproduction.read(directory)
    parts = tuple(_part(directory, part) for part in record.parts)
    if not any(part.report for part in parts):
        raise BenchError(
            f"{directory}: no part of it has a trial yet; "
            f"resume it with `python -m bench reproduce --resume {directory}`"
        )
    return _arranged(record, parts)


def _part(directory: Path, part: Part) -> RunPart:
    folder = directory / part.name
    run = read_run(folder) if (folder / RUN_FILE).exists() else None
    made = read_faults(folder) if is_faults(folder) else None
    report = arrange(run) if run and run.trials else None
    return RunPart(part.name, part.reason, part.notes, report, made if made and made.outcomes else None)


def _arranged(record: Reproduction, parts: tuple[RunPart, ...]) -> Reproduced:
    """The table and the verdicts of a reproduction. Pure."""
    data = reproduction.benchmarks()[record.benchmark]
    planned = {part["name"]: part for part in reproduction.parts_of(record.benchmark)}
    left_out = [(planned[part.name], part.reason) for part in parts if part.reason and part.name in planned]
    made = [outcome for part in parts if part.faults for outcome in part.faults.latest.values()]
    ran = [part for part in parts if part.report]
    measured = MeasuredFigures([part.report for part in ran if part.report], left_out, made, record.looks)
    columns = tuple(_column(column, data) for column in data["columns"])
    rows = tuple(_row(row, data, columns, measured) for row in data["rows"])
    still_open = {ran[index].name: cells for index, cells in undecided(data, measured).items()}
    return Reproduced(record, data, parts, columns, rows, tuple(claims.verdicts(data, measured)), still_open)


def _column(column: Table, data: Table) -> PublishedColumn:
    return PublishedColumn(
        key=column["key"],
        title=column["title"],
        metric=column["metric"],
        place={key: column[key] for key in ("workload", "level", "pick") if key in column},
        variant=column.get("variant", ""),
        lower_is_better=column.get("better") == "lower",
        is_published=any(column["key"] in row for row in data["rows"]),
    )


def _row(row: Table, data: Table, columns: Sequence[PublishedColumn], measured: MeasuredFigures) -> PublishedRow:
    base = _baseline(row, data)
    place = _place(row, data)
    return PublishedRow(
        title=row["title"],
        details=row.get("details", ""),
        stack=place["stack"],
        layer=place.get("layer", NO_LAYER),
        size=place.get("size", UNLIMITED),
        added=bool(row.get("added")),
        baseline=row is base,
        against=base["title"],
        against_size=base.get("size", UNLIMITED),
        figures=tuple(_figure(row, base, column, data, measured) for column in columns),
    )


def _baseline(row: Table, data: Table) -> Table:
    """The baseline of a row: the one of its size, else the first one."""
    bases: list[Table] = [other for other in data["rows"] if other.get("baseline")]
    return next((base for base in bases if base.get("size") == row.get("size")), bases[0])


def _place(row: Table, data: Table) -> dict[str, Any]:
    own = {key: row[key] for key in ("stack", "layer", "size", "workload") if key in row}
    return {key: value for key, value in {**data.get("here", {}), **own}.items() if key != "pick"}


def _at(row: Table, column: PublishedColumn, data: Table) -> dict[str, Any]:
    """Where to find the figure of a row in a column. A workload of the row wins over that of the column."""
    place = {**_place(row, data), **column.place}
    if "workload" in row:
        place["workload"] = row["workload"]
    if column.variant:
        separator = "," if "@" in place["stack"] else "@"
        place["stack"] += separator + column.variant
    return place


def _figure(
    row: Table, base: Table, column: PublishedColumn, data: Table, measured: MeasuredFigures
) -> PublishedFigure:
    published = row.get(column.key)
    place = _at(row, column, data)
    if column.is_rating:
        rating, why = measured.stability(place)
        reasons = rating.reasons if rating else ()
        return PublishedFigure(published, None, rating.rating if rating else None, None, why, reasons)
    figure = measured.figure(place, column.metric)
    if row is base:
        return PublishedFigure(published, 1.0 if published else None, figure.estimate, None, figure.why)
    first = base.get(column.key)
    baseline = measured.figure(_at(base, column, data), column.metric)
    return PublishedFigure(
        published,
        published / first if published and first else None,
        figure.estimate,
        quotient(figure, baseline) if figure.rounds and baseline.rounds else None,
        figure.why,
    )

"""A reproduction arranged for reading: published rows beside what was measured, each against its own baseline, and the
claims. Pure but for `read`, which reads the folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.figures.stats import Spread
from bench.report import numbers
from bench.report.model import Report, arrange
from bench.report.reproduction import claims
from bench.report.reproduction.claims import Finding
from bench.report.reproduction.reading import Place, Reading, quotient
from bench.results import reproduction
from bench.results.folder import RUN_FILE, read_run
from bench.results.reproduction import Reproduction

STABILITY = "stability"


@dataclass(frozen=True)
class Column:
    """A figure that every row of the table has."""

    key: str
    title: str
    metric: str
    place: Place  # what it adds to a row's place
    variant: str
    lower_is_better: bool
    is_published: bool  # whether a row of the publication has it

    @property
    def show(self) -> Callable[[float | None], str]:
        """How its figures are written."""
        return numbers.mebibytes if self.metric == "memory_total" else numbers.number

    @property
    def is_rating(self) -> bool:
        """True where it is a word and not a number."""
        return self.metric == STABILITY


@dataclass(frozen=True)
class Cell:
    """One figure: as published, as measured here, and each against the baseline of its own side."""

    published: float | str | None
    published_ratio: float | None
    measured: Spread | str | None
    ratio: Spread | None
    why: str  # why nothing was measured; empty where something was
    reasons: tuple[str, ...] = ()  # what made a rating less than HIGH


@dataclass(frozen=True)
class Line:
    """One row of the publication, or one that it left out."""

    title: str
    details: str
    stack: str
    layer: str
    size: str
    added: bool
    baseline: bool
    against: str  # title of the baseline that its ratios are against
    against_size: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class PartReport:
    """One run of the reproduction; `report` is None where it could not run."""

    name: str
    reason: str | None
    notes: tuple[str, ...]
    report: Report | None


@dataclass(frozen=True)
class Reproduced:
    """A reproduction as every form of its report shows it."""

    directory: Path
    record: Reproduction
    data: Mapping[str, Any]
    parts: tuple[PartReport, ...]
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    findings: tuple[Finding, ...]

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
            f"{directory}: no part of it has a trial yet; go on with `python -m bench reproduce --resume {directory}`"
        )
    return arranged(directory, record, parts)


def _part(directory: Path, part: reproduction.Part) -> PartReport:
    folder = directory / part.name
    run = read_run(folder) if (folder / RUN_FILE).exists() else None
    reason = part.reason if run is None or part.reason else None
    return PartReport(part.name, reason, part.notes, arrange(run) if run and run.trials else None)


def arranged(directory: Path, record: Reproduction, parts: Sequence[PartReport]) -> Reproduced:
    """The reproduction's table and findings. Pure."""
    data = reproduction.benchmarks()[record.benchmark]
    planned = {part["name"]: part for part in data["parts"]}
    left_out = [(planned[part.name], part.reason) for part in parts if part.reason and part.name in planned]
    reading = Reading([part.report for part in parts if part.report], left_out)
    columns = tuple(_column(column, data) for column in data["columns"])
    lines = tuple(_line(row, data, columns, reading) for row in data["rows"])
    return Reproduced(directory, record, data, tuple(parts), columns, lines, tuple(claims.findings(data, reading)))


def _column(column: Mapping[str, Any], data: Mapping[str, Any]) -> Column:
    return Column(
        key=column["key"],
        title=column["title"],
        metric=column["metric"],
        place={key: column[key] for key in ("workload", "level", "pick") if key in column},
        variant=column.get("variant", ""),
        lower_is_better=column.get("better") == "lower",
        is_published=any(column["key"] in row for row in data["rows"]),
    )


def _line(row: Mapping[str, Any], data: Mapping[str, Any], columns: Sequence[Column], reading: Reading) -> Line:
    base = _baseline(row, data)
    place = _place(row, data)
    return Line(
        title=row["title"],
        details=row.get("details", ""),
        stack=place["stack"],
        layer=place.get("layer", "none"),
        size=place.get("size", "unlimited"),
        added=bool(row.get("added")),
        baseline=row is base,
        against=base["title"],
        against_size=base.get("size", "unlimited"),
        cells=tuple(_cell(row, base, column, data, reading) for column in columns),
    )


def _baseline(row: Mapping[str, Any], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row that a row is compared with: the baseline of its size, else the first one."""
    bases = [other for other in data["rows"] if other.get("baseline")]
    return next((base for base in bases if base.get("size") == row.get("size")), bases[0])


def _place(row: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: row[key] for key in ("stack", "layer", "size", "workload") if key in row}
    return {key: value for key, value in {**data.get("here", {}), **own}.items() if key != "pick"}


def _at(row: Mapping[str, Any], column: Column, data: Mapping[str, Any]) -> dict[str, Any]:
    """Where the figure of a row's column is found. What the row says itself stands, such as its workload."""
    place = {**_place(row, data), **column.place}
    if "workload" in row:
        place["workload"] = row["workload"]
    if column.variant:
        joint = "," if "@" in place["stack"] else "@"
        place["stack"] += joint + column.variant
    return place


def _cell(
    row: Mapping[str, Any], base: Mapping[str, Any], column: Column, data: Mapping[str, Any], reading: Reading
) -> Cell:
    published = row.get(column.key)
    place = _at(row, column, data)
    if column.is_rating:
        rating, why = reading.stability(place)
        reasons = rating.reasons if rating else ()
        return Cell(published, None, rating.rating if rating else None, None, why, reasons)
    figure = reading.figure(place, column.metric)
    if row is base:
        return Cell(published, 1.0 if published else None, figure.spread, None, figure.why)
    first = base.get(column.key)
    ratio = published / first if published and first else None
    baseline = reading.figure(_at(base, column, data), column.metric)
    measured = quotient(figure, baseline) if figure.rounds and baseline.rounds else None
    return Cell(published, ratio, figure.spread, measured, figure.why)

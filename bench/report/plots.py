"""The charts with many points, as data for uPlot: memory over time, percentile curves, latency and queue against load.

Each of them stands beside static charts and a table of the same figures, which need no script. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.report import capacity, small_charts
from bench.report.line_charts import Point, thinned
from bench.report.model import MEASURED, OPEN, CaseRow, Panel, Report
from bench.report.numbers import MIB, one_line
from bench.results.records import NO_LAYER

MEMORY, CURVES, LATENCY, QUEUE, LEVELS = "memory", "curves", "latency", "queue", "levels"
MAX_POINTS = 60  # of one line
FEWEST_POINTS = 3  # of the longest line: less is no curve
SHOWN = 4  # lines that are drawn at first


@dataclass(frozen=True)
class Line:
    """One deployment: its name, its points from left to right, and whether it is drawn at first."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    shown: bool


@dataclass(frozen=True)
class Plot:
    """One chart: the labels of its axes, whether they are logarithmic, and its lines.

    percentiles  the horizontal axis holds 1 / the share of slower requests, and says percentiles
    """

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    percentiles: bool = False


Points = Mapping[CaseRow, Sequence[Point]]


@dataclass(frozen=True)
class Plots:
    """The plots of a page, each with its name there."""

    reports: tuple[Report, ...]

    @cached_property
    def _found(self) -> dict[tuple[str, Panel], Plot]:
        panels = [(report, panel) for report in self.reports for panel in report.main_panels]
        return {(kind, panel): plot for report, panel in panels for kind, plot in _plots(report, panel)}

    @cached_property
    def _names(self) -> dict[tuple[str, Panel], str]:
        return {key: f"plot{number}" for number, key in enumerate(self._found, 1)}

    def name(self, kind: str, panel: Panel) -> str:
        """The name of a plot in the page; empty without one."""
        return self._names.get((kind, panel), "")

    @property
    def data(self) -> dict[str, Plot]:
        """Name -> plot."""
        return {self._names[key]: plot for key, plot in self._found.items()}


def _plots(report: Report, panel: Panel) -> Iterator[tuple[str, Plot]]:
    memory = {row: _memory(row) for row in panel.rows if row.outcome == MEASURED}
    yield from _worth(MEMORY, panel, memory, lambda lines: Plot("Memory of all servers over time", "s", "MiB", lines))
    if panel.setting.mode == OPEN:
        yield from _latencies(report, panel)


def _latencies(report: Report, panel: Panel) -> Iterator[tuple[str, Plot]]:
    """The plots of an open loop; latency of a saturated closed loop says little of what visitors see."""
    curves = {row: small_charts.curve(row) for row in panel.rows if row.outcome == MEASURED}
    yield from _worth(
        CURVES,
        panel,
        curves,
        lambda lines: Plot("Latency by percentile", "", "ms", lines, log_x=True, log_y=True, percentiles=True),
    )
    found = capacity.cases(report, panel)
    latency = {item.row: [(float(p.rate), p.latency_ms) for p in item.points if p.latency_ms] for item in found}
    percentile = found[0].limit.percentile if found else ""
    yield from _worth(
        LATENCY,
        panel,
        latency,
        lambda lines: Plot(f"{percentile} over load", "requests/s due", "ms", lines, log_y=True),
    )
    queue = {item.row: [(float(p.rate), p.in_flight) for p in item.points if p.in_flight] for item in found}
    yield from _worth(
        QUEUE, panel, queue, lambda lines: Plot("Requests in flight over load", "requests/s due", "", lines, log_y=True)
    )
    levels = _levels(report, panel)
    yield from _worth(
        LEVELS, panel, levels, lambda lines: Plot("p99 by level", "requests/s due", "ms", lines, log_y=True)
    )


def _worth(
    kind: str, panel: Panel, points: Points, make: Callable[[tuple[Line, ...]], Plot]
) -> Iterator[tuple[str, Plot]]:
    """The plot when a line has enough points to be a curve."""
    if max(map(len, points.values()), default=0) < FEWEST_POINTS:
        return
    first = set(_first(panel))
    if not any(row in first and line for row, line in points.items()):
        first = set(list(points)[:SHOWN])
    yield kind, make(tuple(_line(row, line, row in first) for row, line in points.items() if line))


def _first(panel: Panel) -> Iterable[CaseRow]:
    """The rows that are drawn at first: the fastest, its stack without a layer, and the next."""
    ranked = panel.ranked
    own = [row for row in ranked if ranked and row.stack == ranked[0].stack and row.layer == NO_LAYER]
    return list(dict.fromkeys([*ranked[:1], *own, *ranked[1:]]))[:SHOWN]


def _line(row: CaseRow, points: Sequence[Point], shown: bool) -> Line:
    kept = thinned(points, MAX_POINTS)
    name = one_line(f"{row.stack} with {row.layer}")
    return Line(name, tuple(_short(x) for x, _ in kept), tuple(_short(y) for _, y in kept), shown)


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _memory(row: CaseRow) -> list[Point]:
    """Memory of all servers and services, in the round in which its peak was highest."""
    rounds = [_summed(trial.memory) for trial in row.ok.values() if trial.memory]
    return max(rounds, key=lambda points: max((y for _, y in points), default=0.0), default=[])


def _summed(memory: dict[str, tuple[tuple[float, int], ...]]) -> list[Point]:
    """The sum over servers at each sample of the one with the most; the others' last sample before it counts."""
    series = [samples for samples in memory.values() if samples]
    if not series or len(series) < len(memory):
        return []
    return [(at, sum(_at(samples, at) for samples in series) / MIB) for at, _ in max(series, key=len)]


def _at(samples: Sequence[tuple[float, int]], at: float) -> int:
    before = [value for when, value in samples if when <= at + 0.01]
    return before[-1] if before else samples[0][1]


def _levels(report: Report, panel: Panel) -> Points:
    """p99 at each level; the rows of the highest level stand for their case."""
    found: dict[CaseRow, Sequence[Point]] = {}
    others = sorted(report.levels_of(panel), key=lambda other: other.setting.level)
    for row in panel.rows:
        same = [(other.setting.level, other.row(row.stack, row.layer)) for other in others]
        points = [
            (float(level), figure.median)
            for level, case in same
            if case is not None and (figure := case.figure("latency_p99_ms"))
        ]
        if points:
            found[row] = points
    return found

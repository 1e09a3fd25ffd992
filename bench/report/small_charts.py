"""Small line charts, one for each stack or case: memory over time, and figures by level. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from bench.figures import histogram
from bench.report.axis import LOG, scale_for
from bench.report.charts import layer_colour
from bench.report.findings import deployment
from bench.report.line_charts import LineScales, Point, Series, lines
from bench.report.model import MEASURED, OPEN, CaseRow, Panel, Report
from bench.report.numbers import MIB, mebibytes, median, one_line

Points = tuple[Point, ...]


@dataclass(frozen=True)
class SmallChart:
    """A small chart with its caption; `drawing` is None when nothing was measured."""

    heading: str
    subheading: str
    drawing: Markup | None
    remark: str


def memory_over_time(report: Report, panel: Panel) -> list[SmallChart]:
    """One chart for each measured row: a line for each server or service and round."""
    rows = [row for row in panel.rows if row.outcome == MEASURED]
    samples = {row: _memory_samples(row) for row in rows}
    points = [point for servers in samples.values() for lines in servers.values() for line in lines for point in line]
    colours = {name: index + 1 for index, name in enumerate(report.servers)}
    scales = LineScales(
        [y for _, y in points], report.servers, "MiB", x_unit="s", x_high=max((x for x, _ in points), default=0.0)
    )

    def small(row: CaseRow) -> SmallChart:
        series = [Series(name, colours[name], tuple(lines)) for name, lines in samples[row].items() if lines]
        title = f"Memory over time, {deployment(row).replace('`', '')}"
        remark = f"peak {median(row.memory_total, mebibytes)} MiB" if row.memory_total else ""
        subheading = row.layer if len(report.layers) > 1 else ""
        return SmallChart(row.stack, subheading, lines(series, scales, title=title) if series else None, remark)

    return [small(row) for row in rows]


def _memory_samples(row: CaseRow) -> dict[str, list[Points]]:
    """Server or service -> one line a round, in seconds and MiB."""
    found: dict[str, list[Points]] = {}
    for trial in row.ok.values():
        for name, samples in (trial.memory or {}).items():
            if samples:
                found.setdefault(name, []).append(tuple((at, pss / MIB) for at, pss in samples))
    return found


CURVE = (0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.99, 99.999)


def curve(row: CaseRow) -> Points:
    """Latency over all rounds: 1 / the share of slower requests, and ms; empty without histograms."""
    merged = histogram.merged(trial.histogram for trial in row.ok.values())
    found = ((percent, histogram.percentile_ms(merged, percent)) for percent in CURVE)
    return tuple((1 / (1 - percent / 100), value) for percent, value in found if value is not None)


def percentile_curves(report: Report, panel: Panel) -> list[SmallChart]:
    """The percentiles of the latency: one chart a stack, a line a layer; empty without histograms."""
    points = {(row.stack, row.layer): line for row in panel.rows if (line := curve(row))}
    if not points:
        return []
    shares, latencies = ([point[axis] for line in points.values() for point in line] for axis in (0, 1))
    scales = LineScales(
        [value for value in latencies if value > 0] or latencies,
        _names(report),
        "ms",
        scale_for(latencies),
        "1 in so many requests is slower",
        x_high=max(shares),
        x_values=shares,
        x_scale=LOG,
    )
    return _by_stack(report, points, scales, "Percentiles of the latency in ms, by 1 in so many slower requests")


def rate_by_level(report: Report, panel: Panel) -> list[SmallChart]:
    """Requests/s by level: one chart a stack, a line a layer; empty with one level only."""
    points = _by_level(report, panel, lambda row: (float(row.setting.level), row.rate.median) if row.rate else None)
    if not points:
        return []
    rates = [y for line in points.values() for _, y in line]
    scales = LineScales(
        rates,
        _names(report),
        y_scale=scale_for(rates),
        x_unit="requests/s asked" if panel.setting.mode == OPEN else "connections",
        x_high=max(float(other.setting.level) for other in report.levels_of(panel)),
    )
    return _by_stack(report, points, scales, "Requests/s by level")


def latency_by_rate(report: Report, panel: Panel) -> list[SmallChart]:
    """p99 over requests/s, a point a level: one chart a stack, a line a layer; empty with one level only."""

    def point(row: CaseRow) -> Point | None:
        latency = row.figure("latency_p99_ms")
        return (row.rate.median, latency.median) if row.rate and latency else None

    points = _by_level(report, panel, point)
    if not points:
        return []
    rates, latencies = ([point[axis] for line in points.values() for point in line] for axis in (0, 1))
    scales = LineScales(
        latencies,
        _names(report),
        y_scale=scale_for(latencies),
        x_unit="requests/s",
        x_high=max(rates),
        x_values=rates,
        x_scale=scale_for(rates),
    )
    return _by_stack(report, points, scales, "p99 in ms over requests/s")


def _by_level(report: Report, panel: Panel, point: Callable[[CaseRow], Point | None]) -> dict[tuple[str, str], Points]:
    """(stack, layer) -> its points, lowest level first; empty with one level only."""
    panels = sorted(report.levels_of(panel), key=lambda other: other.setting.level)
    found: dict[tuple[str, str], list[Point]] = {}
    for row in (row for other in panels for row in other.rows if len(panels) > 1):
        if (place := point(row)) is not None:
            found.setdefault((row.stack, row.layer), []).append(place)
    return {key: tuple(line) for key, line in found.items()}


def _by_stack(
    report: Report, points: dict[tuple[str, str], Points], scales: LineScales, title: str
) -> list[SmallChart]:
    charts = []
    for stack in report.stacks:
        series = [
            Series(name, layer_colour(report, layer), (points[stack, layer],))
            for layer, name in zip(report.layers, _names(report), strict=True)
            if (stack, layer) in points
        ]
        if series:
            drawing = lines(series, scales, title=f"{title}, {one_line(stack)}", points=True)
            charts.append(SmallChart(stack, "", drawing, ""))
    return charts


def _names(report: Report) -> list[str]:
    """The names at the ends of the layers' lines; none when there is one layer only."""
    return [layer if len(report.layers) > 1 else "" for layer in report.layers]


def lacks_latency(report: Report, panel: Panel) -> bool:
    """Whether a level has requests/s but no p99, so that it has no point in `latency_by_rate`."""
    return any(row.rate and row.figure("latency_p99_ms") is None for row in rows_by_level(report, panel))


def rows_by_level(report: Report, panel: Panel) -> list[CaseRow]:
    """The measured rows of every level: the table beside the charts by level."""
    rows = [row for other in report.levels_of(panel) for row in other.rows if row.outcome == MEASURED]
    stacks, layers = report.stacks, report.layers
    return sorted(rows, key=lambda row: (stacks.index(row.stack), layers.index(row.layer), row.setting.level))

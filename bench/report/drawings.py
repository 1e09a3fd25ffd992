"""From the report's rows to its charts: which figures each chart shows and what stands beside them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from bench.report import chart
from bench.report.answers import deployment, setting_title
from bench.report.axis import LINEAR, LOG, scale_for
from bench.report.model import BASELINE, FAILED, MEASURED, Panel, Report, Row
from bench.report.numbers import (
    DASH,
    MIB,
    NOT_MEASURED,
    TIMES,
    as_published,
    mebibytes,
    median,
    number,
    one_line,
    range_of,
    times,
)
from bench.report.published import Caching
from bench.stats import Spread

PERCENTILES = (("p50", "latency_p50_ms"), ("p90", "latency_p90_ms"), ("p99", "latency_p99_ms"))


@dataclass(frozen=True)
class View:
    """One chart in the widths of a screen and of a telephone, under the name of its scale."""

    name: str
    wide: Markup
    narrow: Markup


@dataclass(frozen=True)
class Small:
    """One of many small charts: what it is of, its drawing (None: not measured) and a closing remark."""

    heading: str
    subheading: str
    drawing: Markup | None
    remark: str


def picture(report: Report, panel: Panel) -> Markup:
    """The throughput chart alone, in a width for a page of text."""
    groups = _groups(report, panel, lambda row: (row.rate,), _rate_columns, _rate_title, everything=True)
    return chart.bars(
        groups,
        ("requests/s", f"{TIMES} {BASELINE}"),
        title=_title(report, "Throughput", panel),
        unit="requests/s",
        width=chart.PAGE,
        scale=scale_for(row.rate.median for row in panel.rows if row.rate),
    )


def throughput(report: Report, panel: Panel) -> list[View]:
    """Requests/s of every row, on the scale that suits the figures first and on the other one second."""
    groups = _groups(report, panel, lambda row: (row.rate,), _rate_columns, _rate_title, everything=True)
    rates = [row.rate.median for row in panel.rows if row.rate]
    first = scale_for(rates)
    draw = partial(
        chart.bars,
        groups,
        ("requests/s", f"{TIMES} {BASELINE}"),
        title=_title(report, "Throughput", panel),
        unit="requests/s",
    )
    return [_view(draw, scale) for scale in ((LOG, LINEAR) if first == LOG else (LINEAR, LOG))]


def latency(report: Report, panel: Panel) -> list[View]:
    """p50, p90 and p99 of every row, each the median of the rounds."""

    def figures(row: Row) -> tuple[Spread | None, ...]:
        return tuple(row.figure(field) for _, field in PERCENTILES)

    def title(row: Row) -> str:
        parts = [f"{name} {median(figure)} ms" for (name, _), figure in zip(PERCENTILES, figures(row), strict=True)]
        return f"{_plain(row)}: {', '.join(parts)}"

    groups = _groups(
        report,
        panel,
        figures,
        lambda row: tuple(map(median, figures(row))),
        title,
    )
    draw = partial(
        chart.percentiles,
        groups,
        tuple(f"{name} ms" for name, _ in PERCENTILES),
        title=_title(report, "Latency", panel),
        unit="ms",
    )
    return [_view(draw, scale_for(_medians(groups)))]


def memory_peak(report: Report, panel: Panel) -> list[View]:
    """Peak memory of every row, one part for each server or service."""
    names = report.servers

    def figures(row: Row) -> tuple[Spread | None, ...]:
        parts = row.memory_parts
        return tuple(_exactly(parts[name] / MIB) if name in parts else None for name in names)

    def title(row: Row) -> str:
        parts = [f"{name} {median(row.memory_peak(name), mebibytes)} MiB" for name in row.servers]
        return f"{_plain(row)}: {', '.join(parts)}"

    groups = _groups(report, panel, figures, lambda row: (median(row.memory_total, mebibytes),), title)
    title_text = _title(report, "Memory at the peak", panel)

    def draw(width: int, scale: str) -> Markup:
        return chart.stacked(groups, ("total MiB",), title=title_text, unit="MiB", width=width)

    return [_view(draw, LINEAR)]


def cpu(report: Report, panel: Panel) -> list[View]:
    """CPU seconds per 1,000 requests of every row, servers and services together."""
    groups = _groups(
        report,
        panel,
        lambda row: (row.cpu_total,),
        lambda row: (median(row.cpu_total),),
        lambda row: f"{_plain(row)}: {median(row.cpu_total)} CPU seconds per 1,000 requests",
    )
    draw = partial(
        chart.bars,
        groups,
        ("CPU s / 1,000",),
        title=_title(report, "CPU time", panel),
        unit="CPU s / 1,000",
    )
    return [_view(draw, scale_for(_medians(groups)))]


def published(report: Report, caching: Caching) -> list[View]:
    """Published and measured ratios to `none`, on one logarithmic scale."""
    entries = [
        chart.Entry(
            label=row.layer,
            colour=_colour(report, row.layer),
            figures=(_exactly(row.times_none), row.ratio),
            columns=(as_published(row.times_none) + TIMES, median(row.ratio, times) if row.ratio else DASH),
            title=f"{row.title}: published {as_published(row.times_none)}, measured {median(row.ratio, times)}",
        )
        for row in caching.strategies
        if row.layer != BASELINE
    ]
    draw = partial(
        chart.pairs,
        [(one_line(caching.stack or ""), entries)],
        ("published", "measured"),
        title="Published and measured ratios to none",
        unit=f"times {BASELINE}",
    )
    return [_view(draw, LOG)]


def memory_over_time(report: Report, panel: Panel) -> list[Small]:
    """One small chart for each measured row: a line for each server or service and round, one shared scale."""
    rows = [row for row in panel.rows if row.outcome == MEASURED]
    runs = {row: _memory_runs(row) for row in rows}
    points = [point for lines in runs.values() for line in lines.values() for run in line for point in run]
    colours = {name: index + 1 for index, name in enumerate(report.servers)}

    def small(row: Row) -> Small:
        series = [chart.Series(name, colours[name], tuple(lines)) for name, lines in runs[row].items() if lines]
        drawing = chart.lines(
            series,
            title=f"Memory over time, {_plain(row)}",
            x_unit="s",
            x_high=max(x for x, _ in points),
            y_values=[y for _, y in points],
            labels=report.servers,
        )
        remark = f"peak {median(row.memory_total, mebibytes)} MiB" if row.memory_total else ""
        return Small(row.stack, row.layer, drawing if series else None, remark)

    return [small(row) for row in rows]


def growth(report: Report, panel: Panel) -> list[Small]:
    """Requests/s as the level grows: one small chart a stack, a line a layer; empty with one level only."""
    same = [other for other in report.panels if _but_level(other) == _but_level(panel)]
    if len(same) < 2:
        return []
    points = {(stack, layer): _points(same, stack, layer) for stack in report.stacks for layer in report.layers}
    values = [value for line in points.values() for _, value in line]
    if not values:
        return []
    return [
        Small(
            stack,
            "",
            chart.lines(
                [
                    chart.Series(layer, _colour(report, layer), (points[stack, layer],))
                    for layer in report.layers
                    if points[stack, layer]
                ],
                title=f"Requests/s as the level grows, {one_line(stack)}",
                x_unit="connections",
                x_high=max(float(other.setting.level) for other in same),
                y_values=values,
                scale=scale_for(values),
                points=True,
                labels=report.layers,
            ),
            "",
        )
        for stack in report.stacks
        if any(points[stack, layer] for layer in report.layers)
    ]


# ---------------------------------------------------------------------------------------------- helpers


def _points(panels: list[Panel], stack: str, layer: str) -> tuple[tuple[float, float], ...]:
    rows = [row for panel in panels if (row := panel.row(stack, layer)) is not None and row.rate]
    return tuple(sorted((float(row.setting.level), row.rate.median) for row in rows))


def _but_level(panel: Panel) -> tuple[str, str, str, str]:
    setting = panel.setting
    return (setting.workload, setting.size, setting.database, setting.state)


def _memory_runs(row: Row) -> dict[str, list[tuple[tuple[float, float], ...]]]:
    """Server or service -> one line a round, in seconds and MiB."""
    runs: dict[str, list] = {}
    for trial in row.ok.values():
        for name, samples in (trial.memory or {}).items():
            if samples:
                runs.setdefault(name, []).append(tuple((at, pss / MIB) for at, pss in samples))
    return runs


def _view(draw: Callable[..., Markup], scale: str) -> View:
    name = "logarithmic" if scale == LOG else "linear"
    return View(name, draw(width=chart.WIDE, scale=scale), draw(width=chart.NARROW, scale=scale))


def _groups(
    report: Report,
    panel: Panel,
    figures: Callable[[Row], tuple[Spread | None, ...]],
    columns: Callable[[Row], tuple[str, ...]],
    title: Callable[[Row], str],
    *,
    everything: bool = False,
) -> chart.Groups:
    """Entries by stack. Cases without trials are named in the first chart (`everything`) and left out of the others."""

    def entry(row: Row) -> chart.Entry:
        note = _why_not(row)
        found = () if note else figures(row)
        if not note and not any(found):
            note = NOT_MEASURED
        return chart.Entry(
            label=one_line(row.layer) + _mark(row),
            colour=_colour(report, row.layer),
            figures=found or (None,),
            columns=() if note else columns(row),
            note=note,
            title=f"{_plain(row)}: {note}" if note else title(row),
        )

    shown = {
        stack: [entry(row) for row in rows if everything or row.outcome == MEASURED] for stack, rows in panel.groups
    }
    return [(one_line(stack), entries) for stack, entries in shown.items() if entries]


def _why_not(row: Row) -> str:
    """Why a row has no figures; empty where it has."""
    if row.outcome == MEASURED:
        return ""
    return "wrong answers" if row.outcome == FAILED and row.wrong else row.outcome


def _mark(row: Row) -> str:
    """What the caption under a chart explains: not every round, wrong answers."""
    return (" *" if row.ok and row.failed else "") + (" †" if row.ok and row.wrong else "")


def _plain(row: Row) -> str:
    return deployment(row).replace("`", "")


def _title(report: Report, what: str, panel: Panel) -> str:
    return f"{what}, {setting_title(report, panel).replace('`', '')}, {panel.setting.level:,} connections"


def _rate_columns(row: Row) -> tuple[str, ...]:
    ratio = "" if row.layer == BASELINE else times(row.times_none.median) if row.times_none else DASH
    return (median(row.rate), ratio)


def _rate_title(row: Row) -> str:
    ratio = f", {number(row.times_none.median)} times none" if row.times_none and row.layer != BASELINE else ""
    return f"{_plain(row)}: {median(row.rate)} requests/s ({range_of(row.rate)}){ratio}"


def _colour(report: Report, layer: str) -> int:
    """The baseline is grey; other layers keep their colour through the whole report."""
    others = [name for name in report.layers if name != BASELINE]
    return others.index(layer) + 1 if layer in others else 0


def _medians(groups: chart.Groups) -> Iterable[float]:
    return [figure.median for _, entries in groups for entry in entries for figure in entry.figures if figure]


def _exactly(value: float) -> Spread:
    return Spread(value, value, value, 1)

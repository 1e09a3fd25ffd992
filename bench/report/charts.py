"""From the rows of a report to its row charts: the marks of each chart and the values beside them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from markupsafe import Markup

from bench.figures.stats import Estimate, PooledPercentile
from bench.report import row_charts
from bench.report.axis import scale_for
from bench.report.findings import deployment, setting_title
from bench.report.model import FAILED, MEASURED, CaseRow, Panel, Report
from bench.report.numbers import DASH, MIB, NOT_MEASURED, TIMES, mebibytes, median, number, one_line, range_of, times
from bench.report.row_charts import ChartEntry, Groups, RowChart
from bench.results.records import NO_LAYER

MAX_LEADERS = 12  # rows of the chart that is open

PERCENTILES = (
    ("p50", "latency_p50_ms"),
    ("p90", "latency_p90_ms"),
    ("p99", "latency_p99_ms"),
    ("p99.9", "latency_p999_ms"),
)


@dataclass(frozen=True)
class Drawing:
    """One chart in two widths: a style sheet shows the one that fits, a screen's or a telephone's."""

    wide: Markup
    narrow: Markup

    @property
    def is_cut(self) -> bool:
        """Whether an interval ends outside the chart, which an arrow marks."""
        return "whisker beyond" in self.wide


@dataclass(frozen=True)
class RowFigures:
    """How a chart gets its figures from a row: the marks, the texts of its columns, and all of it in words."""

    marks: Callable[[CaseRow], tuple[Estimate | None, ...]]
    columns: Callable[[CaseRow], tuple[str, ...]]
    title: Callable[[CaseRow], str]


def drawing(draw: Callable[[RowChart, int], Markup], chart: RowChart) -> Drawing:
    """The chart in both widths."""
    return Drawing(draw(chart, row_charts.WIDE), draw(chart, row_charts.NARROW))


def throughput_picture(report: Report, panel: Panel) -> Markup:
    """The throughput chart alone, in a width for a page of text and without links."""
    chart = _throughput(report, panel)
    groups = [(name, [replace(entry, anchor="") for entry in entries]) for name, entries in chart.groups]
    return row_charts.bars(replace(chart, groups=groups), row_charts.PAGE)


def leaders(panel: Panel) -> Panel:
    """The panel with its fastest rows alone, and those without a layer on the same stacks; itself when it has few."""
    if len([row for row in panel.rows if row.ok]) <= MAX_LEADERS:
        return panel
    first = set(panel.ranked[: MAX_LEADERS // 2])
    stacks = {row.stack for row in first}
    groups = [
        (stack, tuple(row for row in rows if row in first or (row.layer == NO_LAYER and row.ok)))
        for stack, rows in panel.groups
        if stack in stacks
    ]
    return replace(panel, groups=tuple(groups))


def throughput(report: Report, panel: Panel) -> Drawing:
    """Requests/s of every row, and its ratio to the baseline."""
    return drawing(row_charts.bars, _throughput(report, panel))


def _throughput(report: Report, panel: Panel) -> RowChart:
    def columns(row: CaseRow) -> tuple[str, ...]:
        ratio = "" if row.layer == NO_LAYER else times(row.times_none.median) if row.times_none else DASH
        return (median(row.rate), ratio)

    def title(row: CaseRow) -> str:
        compared = row.times_none if row.layer != NO_LAYER else None
        ratio = f", {number(compared.median)} times {NO_LAYER}" if compared else ""
        return f"{_plain(row)}: {median(row.rate)} requests/s ({range_of(row.rate)}){ratio}"

    figures = RowFigures(lambda row: (row.rate,), columns, title)
    return RowChart(
        _groups(report, panel, figures, unmeasured=True),
        ("requests/s", f"{TIMES} {NO_LAYER}"),
        _title(report, "Throughput", panel),
        "requests/s",
        scale_for(row.rate.median for row in panel.rows if row.rate),
    )


def percentiles(panel: Panel) -> tuple[tuple[str, str], ...]:
    """The percentiles that a panel shows: p50, p90 and p99 always, p99.9 where a row has it."""
    return tuple(
        (name, field)
        for name, field in PERCENTILES
        if field != "latency_p999_ms" or any(row.figure(field) for row in panel.rows)
    )


def latency(report: Report, panel: Panel) -> Drawing:
    """The latency percentiles of every row."""
    shown = percentiles(panel)

    def figures(row: CaseRow) -> tuple[Estimate | None, ...]:
        return tuple(_as_estimate(row.figure(field)) for _, field in shown)

    def title(row: CaseRow) -> str:
        parts = [f"{name} {median(figure)} ms" for (name, _), figure in zip(shown, figures(row), strict=True)]
        return f"{_plain(row)}: {', '.join(parts)}"

    groups = _groups(report, panel, RowFigures(figures, lambda row: tuple(map(median, figures(row))), title))
    columns = tuple(f"{name} ms" for name, _ in shown)
    chart = RowChart(groups, columns, _title(report, "Latency", panel), "ms", scale_for(_medians(groups)))
    return drawing(row_charts.percentiles, chart)


def memory_peak(report: Report, panel: Panel) -> Drawing:
    """Peak memory of every row, stacked by server and service."""

    def figures(row: CaseRow) -> tuple[Estimate | None, ...]:
        parts = row.memory_parts
        return tuple(exactly(parts[name] / MIB) if name in parts else None for name in report.servers)

    def title(row: CaseRow) -> str:
        parts = [f"{name} {median(row.memory_peak(name), mebibytes)} MiB" for name in row.servers]
        return f"{_plain(row)}: {', '.join(parts)}"

    groups = _groups(report, panel, RowFigures(figures, lambda row: (median(row.memory_total, mebibytes),), title))
    chart = RowChart(groups, ("total MiB",), _title(report, "Peak memory", panel), "MiB")
    return drawing(row_charts.stacked, chart)


def cpu(report: Report, panel: Panel) -> Drawing:
    """CPU seconds per 1,000 requests of every row, servers and services together."""
    words = ("CPU time", "CPU s / 1,000", "CPU seconds per 1,000 requests")
    return _costs(report, panel, words, lambda row: row.cpu_total)


def memory_cost(report: Report, panel: Panel) -> Drawing:
    """Peak memory of every row for each 1,000 requests/s it served."""
    words = ("Memory per 1,000 requests/s", "MiB", "MiB per 1,000 requests/s")
    return _costs(report, panel, words, lambda row: scaled(row.memory_per_rate, MIB))


def _costs(
    report: Report, panel: Panel, words: tuple[str, str, str], cost: Callable[[CaseRow], Estimate | None]
) -> Drawing:
    """One cost of every row. `words` are the title of the chart, the unit and the unit in a sentence."""
    title, unit, in_words = words
    figures = RowFigures(
        lambda row: (cost(row),),
        lambda row: (median(cost(row)),),
        lambda row: f"{_plain(row)}: {median(cost(row))} {in_words}",
    )
    groups = _groups(report, panel, figures)
    chart = RowChart(groups, (unit,), _title(report, title, panel), unit, scale_for(_medians(groups)))
    return drawing(row_charts.bars, chart)


# ---------------------------------------------------------------------------------------------- helpers


def _groups(report: Report, panel: Panel, figures: RowFigures, *, unmeasured: bool = False) -> Groups:
    """Entries by stack. Rows that were not measured are left out, or named when `unmeasured`."""
    shown = {
        stack: [_entry(report, row, figures) for row in rows if unmeasured or row.outcome == MEASURED]
        for stack, rows in panel.groups
    }
    return [(one_line(stack), entries) for stack, entries in shown.items() if entries]


def _entry(report: Report, row: CaseRow, figures: RowFigures) -> ChartEntry:
    note = _why_not(row)
    marks = () if note else figures.marks(row)
    if not note and not any(marks):
        note = NOT_MEASURED
    return ChartEntry(
        label=one_line(row.layer) + _footnotes(row),
        colour=layer_colour(report, row.layer),
        figures=marks or (None,),
        columns=() if note else figures.columns(row),
        note=note,
        title=f"{_plain(row)}: {note}" if note else figures.title(row),
        anchor=report.anchors.get(row, ""),
    )


def _why_not(row: CaseRow) -> str:
    """Why a row has no figures; empty where it has."""
    if row.outcome == MEASURED:
        return ""
    return "wrong answers" if row.outcome == FAILED and row.wrong else row.outcome


def _footnotes(row: CaseRow) -> str:
    """The signs behind a layer's name: `*` for failed rounds, `†` for wrong answers."""
    return (" *" if row.ok and row.failed else "") + (" †" if row.ok and row.wrong else "")


def footnotes(panel: Panel) -> list[str]:
    """The meaning of the signs that occur in a panel."""
    found = []
    if any(row.ok and row.failed for row in panel.rows):
        found.append("* some rounds failed")
    if any(row.ok and row.wrong for row in panel.rows):
        found.append("† gave wrong answers and is not ranked")
    return found


def _plain(row: CaseRow) -> str:
    return deployment(row).replace("`", "")


def _title(report: Report, what: str, panel: Panel) -> str:
    return f"{what}, {setting_title(report, panel).replace('`', '')}, {panel.setting.load}"


def layer_colour(report: Report, layer: str) -> int:
    """The colour of a layer, the same throughout a report; the baseline is grey."""
    others = [name for name in report.layers if name != NO_LAYER]
    return others.index(layer) + 1 if layer in others else 0


def _medians(groups: Groups) -> Iterable[float]:
    return [figure.median for _, entries in groups for entry in entries for figure in entry.figures if figure]


def exactly(value: float) -> Estimate:
    """A figure without an interval."""
    return Estimate(value, value, value, 1)


def _as_estimate(figure: Estimate | PooledPercentile | None) -> Estimate | None:
    return exactly(figure.median) if isinstance(figure, PooledPercentile) else figure


def scaled(figure: Estimate | None, by: float) -> Estimate | None:
    """A figure in another unit."""
    return None if figure is None else Estimate(figure.median / by, figure.low / by, figure.high / by, figure.count)

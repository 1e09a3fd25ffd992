"""From the report's rows to its charts: which figures each chart shows and what stands beside them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from bench.figures.stats import Spread
from bench.report import svg
from bench.report.axis import LINEAR, LOG, scale_for
from bench.report.findings import deployment, setting_title
from bench.report.model import BASELINE, FAILED, MEASURED, OPEN, Panel, Report, Row
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
from bench.report.reproduction.published import Caching
from bench.report.reproduction.side_by_side import Column, Line, Reproduced

PERCENTILES = (
    ("p50", "latency_p50_ms"),
    ("p90", "latency_p90_ms"),
    ("p99", "latency_p99_ms"),
    ("p99.9", "latency_p999_ms"),
)


@dataclass(frozen=True)
class View:
    """One chart in the widths of a screen and of a telephone, under the name of its scale."""

    name: str
    wide: Markup
    narrow: Markup

    @property
    def goes_beyond(self) -> bool:
        """Whether an interval ends outside the chart, which an arrow shows."""
        return "whisker beyond" in self.wide


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
    return svg.bars(
        groups,
        ("requests/s", f"{TIMES} {BASELINE}"),
        title=_title(report, "Throughput", panel),
        unit="requests/s",
        width=svg.PAGE,
        scale=scale_for(row.rate.median for row in panel.rows if row.rate),
    )


def throughput(report: Report, panel: Panel) -> list[View]:
    """Requests/s of every row, on the scale that suits the figures first and on the other one second."""
    groups = _groups(report, panel, lambda row: (row.rate,), _rate_columns, _rate_title, everything=True)
    rates = [row.rate.median for row in panel.rows if row.rate]
    first = scale_for(rates)
    draw = partial(
        svg.bars,
        groups,
        ("requests/s", f"{TIMES} {BASELINE}"),
        title=_title(report, "Throughput", panel),
        unit="requests/s",
    )
    return [_view(draw, scale) for scale in ((LOG, LINEAR) if first == LOG else (LINEAR, LOG))]


def percentiles(panel: Panel) -> tuple[tuple[str, str], ...]:
    """The percentiles to show of a panel: p50, p90 and p99 always, p99.9 where a row has it."""
    return tuple(
        (name, field)
        for name, field in PERCENTILES
        if field != "latency_p999_ms" or any(row.figure(field) for row in panel.rows)
    )


def latency(report: Report, panel: Panel) -> list[View]:
    """The percentiles of every row, of all its rounds' requests together."""
    shown = percentiles(panel)

    def figures(row: Row) -> tuple[Spread | None, ...]:
        return tuple(row.figure(field) for _, field in shown)

    def title(row: Row) -> str:
        parts = [f"{name} {median(figure)} ms" for (name, _), figure in zip(shown, figures(row), strict=True)]
        return f"{_plain(row)}: {', '.join(parts)}"

    groups = _groups(report, panel, figures, lambda row: tuple(map(median, figures(row))), title)
    draw = partial(
        svg.percentiles,
        groups,
        tuple(f"{name} ms" for name, _ in shown),
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
        return svg.stacked(groups, ("total MiB",), title=title_text, unit="MiB", width=width)

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
        svg.bars,
        groups,
        ("CPU s / 1,000",),
        title=_title(report, "CPU time", panel),
        unit="CPU s / 1,000",
    )
    return [_view(draw, scale_for(_medians(groups)))]


def published(report: Report, caching: Caching) -> list[View]:
    """Published and measured ratios to `none`, on one logarithmic scale."""
    entries = [
        svg.Entry(
            label=row.layer,
            colour=_colour(report, row.layer),
            figures=(_exactly(row.times_none), row.ratio),
            columns=(as_published(row.times_none) + TIMES, median(row.ratio, times) if row.ratio else DASH),
            title=f"{row.title}: published {as_published(row.times_none)}, measured {median(row.ratio, times)}",
        )
        for row in caching.layers
        if row.layer != BASELINE
    ]
    draw = partial(
        svg.pairs,
        [(one_line(caching.stack or ""), entries)],
        ("published", "measured"),
        title="Published and measured ratios to none",
        unit=f"times {BASELINE}",
    )
    return [_view(draw, LOG)]


def reproduced(
    found: Reproduced, column: Column, index: int, name: Callable[[Line], str], against: Callable[[Line], str]
) -> list[View]:
    """One column of a reproduction: published and measured ratios, or figures where nothing was published."""
    published = column.is_published
    draw = _ratios(found, column, index, name, against) if published else _figures(found, column, index, name)
    values = [
        value
        for line in found.lines
        for value in (
            (line.cells[index].ratio and line.cells[index].ratio.median, line.cells[index].published_ratio)
            if column.is_published
            else (line.cells[index].measured and line.cells[index].measured.median,)
        )
    ]
    return [_view(draw, scale_for(values))]


def _ratios(
    found: Reproduced, column: Column, index: int, name: Callable[[Line], str], against: Callable[[Line], str]
) -> Callable[..., Markup]:
    groups: dict[str, list[svg.Entry]] = {}
    for line in found.lines:
        cell = line.cells[index]
        if line.baseline or not (cell.ratio or cell.published_ratio):
            continue
        known = _exactly(cell.published_ratio) if cell.published_ratio else None
        texts = (times(cell.published_ratio) if known else DASH, median(cell.ratio, times) if cell.ratio else DASH)
        title = f"{name(line)}: published {texts[0]}, measured {texts[1]}"
        entry = svg.Entry(name(line), 1, (known, cell.ratio), texts, title=title)
        groups.setdefault(f"against {against(line)}", []).append(entry)
    return partial(
        svg.pairs,
        list(groups.items()),
        ("published", "measured"),
        title=f"Published and measured ratios, {column.title}",
        unit="ratio",
    )


def _figures(found: Reproduced, column: Column, index: int, name: Callable[[Line], str]) -> Callable[..., Markup]:
    def scaled(figure: Spread) -> Spread:
        by = MIB if column.metric == "memory_total" else 1
        return Spread(figure.median / by, figure.low / by, figure.high / by, figure.count)

    entries = [
        svg.Entry(
            name(line),
            1,
            (scaled(measured),) if (measured := line.cells[index].measured) else (None,),
            (median(measured, column.show),) if measured else (),
            note="" if measured else NOT_MEASURED,
            title=f"{name(line)}: {median(measured, column.show)}",
        )
        for line in found.lines
    ]
    return partial(svg.bars, [("measured", entries)], ("median",), title=f"Measured, {column.title}", unit=column.title)


def memory_over_time(report: Report, panel: Panel) -> list[Small]:
    """One small chart for each measured row: a line for each server or service and round, one shared scale."""
    rows = [row for row in panel.rows if row.outcome == MEASURED]
    runs = {row: _memory_runs(row) for row in rows}
    points = [point for lines in runs.values() for line in lines.values() for run in line for point in run]
    colours = {name: index + 1 for index, name in enumerate(report.servers)}

    def small(row: Row) -> Small:
        series = [svg.Series(name, colours[name], tuple(lines)) for name, lines in runs[row].items() if lines]
        drawing = svg.lines(
            series,
            title=f"Memory over time, {_plain(row)}",
            x_unit="s",
            x_high=max(x for x, _ in points),
            y_values=[y for _, y in points],
            labels=report.servers,
            y_unit="MiB",
        )
        remark = f"peak {median(row.memory_total, mebibytes)} MiB" if row.memory_total else ""
        return Small(row.stack, row.layer if len(report.layers) > 1 else "", drawing if series else None, remark)

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
            svg.lines(
                [
                    svg.Series(_line_name(report, layer), _colour(report, layer), (points[stack, layer],))
                    for layer in report.layers
                    if points[stack, layer]
                ],
                title=f"Requests/s as the level grows, {one_line(stack)}",
                x_unit="requests/s asked" if panel.setting.mode == OPEN else "connections",
                x_high=max(float(other.setting.level) for other in same),
                y_values=values,
                scale=scale_for(values),
                points=True,
                labels=[_line_name(report, layer) for layer in report.layers],
            ),
            "",
        )
        for stack in report.stacks
        if any(points[stack, layer] for layer in report.layers)
    ]


def tradeoff(report: Report, panel: Panel) -> list[Small]:
    """p99 over requests/s, a point a level: one small chart a stack, a line a layer; empty with one level only."""
    same = [other for other in report.panels if _but_level(other) == _but_level(panel)]
    if len(same) < 2:
        return []
    points = {(stack, layer): _traded(same, stack, layer) for stack in report.stacks for layer in report.layers}
    places = [place for line in points.values() for place in line]
    if not places:
        return []
    rates, latencies = [x for x, _ in places], [y for _, y in places]

    def draw(stack: str) -> Markup:
        return svg.lines(
            [
                svg.Series(_line_name(report, layer), _colour(report, layer), (points[stack, layer],))
                for layer in report.layers
                if points[stack, layer]
            ],
            title=f"p99 in ms over requests/s, {one_line(stack)}",
            x_unit="requests/s",
            x_high=max(rates),
            y_values=latencies,
            scale=scale_for(latencies),
            points=True,
            labels=[_line_name(report, layer) for layer in report.layers],
            x_values=rates,
            x_scale=scale_for(rates),
        )

    return [
        Small(stack, "", draw(stack), "")
        for stack in report.stacks
        if any(points[stack, layer] for layer in report.layers)
    ]


def untraded(report: Report, panel: Panel) -> bool:
    """Whether a level has requests/s but no p99, so that it has no point in `tradeoff`."""
    return any(row.rate and row.figure("latency_p99_ms") is None for row in levels(report, panel))


def levels(report: Report, panel: Panel) -> list[Row]:
    """The measured rows of every level of a panel's setting, the table of `growth` and `tradeoff`."""
    same = [other for other in report.panels if _but_level(other) == _but_level(panel)]
    rows = [row for other in same for row in other.rows if row.outcome == MEASURED]
    stacks, layers = report.stacks, report.layers
    return sorted(rows, key=lambda row: (stacks.index(row.stack), layers.index(row.layer), row.setting.level))


def memory_cost(report: Report, panel: Panel) -> list[View]:
    """Memory at the peak for each 1,000 requests/s of every row."""

    def scaled(figure: Spread | None) -> Spread | None:
        if figure is None:
            return None
        return Spread(figure.median / MIB, figure.low / MIB, figure.high / MIB, figure.count)

    groups = _groups(
        report,
        panel,
        lambda row: (scaled(row.memory_per_rate),),
        lambda row: (median(row.memory_per_rate, mebibytes),),
        lambda row: f"{_plain(row)}: {median(row.memory_per_rate, mebibytes)} MiB for each 1,000 requests/s",
    )
    draw = partial(
        svg.bars, groups, ("MiB",), title=_title(report, "Memory for each 1,000 requests/s", panel), unit="MiB"
    )
    return [_view(draw, scale_for(_medians(groups)))]


# ---------------------------------------------------------------------------------------------- helpers


def _line_name(report: Report, layer: str) -> str:
    """What stands at the end of a layer's line; nothing where there is one layer only."""
    return layer if len(report.layers) > 1 else ""


def _traded(panels: list[Panel], stack: str, layer: str) -> tuple[tuple[float, float], ...]:
    """Requests/s and p99 of each level, the lowest level first."""
    rows = [row for panel in panels if (row := panel.row(stack, layer)) is not None and row.rate]
    rows.sort(key=lambda row: row.setting.level)
    return tuple(
        (row.rate.median, figure.median) for row in rows if (figure := row.figure("latency_p99_ms")) is not None
    )


def _points(panels: list[Panel], stack: str, layer: str) -> tuple[tuple[float, float], ...]:
    rows = [row for panel in panels if (row := panel.row(stack, layer)) is not None and row.rate]
    return tuple(sorted((float(row.setting.level), row.rate.median) for row in rows))


def _but_level(panel: Panel) -> tuple[str, ...]:
    setting = panel.setting
    return (setting.workload, setting.size, setting.database, setting.mode)


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
    return View(name, draw(width=svg.WIDE, scale=scale), draw(width=svg.NARROW, scale=scale))


def _groups(
    report: Report,
    panel: Panel,
    figures: Callable[[Row], tuple[Spread | None, ...]],
    columns: Callable[[Row], tuple[str, ...]],
    title: Callable[[Row], str],
    *,
    everything: bool = False,
) -> svg.Groups:
    """Entries by stack. Cases without trials are named in the first chart (`everything`) and left out of the others."""

    def entry(row: Row) -> svg.Entry:
        note = _why_not(row)
        found = () if note else figures(row)
        if not note and not any(found):
            note = NOT_MEASURED
        return svg.Entry(
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
    return f"{what}, {setting_title(report, panel).replace('`', '')}, {panel.setting.load}"


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


def _medians(groups: svg.Groups) -> Iterable[float]:
    return [figure.median for _, entries in groups for entry in entries for figure in entry.figures if figure]


def _exactly(value: float) -> Spread:
    return Spread(value, value, value, 1)

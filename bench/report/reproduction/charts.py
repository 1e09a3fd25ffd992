"""Charts of published beside measured figures, all on one scale. Pure."""

from __future__ import annotations

from collections.abc import Callable

from bench.figures.stats import Estimate
from bench.report import row_charts
from bench.report.axis import LOG, scale_for
from bench.report.charts import Drawing, drawing, exactly, layer_colour, scaled
from bench.report.model import Report
from bench.report.numbers import DASH, MIB, NOT_MEASURED, TIMES, as_published, median, one_line, times
from bench.report.reproduction.caching import PublishedCaching
from bench.report.reproduction.side_by_side import PublishedColumn, PublishedRow, Reproduced
from bench.report.row_charts import ChartEntry, RowChart
from bench.results.records import NO_LAYER

Name = Callable[[PublishedRow], str]


def caching(report: Report, published: PublishedCaching) -> Drawing:
    """Published and measured ratios to the baseline."""
    entries = []
    for row in published.layers:
        if row.layer != NO_LAYER:
            there, here = row.published["times_none"], row.ratio
            texts = (as_published(there) + TIMES, median(here, times) if here else DASH)
            title = f"{row.published['title']}: published {as_published(there)}, measured {median(here, times)}"
            colour = layer_colour(report, row.layer)
            entries.append(ChartEntry(row.layer, colour, (exactly(there), here), texts, title=title))
    chart = RowChart(
        [(one_line(published.stack or ""), entries)],
        ("published", "measured"),
        "Published and measured ratios to none",
        f"times {NO_LAYER}",
        LOG,
    )
    return drawing(row_charts.pairs, chart)


def column(found: Reproduced, shown: PublishedColumn, name: Name, against: Name) -> Drawing:
    """One column of a reproduction: published and measured ratios, or figures where none was published."""
    if shown.is_published:
        return drawing(row_charts.pairs, _ratios(found, shown, name, against))
    return drawing(row_charts.bars, _figures(found, shown, name))


def _ratios(found: Reproduced, shown: PublishedColumn, name: Name, against: Name) -> RowChart:
    index = found.columns.index(shown)
    groups: dict[str, list[ChartEntry]] = {}
    values: list[float | None] = []
    for row in found.rows:
        figure = row.figures[index]
        values += [figure.ratio.median if figure.ratio else None, figure.published_ratio]
        if row.baseline or not (figure.ratio or figure.published_ratio):
            continue
        published = exactly(figure.published_ratio) if figure.published_ratio else None
        texts = (
            times(figure.published_ratio) if published else DASH,
            median(figure.ratio, times) if figure.ratio else DASH,
        )
        title = f"{name(row)}: published {texts[0]}, measured {texts[1]}"
        entry = ChartEntry(name(row), 1, (published, figure.ratio), texts, title=title)
        groups.setdefault(f"against {against(row)}", []).append(entry)
    title = f"Published and measured ratios, {shown.title}"
    return RowChart(list(groups.items()), ("published", "measured"), title, "ratio", scale_for(values))


def _figures(found: Reproduced, shown: PublishedColumn, name: Name) -> RowChart:
    index = found.columns.index(shown)
    unit = MIB if shown.metric == "memory_total" else 1

    def entry(row: PublishedRow, measured: Estimate | None) -> ChartEntry:
        return ChartEntry(
            name(row),
            1,
            (scaled(measured, unit),),
            (median(measured, shown.show),) if measured else (),
            note="" if measured else NOT_MEASURED,
            title=f"{name(row)}: {median(measured, shown.show)}",
        )

    measured = [(row, row.figures[index].measured) for row in found.rows]
    estimates = [(row, figure if isinstance(figure, Estimate) else None) for row, figure in measured]
    entries = [entry(row, figure) for row, figure in estimates]
    scale = scale_for(figure.median for _, figure in estimates if figure)
    return RowChart([("measured", entries)], ("median",), f"Measured, {shown.title}", shown.title, scale)

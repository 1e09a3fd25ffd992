"""Row charts as SVG: a row for each case, its name on the left, its marks on one axis, its values on the right. Pure.

Every row has its name and its values in text, so colour is never the only key. Texts of class `value` are figures; each
of them is also in a table of the report. A chart is drawn twice: wide for a screen, narrow for a telephone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bench.figures.stats import Estimate
from bench.report.axis import LINEAR, LOG, Axis, axis, tick_label
from bench.report.numbers import DASH, NOT_MEASURED
from bench.report.svg import CHARACTER, PATTERNS, colour, fit, marker, tag

WIDE, PAGE, NARROW = 1000, 840, 360

_LABEL, _LONGEST_LABEL, _COLUMN = 190, 330, 100  # widths of the label column and of a value column in a wide chart
_NOTE = 18.0  # height of a note in a narrow chart
_BEYOND = {LINEAR: 2.5, LOG: 20.0}  # an axis of ratios ends at this multiple of the outermost median
_LABEL_CHARACTER = 7.3  # average width of a label's character, generous: a label must not leave the chart


@dataclass(frozen=True)
class ChartEntry:
    """One row of a chart: its name, its figures and the texts beside them."""

    label: str
    colour: int
    figures: tuple[Estimate | None, ...]
    columns: tuple[str, ...] = ()
    note: str = ""  # why there are no figures: failed, skipped, not measured
    title: str = ""  # all figures in words, for hovering and for screen readers
    anchor: str = ""  # id of its trials in the page, which the row links to


Groups = Sequence[tuple[str, Sequence[ChartEntry]]]


@dataclass(frozen=True)
class RowChart:
    """What a row chart shows: entries in named groups, the heads of its value columns, title, unit and scale."""

    groups: Groups
    columns: tuple[str, ...]
    title: str
    unit: str
    scale: str = LINEAR

    @property
    def entries(self) -> list[ChartEntry]:
        """All entries, group by group."""
        return [entry for _, entries in self.groups for entry in entries]


Draw = Callable[[ChartEntry, Axis, float, float], Iterable[Markup]]


def bars(chart: RowChart, width: int) -> Markup:
    """One bar a row with a whisker from the lowest to the highest round.

    On a logarithmic scale a bar's length would mean nothing, so there the median is a dot on a thin stem.
    """

    def draw(entry: ChartEntry, line: Axis, y: float, height: float) -> Iterable[Markup]:
        figure = entry.figures[0]
        if figure is None:
            return
        x, start = line.at(figure.median), line.start
        if chart.scale == LOG:
            yield tag("line", x1=start, x2=x, y1=y, y2=y, cls=f"stem {colour(entry.colour)}")
            yield from _whisker(figure, line, y)
            yield marker(0, x, y, f"dot {colour(entry.colour)}")
        else:
            yield tag(
                "rect",
                x=start,
                y=y - height / 2,
                width=max(x - start, 1.0),
                height=height,
                rx=1.5,
                cls=f"bar {colour(entry.colour)}",
            )
            yield from _whisker(figure, line, y)

    values = [value for entry in chart.entries for value in _extent(entry.figures[:1])]
    return _frame(chart, values, draw, width)


def percentiles(chart: RowChart, width: int) -> Markup:
    """Several figures a row, each with its own shape, joined by a line from the lowest to the highest."""

    def draw(entry: ChartEntry, line: Axis, y: float, height: float) -> Iterable[Markup]:
        known = [(shape, figure) for shape, figure in enumerate(entry.figures) if figure]
        if not known:
            return
        places = [line.at(figure.median) for _, figure in known]
        yield tag("line", x1=min(places), x2=max(places), y1=y, y2=y, cls=f"join {colour(entry.colour)}")
        for (shape, _), x in zip(known, places, strict=True):
            yield marker(shape, x, y, f"dot {colour(entry.colour)}")

    values = [figure.median for entry in chart.entries for figure in entry.figures if figure]
    return _frame(chart, values, draw, width)


def stacked(chart: RowChart, width: int) -> Markup:
    """Parts of a row laid end to end, each with its own colour and hatching."""

    def draw(entry: ChartEntry, line: Axis, y: float, height: float) -> Iterable[Markup]:
        before = 0.0
        for index, figure in enumerate(entry.figures):
            if figure is None:
                continue
            x, end = line.at(before), line.at(before + figure.median)
            before += figure.median
            box = {"x": x, "y": y - height / 2, "width": max(end - x - 1, 0.5), "height": height}
            yield tag("rect", **box, cls=f"bar {colour(index + 1)}")
            if index % PATTERNS:
                yield tag("rect", **box, fill=f"url(#hatch{index % PATTERNS})")

    values = [sum(part.median for part in entry.figures if part) for entry in chart.entries]
    return _frame(chart, values, draw, width)


def pairs(chart: RowChart, width: int) -> Markup:
    """Two figures a row: the first hollow, the second filled with its range, joined by a line."""

    def draw(entry: ChartEntry, line: Axis, y: float, height: float) -> Iterable[Markup]:
        first, second = entry.figures
        if first and second:
            yield tag("line", x1=line.at(first.median), x2=line.at(second.median), y1=y, y2=y, cls="join faint")
        if second:
            yield from _whisker(second, line, y)
            yield marker(0, line.at(second.median), y, f"dot {colour(entry.colour)}")
        if first:
            yield marker(1, line.at(first.median), y, "hollow")

    values = _within([figure for entry in chart.entries for figure in entry.figures if figure], chart.scale)
    return _frame(chart, values, draw, width)


def _within(figures: Sequence[Estimate], scale: str) -> list[float]:
    """What the axis of ratios must hold: every point, and of the intervals what does not press the points together."""
    points = [figure.median for figure in figures if figure.median > 0]
    if not points:
        return []
    factor = _BEYOND[scale]
    least, most = min(points) / factor, max(points) * factor
    return [min(max(value, least), most) for value in _extent(figures)]


def _extent(figures: Iterable[Estimate | None]) -> Iterable[float]:
    for figure in figures:
        if figure:
            yield from (figure.low, figure.high)


def _frame(chart: RowChart, values: Sequence[float], draw: Draw, width: int) -> Markup:
    """What all row charts share: names, grid lines and value columns; `draw` adds the marks of a row."""
    layout = _Layout(width, len(chart.columns), max((len(entry.label) for entry in chart.entries), default=0))
    line = axis(values, layout.start, layout.end, chart.scale, room=90 if layout.wide else 70)
    rows, y = [], layout.top
    for name, entries in chart.groups:
        notes = _notes(entries)
        rows.append(_group_head(name, notes, layout, y))
        y += layout.group + (0 if layout.wide else len(notes) * _NOTE)
        for entry in entries:
            if not entry.note:
                rows.append(_row(entry, line, layout, y, draw))
                y += layout.row
        y += layout.gap
    height = y + layout.bottom
    unit = f"{chart.unit}, log scale" if line.scale == LOG else chart.unit
    return tag(
        "svg",
        tag("title", chart.title),
        # Without a value an axis would be invented.
        _grid(line, layout, y) if values else "",
        tag("text", fit(unit, layout.unit_width), x=layout.unit_x, y=layout.unit_y, cls="unit"),
        *_column_heads(chart.columns, layout),
        *rows,
        viewBox=f"0 0 {width} {height:g}",
        width=width,
        height=height,
        role="img",
        cls="chart wide" if layout.wide else "chart narrow",
    )


class _Layout:
    """Where things stand in a row chart: beside each other when wide, above each other when narrow."""

    def __init__(self, width: int, columns: int, longest: int):
        self.width, self.wide, self.columns = width, width > 600, columns
        self.label = min(max(_LABEL, longest * _LABEL_CHARACTER), _LONGEST_LABEL)
        if self.wide:
            self.start, self.end = self.label + 12.0, width - columns * _COLUMN - 18.0
            self.top, self.group, self.row, self.gap, self.bottom = 34.0, 26.0, 23.0, 10.0, 20.0
            self.unit_x, self.unit_y, self.unit_width = 0, 16, self.label
            self.label_y, self.mark_y, self.thickness = 4.5, 0.0, 13.0
        else:
            self.start, self.end = 2.0, width - 8.0
            self.top, self.group, self.row, self.gap, self.bottom = 58.0, 28.0, 41.0, 8.0, 20.0
            self.unit_x, self.unit_y, self.unit_width = 0, 14, width
            self.label_y, self.mark_y, self.thickness = -5.0, 10.0, 11.0
        self.tick_y = 16 if self.wide else 50

    def column(self, index: int) -> float:
        """Right edge of a value column of a wide chart."""
        return self.width - (self.columns - 1 - index) * float(_COLUMN)


def _notes(entries: Sequence[ChartEntry]) -> list[str]:
    """`failed: a, b` for each reason why rows have no figures, so that they take a line and not a row each."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        if entry.note:
            found.setdefault(entry.note, []).append(entry.label)
    return [f"{note}: {', '.join(labels)}" for note, labels in found.items()]


def _group_head(name: str, notes: Sequence[str], layout: _Layout, y: float) -> Markup:
    """The group's name, and beside or under it what has no figures."""
    room = float(layout.width)
    if layout.wide and notes:
        room = layout.start - 12
        text = fit("; ".join(notes), layout.width - layout.start)
        lines = [tag("text", text, x=layout.start, y=y + 19, cls="note")]
    else:
        lines = [
            tag("text", fit(note, layout.width), x=0, y=y + 19 + _NOTE * index, cls="note")
            for index, note in enumerate(notes, 1)
        ]
    return tag(
        "g",
        tag("title", "; ".join((name, *notes))),
        tag("line", x1=0, x2=layout.width, y1=y + 2, y2=y + 2, cls="rule"),
        tag("text", fit(name, room), x=0, y=y + 19, cls="group"),
        *lines,
        cls="group-head",
    )


def _row(entry: ChartEntry, line: Axis, layout: _Layout, top: float, draw: Draw) -> Markup:
    middle = top + layout.row / 2
    texts = entry.columns
    marks = draw(entry, line, middle + layout.mark_y, layout.thickness)
    parts = [tag("title", entry.title or entry.label)]
    if layout.wide:
        label = fit(entry.label, layout.label, _LABEL_CHARACTER)
        parts += [
            tag("text", label, x=layout.label, y=middle + layout.label_y, cls="label end"),
            *marks,
            *(
                tag("text", text, x=layout.column(index), y=middle + layout.label_y, cls="value end")
                for index, text in enumerate(texts)
            ),
        ]
    else:
        # Words would leave no room for the name beside them.
        texts = tuple(DASH if text == NOT_MEASURED else text for text in texts)
        room = layout.width - sum(len(text) + 3 for text in texts) * CHARACTER
        parts += [
            tag("text", fit(entry.label, room), x=0, y=middle + layout.label_y, cls="label"),
            _values_in_line(texts, layout.width, middle + layout.label_y),
            *marks,
        ]
    return tag("a", *parts, href=f"#{entry.anchor}", cls="row") if entry.anchor else tag("g", *parts, cls="row")


def _values_in_line(texts: Sequence[str], x: float, y: float) -> Markup:
    """The value columns of a narrow chart: one text at the right edge, dots between the values."""
    spans: list[object] = []
    for index, text in enumerate(filter(None, texts)):
        spans += [tag("tspan", " · ", cls="dim")] if index else []
        spans.append(tag("tspan", text, cls="value"))
    return tag("text", *spans, x=x, y=y, cls="end") if spans else Markup("")


def _column_heads(heads: Sequence[str], layout: _Layout) -> list[Markup]:
    if layout.wide:
        return [tag("text", head, x=layout.column(index), y=16, cls="unit end") for index, head in enumerate(heads)]
    return [tag("text", " · ".join(heads), x=layout.width, y=30, cls="unit end")]


def _grid(line: Axis, layout: _Layout, bottom: float) -> Markup:
    parts = []
    for tick in line.ticks:
        x, text = line.at(tick), tick_label(tick)
        anchor = "end" if x > line.end - 12 and not layout.wide else "start" if x < 10 else "middle"
        parts.append(tag("line", x1=x, x2=x, y1=layout.top - 6, y2=bottom - 2, cls="grid"))
        for y in (layout.tick_y, bottom + 12):
            parts.append(tag("text", text, x=x, y=y, cls=f"tick {anchor}"))
    return tag("g", *parts, aria_hidden="true")


def _whisker(figure: Estimate, line: Axis, y: float) -> Iterable[Markup]:
    """Lowest to highest round, with a halo in the colour of the paper so that it shows on its own bar."""
    if figure.count < 2:
        return
    low, high = line.at(figure.low), line.at(figure.high)
    left = f"M{low + 5:.1f} {y - 4:.1f}l-5 4l5 4" if figure.low < line.low else f"M{low:.1f} {y - 4:.1f}v8"
    right = f"M{high - 5:.1f} {y - 4:.1f}l5 4l-5 4" if figure.high > line.high else f"M{high:.1f} {y - 4:.1f}v8"
    path = f"{left}M{low:.1f} {y:.1f}H{high:.1f}{right}"
    yield tag("path", d=path, cls="halo")
    yield tag("path", d=path, cls="whisker beyond" if "l" in path else "whisker")

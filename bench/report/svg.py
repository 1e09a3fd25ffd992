"""Charts as SVG: pure functions from figures to markup, without input or output.

Rows of a chart are named where they are drawn and their values stand beside them, so colour is never the
only key. Colours are classes (`k0`, `k1`, ...) that a style sheet resolves, for light, dark and print.
Texts of class `value` are figures; each of them stands in the report's tables too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from bench.figures.stats import Spread
from bench.report.axis import LINEAR, LOG, Axis, axis, tick_label
from bench.report.numbers import DASH, NOT_MEASURED, printable

WIDE, PAGE, NARROW = 1000, 840, 360

COLOURS = 8  # k0 is the baseline's grey, k1 to k7 the Okabe-Ito colours; then they begin again at k1
PATTERNS = 5

_LABEL, _LONGEST_LABEL, _COLUMN = 190, 330, 100  # widths of the label column and of a value column in a wide chart
_NOTE = 18.0  # height of a note of a narrow chart
_BEYOND = {LINEAR: 2.5, LOG: 20.0}  # how many times the outermost point an axis of ratios follows an interval
_CHARACTER = 6.9  # average width of a 13 px character
_LABEL_CHARACTER = 7.3  # of a label, which must not reach beyond the chart
_BOLD_CHARACTER = 7.6  # of a bold 12 px one


@dataclass(frozen=True)
class Entry:
    """One row of a chart: its name, its figures and the texts beside them."""

    label: str
    colour: int
    figures: tuple[Spread | None, ...]
    columns: tuple[str, ...] = ()
    note: str = ""  # why there are no figures: failed, skipped, not measured
    title: str = ""  # the whole story, shown on hover and read aloud


Groups = Sequence[tuple[str, Sequence[Entry]]]


@dataclass(frozen=True)
class Series:
    """One line of a chart: points from left to right, and runs of the same thing under one name."""

    label: str
    colour: int
    runs: tuple[tuple[tuple[float, float], ...], ...]


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element; text and attribute values are escaped, `cls` is class and `_` in a name is a hyphen."""
    pairs = Markup("").join(
        Markup(' {}="{}"').format(_attribute(key), _text(value))
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(child if isinstance(child, Markup) else escape(_text(child)) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), pairs, content)


def _attribute(key: str) -> Markup:
    return Markup("class" if key == "cls" else key if key == "viewBox" else key.replace("_", "-"))


def _text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else printable(value)


def colour(index: int) -> str:
    """The class of a colour: 0 is the baseline's, the others repeat."""
    return f"k{index if index < COLOURS else 1 + (index - 1) % (COLOURS - 1)}"


def patterns() -> Markup:
    """Definitions of the hatchings that tell stacked parts apart without colour; once a document."""
    strokes = {1: "M-1 1l2-2M0 6l6-6M5 7l2-2", 2: "M0 3h6", 3: "M3 0v6", 4: "M0 0l6 6M6 0l-6 6"}
    return tag(
        "defs",
        *(
            tag(
                "pattern",
                tag("path", d=path, cls="hatch"),
                id=f"hatch{index}",
                width=6,
                height=6,
                patternUnits="userSpaceOnUse",
            )
            for index, path in strokes.items()
        ),
    )


# ------------------------------------------------------------------------------------------ row charts


def bars(groups: Groups, heads: Sequence[str], *, title: str, unit: str, width: int, scale: str) -> Markup:
    """One bar a row with a whisker from the lowest to the highest round.

    On a logarithmic scale a bar's length would mean nothing, so there the median is a dot on a thin stem.
    """

    def draw(entry: Entry, line: Axis, y: float, height: float) -> Iterable[Markup]:
        figure = entry.figures[0]
        if figure is None:
            return
        x, start = line.at(figure.median), line.start
        if scale == LOG:
            yield tag("line", x1=start, x2=x, y1=y, y2=y, cls=f"stem {colour(entry.colour)}")
            yield from _whisker(figure, line, y)
            yield _marker(0, x, y, f"dot {colour(entry.colour)}")
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

    values = [value for entry in _entries(groups) for value in _extent(entry.figures[:1])]
    return _rows(groups, heads, values, draw, title=title, unit=unit, width=width, scale=scale)


def percentiles(groups: Groups, heads: Sequence[str], *, title: str, unit: str, width: int, scale: str) -> Markup:
    """Several figures a row, each with its own shape, joined by a line from the lowest to the highest."""

    def draw(entry: Entry, line: Axis, y: float, height: float) -> Iterable[Markup]:
        known = [(shape, figure) for shape, figure in enumerate(entry.figures) if figure]
        if not known:
            return
        places = [line.at(figure.median) for _, figure in known]
        yield tag("line", x1=min(places), x2=max(places), y1=y, y2=y, cls=f"join {colour(entry.colour)}")
        for (shape, _), x in zip(known, places, strict=True):
            yield _marker(shape, x, y, f"dot {colour(entry.colour)}")

    values = [figure.median for entry in _entries(groups) for figure in entry.figures if figure]
    return _rows(groups, heads, values, draw, title=title, unit=unit, width=width, scale=scale)


def stacked(groups: Groups, heads: Sequence[str], *, title: str, unit: str, width: int) -> Markup:
    """Parts of a row laid end to end, each with its own colour and hatching."""

    def draw(entry: Entry, line: Axis, y: float, height: float) -> Iterable[Markup]:
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

    values = [sum(part.median for part in entry.figures if part) for entry in _entries(groups)]
    return _rows(groups, heads, values, draw, title=title, unit=unit, width=width, scale=LINEAR)


def pairs(groups: Groups, heads: Sequence[str], *, title: str, unit: str, width: int, scale: str) -> Markup:
    """Two figures a row: the first hollow, the second filled with its range, joined by a line."""

    def draw(entry: Entry, line: Axis, y: float, height: float) -> Iterable[Markup]:
        first, second = entry.figures
        if first and second:
            yield tag("line", x1=line.at(first.median), x2=line.at(second.median), y1=y, y2=y, cls="join faint")
        if second:
            yield from _whisker(second, line, y)
            yield _marker(0, line.at(second.median), y, f"dot {colour(entry.colour)}")
        if first:
            yield _marker(1, line.at(first.median), y, "hollow")

    values = _within([figure for entry in _entries(groups) for figure in entry.figures if figure], scale)
    return _rows(groups, heads, values, draw, title=title, unit=unit, width=width, scale=scale)


def _within(figures: Sequence[Spread], scale: str) -> list[float]:
    """What the axis of ratios must hold: every point, and of the intervals what does not press the points together."""
    points = [figure.median for figure in figures if figure.median > 0]
    if not points:
        return []
    factor = _BEYOND[scale]
    least, most = min(points) / factor, max(points) * factor
    return [min(max(value, least), most) for value in _extent(figures)]


def _entries(groups: Groups) -> Iterable[Entry]:
    return (entry for _, entries in groups for entry in entries)


def _extent(figures: Iterable[Spread | None]) -> Iterable[float]:
    for figure in figures:
        if figure:
            yield from (figure.low, figure.high)


Draw = Callable[[Entry, Axis, float, float], Iterable[Markup]]


def _rows(
    groups: Groups,
    heads: Sequence[str],
    values: Sequence[float],
    draw: Draw,
    *,
    title: str,
    unit: str,
    width: int,
    scale: str,
) -> Markup:
    """The frame that row charts share: names, gridlines, value columns; `draw` adds each row's marks."""
    layout = _Layout(width, len(heads), max((len(entry.label) for entry in _entries(groups)), default=0))
    line = axis(values, layout.start, layout.end, scale, room=90 if layout.wide else 70)
    rows, y = [], layout.top
    for name, entries in groups:
        notes = _notes(entries)
        rows.append(_group_head(name, notes, layout, y))
        y += layout.group + (0 if layout.wide else len(notes) * _NOTE)
        for entry in entries:
            if not entry.note:
                rows.append(_row(entry, line, layout, y, draw))
                y += layout.row
        y += layout.gap
    height = y + layout.bottom
    scale_note = f"{unit}, log scale" if line.scale == LOG else unit
    return tag(
        "svg",
        tag("title", title),
        _grid(line, layout, y),
        tag("text", _fit(scale_note, layout.unit_width), x=layout.unit_x, y=layout.unit_y, cls="unit"),
        *_column_heads(heads, layout),
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


def _notes(entries: Sequence[Entry]) -> list[str]:
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
        text = _fit("; ".join(notes), layout.width - layout.start)
        lines = [tag("text", text, x=layout.start, y=y + 19, cls="note")]
    else:
        lines = [
            tag("text", _fit(note, layout.width), x=0, y=y + 19 + _NOTE * index, cls="note")
            for index, note in enumerate(notes, 1)
        ]
    return tag(
        "g",
        tag("title", "; ".join((name, *notes))),
        tag("line", x1=0, x2=layout.width, y1=y + 2, y2=y + 2, cls="rule"),
        tag("text", _fit(name, room), x=0, y=y + 19, cls="group"),
        *lines,
        cls="group-head",
    )


def _row(entry: Entry, line: Axis, layout: _Layout, top: float, draw: Draw) -> Markup:
    middle = top + layout.row / 2
    texts = entry.columns
    marks = draw(entry, line, middle + layout.mark_y, layout.thickness)
    parts = [tag("title", entry.title or entry.label)]
    if layout.wide:
        label = _fit(entry.label, layout.label, _LABEL_CHARACTER)
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
        room = layout.width - sum(len(text) + 3 for text in texts) * _CHARACTER
        parts += [
            tag("text", _fit(entry.label, room), x=0, y=middle + layout.label_y, cls="label"),
            _values_in_line(texts, layout.width, middle + layout.label_y),
            *marks,
        ]
    return tag("g", *parts, cls="row")


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


def _whisker(figure: Spread, line: Axis, y: float) -> Iterable[Markup]:
    """Lowest to highest round, with a halo in the colour of the paper so that it shows on its own bar."""
    if figure.count < 2:
        return
    low, high = line.at(figure.low), line.at(figure.high)
    left = f"M{low + 5:.1f} {y - 4:.1f}l-5 4l5 4" if figure.low < line.low else f"M{low:.1f} {y - 4:.1f}v8"
    right = f"M{high - 5:.1f} {y - 4:.1f}l5 4l-5 4" if figure.high > line.high else f"M{high:.1f} {y - 4:.1f}v8"
    path = f"{left}M{low:.1f} {y:.1f}H{high:.1f}{right}"
    yield tag("path", d=path, cls="halo")
    yield tag("path", d=path, cls="whisker beyond" if "l" in path else "whisker")


def _marker(shape: int, x: float, y: float, cls: str) -> Markup:
    """A circle, a diamond, a triangle or a square, about equally heavy."""
    if shape % 4 == 0:
        return tag("circle", cx=x, cy=y, r=4.5, cls=cls)
    paths = {1: "m0-5.8l5.8 5.8l-5.8 5.8l-5.8-5.8z", 2: "m0-5.6l5.6 9.8h-11.2z", 3: "m-4.2-4.2h8.4v8.4h-8.4z"}
    return tag("path", d=f"M{x:.1f} {y:.1f}{paths[shape % 4]}", cls=cls)


def marker_key(shape: int, filled: bool = True) -> Markup:
    """A marker alone, for a legend."""
    return tag(
        "svg",
        _marker(shape, 7.0, 7.0, "dot key" if filled else "hollow"),
        viewBox="0 0 14 14",
        width=14,
        height=14,
        cls="key",
        aria_hidden="true",
    )


def swatch(index: int, hatched: bool = False) -> Markup:
    """A colour with its hatching, for a legend."""
    box = {"x": 1, "y": 1, "width": 12, "height": 12, "rx": 1.5}
    parts = [tag("rect", **box, cls=f"bar {colour(index)}")]
    if hatched and (index - 1) % PATTERNS:
        parts.append(tag("rect", **box, fill=f"url(#hatch{(index - 1) % PATTERNS})"))
    return tag("svg", *parts, viewBox="0 0 14 14", width=14, height=14, cls="key", aria_hidden="true")


def _fit(text: str, room: float, character: float = _CHARACTER) -> str:
    """`text`, cut with an ellipsis when it would not fit the room (in pixels, by an average character)."""
    text = printable(text)
    most = max(4, int(room / character))
    return text if len(text) <= most else text[: most - 1] + "…"


# ----------------------------------------------------------------------------------------- line charts


def lines(
    series: Sequence[Series],
    *,
    title: str,
    x_unit: str,
    x_high: float,
    y_values: Sequence[float],
    scale: str = LINEAR,
    points: bool = False,
    labels: Sequence[str] = (),
    x_values: Sequence[float] = (),
    x_scale: str = LINEAR,
    y_unit: str = "",
) -> Markup:
    """A small chart of lines over a shared scale: `y_values` and `labels` are those of all its siblings.

    The horizontal axis goes from 0 to `x_high`; or it holds all `x_values`, on a scale of its own with labels.
    """
    width, height, left, top, bottom = 320, 160, 34, 20 if y_unit else 8, 22
    right = 14 + min(max(map(len, labels), default=0) * _BOLD_CHARACTER, 116.0)
    across = Axis(0.0, x_high or 1.0, left, width - right, LINEAR, ())
    if x_values:
        across = axis(x_values, left, width - right, x_scale, room=48)
    up = axis(y_values, height - bottom, top, scale, room=42)
    parts = [tag("title", title)]
    for tick in up.ticks:
        y = up.at(tick)
        parts.append(tag("line", x1=left, x2=width - right, y1=y, y2=y, cls="grid"))
        parts.append(tag("text", tick_label(tick), x=left - 5, y=y + 4, cls="tick end"))
    if y_unit:
        parts.append(tag("text", y_unit, x=left, y=top - 8, cls="tick"))
    for tick in across.ticks:
        x = across.at(tick)
        parts.append(tag("line", x1=x, x2=x, y1=top, y2=height - bottom, cls="grid"))
        parts.append(tag("text", tick_label(tick), x=x, y=height - 7, cls="tick middle"))
    if not x_values:
        parts.append(tag("text", "0", x=left, y=height - 7, cls="tick middle"))
        parts.append(tag("text", f"{x_high:.3g} {x_unit}", x=width - right, y=height - 7, cls="tick end"))
    for item in series:
        for run in item.runs:
            places = [(across.at(x), up.at(y)) for x, y in thinned(run)]
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
            parts.append(tag("path", d=path, cls=f"line {colour(item.colour)} dash{item.colour % PATTERNS}"))
            if points or len(places) == 1:
                parts += [_marker(item.colour, x, y, f"dot small {colour(item.colour)}") for x, y in places]
    parts += _end_labels(series, up, width - right + 9, top, height - bottom, right - 9)
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        cls="chart lines",
    )


def thinned(points: Sequence[tuple[float, float]], most: int = 150) -> list[tuple[float, float]]:
    """At most `most` points; of neighbours that fall together the highest is kept, so no peak is lost."""
    if len(points) <= most:
        return list(points)
    size = -(-len(points) // most)
    return [max(points[start : start + size], key=lambda point: point[1]) for start in range(0, len(points), size)]


def _end_labels(
    series: Sequence[Series], up: Axis, x: float, top: float, bottom: float, room: float
) -> Iterable[Markup]:
    """Each line's name where the line ends, moved apart where lines end close together."""
    ends = [(sorted(up.at(run[-1][1]) for run in item.runs)[len(item.runs) // 2], item) for item in series if item.runs]
    places = apart([y for y, _ in ends], 13, top, bottom)
    for (_, item), y in zip(ends, places, strict=True):
        yield tag("text", _fit(item.label, room, _BOLD_CHARACTER), x=x, y=y + 4, cls=f"name {colour(item.colour)}")


def apart(places: Sequence[float], distance: float, top: float, bottom: float) -> list[float]:
    """The places moved as little as keeps them `distance` apart in their order, between top and bottom."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = list(places)
    limit = top
    for index in order:
        moved[index] = max(places[index], limit)
        limit = moved[index] + distance
    limit = bottom
    for index in reversed(order):
        moved[index] = min(moved[index], limit)
        limit = moved[index] - distance
    return moved


# ------------------------------------------------------------------------------------------ standalone

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1b1f24",
    "muted": "#59636e",
    "rule": "#d1d9e0",
    "grid": "#e6eaef",
    "k0": "#848d97",
    "k1": "#0072b2",
    "k2": "#e69f00",
    "k3": "#009e73",
    "k4": "#d55e00",
    "k5": "#56b4e9",
    "k6": "#cc79a7",
    "k7": "#b8a800",
}


def standalone(drawing: Markup, *, style: str, heading: str, subheading: str, foot: str) -> str:
    """A chart as a file of its own: on its own white card, so that it reads on light and dark pages alike.

    `style` is the charts' style sheet; its variables become plain colours, since not every viewer of
    images knows them.
    """
    match = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)
    inner_width, inner_height = float(match[1]), float(match[2])
    margin, head, tail = 28.0, 74.0, 40.0
    width, height = inner_width + 2 * margin, inner_height + head + tail
    plain = re.sub(r"var\(--([\w-]+)\)", lambda found: LIGHT[found[1]], style)
    return tag(
        "svg",
        tag("title", heading),
        tag("style", Markup(plain)),
        tag("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=8, cls="card"),
        tag("text", heading, x=margin, y=36, cls="heading"),
        tag("text", subheading, x=margin, y=57, cls="label dim"),
        tag("g", drawing, transform=f"translate({margin:g} {head:g})"),
        tag("text", foot, x=margin, y=height - 16, cls="unit"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="img",
        cls="chart",
    )

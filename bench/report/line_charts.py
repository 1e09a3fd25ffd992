"""Line charts as SVG: small charts of one stack or case each, all on the scales of their siblings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bench.report.axis import LINEAR, Axis, axis, tick_label
from bench.report.svg import PATTERNS, colour, fit, marker, tag

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 320, 160, 34, 138
_BOLD_CHARACTER = 7.6  # average width of a bold 12 px character
_LONGEST_NAME = 116.0
MAX_POINTS = 150  # of one line

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """Lines of one name and colour, such as the rounds of one server, each with its points from left to right."""

    label: str
    colour: int
    lines: tuple[tuple[Point, ...], ...]


@dataclass(frozen=True)
class LineScales:
    """Both axes of a chart and the room for names, shared by all its siblings.

    The horizontal axis goes from 0 to `x_high`; with `x_values` it holds those instead, on `x_scale` with labels.
    """

    y_values: Sequence[float]
    labels: Sequence[str] = ()
    y_unit: str = ""
    y_scale: str = LINEAR
    x_unit: str = ""
    x_high: float = 0.0
    x_values: Sequence[float] = ()
    x_scale: str = LINEAR

    @property
    def top(self) -> float:
        """Top of the drawing area, below the unit."""
        return 20.0 if self.y_unit else 8.0

    @property
    def right(self) -> float:
        """Right end of the drawing area, before the names of the lines."""
        longest = max(map(len, self.labels), default=0) * _BOLD_CHARACTER
        return _WIDTH - 14 - min(longest, _LONGEST_NAME)

    @property
    def across(self) -> Axis:
        """The horizontal axis."""
        if self.x_values:
            return axis(self.x_values, _LEFT, self.right, self.x_scale, room=48)
        return Axis(0.0, self.x_high or 1.0, _LEFT, self.right, LINEAR, ())

    @property
    def up(self) -> Axis:
        """The vertical axis."""
        return axis(self.y_values, _BOTTOM, self.top, self.y_scale, room=42)


def lines(series: Sequence[Series], scales: LineScales, *, title: str, points: bool = False) -> Markup:
    """A small chart of lines; `points` marks every point."""
    return tag(
        "svg",
        tag("title", title),
        *_vertical_axis(scales),
        *_horizontal_axis(scales),
        *(mark for item in series for mark in _marks(item, scales, points)),
        *_names(series, scales),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        width=_WIDTH,
        height=_HEIGHT,
        role="img",
        cls="chart lines",
    )


def _vertical_axis(scales: LineScales) -> Iterable[Markup]:
    for tick in scales.up.ticks:
        y = scales.up.at(tick)
        yield tag("line", x1=_LEFT, x2=scales.right, y1=y, y2=y, cls="grid")
        yield tag("text", tick_label(tick), x=_LEFT - 5, y=y + 4, cls="tick end")
    if scales.y_unit:
        yield tag("text", scales.y_unit, x=_LEFT, y=scales.top - 8, cls="tick")


def _horizontal_axis(scales: LineScales) -> Iterable[Markup]:
    for tick in scales.across.ticks:
        x = scales.across.at(tick)
        yield tag("line", x1=x, x2=x, y1=scales.top, y2=_BOTTOM, cls="grid")
        yield tag("text", tick_label(tick), x=x, y=_HEIGHT - 7, cls="tick middle")
    if not scales.x_values:
        end = f"{scales.x_high:.3g} {scales.x_unit}"
        yield tag("text", "0", x=_LEFT, y=_HEIGHT - 7, cls="tick middle")
        yield tag("text", end, x=scales.right, y=_HEIGHT - 7, cls="tick end")


def _marks(item: Series, scales: LineScales, points: bool) -> Iterable[Markup]:
    for line in item.lines:
        places = [(scales.across.at(x), scales.up.at(y)) for x, y in thinned(line)]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        yield tag("path", d=path, cls=f"line {colour(item.colour)} dash{item.colour % PATTERNS}")
        if points or len(places) == 1:
            yield from (marker(item.colour, x, y, f"dot small {colour(item.colour)}") for x, y in places)


def thinned(points: Sequence[Point], limit: int = MAX_POINTS) -> list[Point]:
    """At most `limit` points: the highest of each group of neighbours, so that no peak is lost."""
    if len(points) <= limit:
        return list(points)
    size = -(-len(points) // limit)
    return [max(points[start : start + size], key=lambda point: point[1]) for start in range(0, len(points), size)]


def _names(series: Sequence[Series], scales: LineScales) -> Iterable[Markup]:
    """The name of each line at its right end, moved apart where lines end close together."""
    x = scales.right + 9
    ends = [
        (sorted(scales.up.at(line[-1][1]) for line in item.lines)[len(item.lines) // 2], item)
        for item in series
        if item.lines
    ]
    places = apart([y for y, _ in ends], 13, scales.top, _BOTTOM)
    for (_, item), y in zip(ends, places, strict=True):
        name = fit(item.label, _WIDTH - x, _BOLD_CHARACTER)
        yield tag("text", name, x=x, y=y + 4, cls=f"name {colour(item.colour)}")


def apart(places: Sequence[float], distance: float, top: float, bottom: float) -> list[float]:
    """The places moved as little as needed to be `distance` apart in their order, between top and bottom."""
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

"""The page's pictures as SVG: the rounds of a case as dots, a ratio with its interval, one line chart. Pure.

Positions on an axis are percentages of the picture's width, so that a picture fits any column with unscaled text.
Colours are classes resolved by the style sheet for light, dark and print.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from markupsafe import Markup, escape

from bench.words import number, printable

COLOURS = 7  # c0 is the baseline's; c1 to c6 are those of Okabe and Ito
WIDE = 8  # from this many times the lowest figure on, an axis is logarithmic
STRIP, LINES, LABEL = 22, 240, 11  # heights in pixels
LEFT, RIGHT = 1.5, 98.5  # per cent of the width that the axis spans


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element with escaped content. `cls` means class, an underscore in a name a hyphen."""
    pairs = ""
    for key, value in attributes.items():
        if value is not None:
            attribute = "class"
            if key != "cls":
                attribute = key.replace("_", "-")
            pairs += f' {attribute}="{escape(_text(value))}"'
    if not children:
        return Markup(f"<{name}{pairs}/>")
    content = Markup("").join(map(_text, children))
    return Markup(f"<{name}{pairs}>{content}</{name}>")


def _text(value: object) -> str:
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return printable(value)


@dataclass(frozen=True)
class Axis:
    """A scale from its lowest to its highest value; logarithmic if values differ much."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Iterable[float], *, ratio: bool = False) -> Axis:
        """An axis for the values: from zero, or for a ratio from the lowest."""
        known = [value for value in values if math.isfinite(value) and value > 0]
        if not known:
            return cls(0.0, 1.0, log=False)
        first, last = min(known), max(known)
        if ratio or last > WIDE * first:
            return cls(first, max(last, first * 1.2), log=True)
        return cls(0.0, last, log=False)

    def at(self, value: float) -> float:
        """Position of a value, in per cent of the width."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return LEFT + share * (RIGHT - LEFT)

    def _has(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def ticks(self) -> list[float]:
        """Round values on the axis: 1, 2 and 5 times a power of ten, three to five of them."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            powers = [10.0**power for power in range(first, last + 1)]
            values = list(filter(self._has, powers))
            if len(values) < 3:
                values = []
                for power in powers:
                    values += filter(self._has, (power, 2 * power, 5 * power))
            if len(values) > 1:
                return values[:: math.ceil(len(values) / 5)]
        step = 10.0 ** math.floor(math.log10(self.high - self.low))
        step = next(step * part for part in (0.2, 0.5, 1, 2) if (self.high - self.low) / (step * part) <= 5)
        first = math.ceil(self.low / step)
        return [step * count for count in range(first, math.floor(self.high / step) + 1)]


def _strip(axis: Axis, *parts: Markup) -> Markup:
    """A row's picture over the lines of the axis, hidden from screen readers, because the row has the figures."""
    grid = [tag("line", x1=_at(axis, tick), x2=_at(axis, tick), y1=0, y2=STRIP, cls="grid") for tick in axis.ticks]
    return tag("svg", *grid, *parts, width="100%", height=STRIP, cls="strip", aria_hidden="true")


def _at(axis: Axis, value: float) -> str:
    return f"{axis.at(value):.2f}%"


def _tick(value: float) -> str:
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:g}"


def head(axis: Axis) -> Markup:
    """The ticks of a column of pictures, for its head."""
    marks = [tag("text", _tick(tick), x=_at(axis, tick), y=11, cls=_anchor(axis, tick)) for tick in axis.ticks]
    return tag("svg", *marks, width="100%", height=14, cls="strip", aria_hidden="true")


def _anchor(axis: Axis, tick: float) -> str:
    place = axis.at(tick)
    if place < 8:
        return "tick first"
    if place > 92:
        return "tick last"
    return "tick"


def dots(axis: Axis, rates: Iterable[float], colour: int) -> Markup:
    """Every round as a dot, and a line at their median."""
    middle = STRIP / 2
    every = list(rates)
    marks = [tag("circle", cx=_at(axis, rate), cy=middle, r=4, cls=f"dot c{colour}") for rate in every]
    if every:
        place = _at(axis, median(every))
        marks.append(tag("line", x1=place, x2=place, y1=middle - 8, y2=middle + 8, cls="median"))
    return _strip(axis, *marks)


def interval(axis: Axis, estimate: float, low: float | None, high: float | None) -> Markup:
    """A ratio as a dot with its interval as a line; an unbounded one extends to the edge."""
    middle = STRIP / 2
    ends = {"x1": _at(axis, low or axis.low), "x2": _at(axis, high or axis.high)}
    line = tag("line", **ends, y1=middle, y2=middle, cls="interval")
    return _strip(axis, line, tag("circle", cx=_at(axis, estimate), cy=middle, r=3.5, cls="estimate"))


Line = tuple[str, int, Sequence[tuple[float, float]]]  # label, colour, points


def lines(title: str, series: Sequence[Line], limit: float | None = None) -> Markup:
    """Figures over the level: a line for each case, with its number in the table; `limit` is a dashed line."""
    every = list(itertools.chain.from_iterable(points for _, _, points in series))
    values = [y for _, y in every]
    if limit:
        values.append(limit)
    across, up = Axis.of(x for x, _ in every), Axis.of(values)
    top, bottom = 14.0, LINES - 22.0

    def x(value: float) -> str:
        return f"{7 + across.at(value) * 0.88:.2f}%"

    def y(value: float) -> float:
        return bottom - (up.at(value) - LEFT) / (RIGHT - LEFT) * (bottom - top)

    parts = [tag("line", x1="7%", x2="95%", y1=y(tick), y2=y(tick), cls="grid") for tick in up.ticks]
    parts += [tag("text", _tick(tick), x="6.2%", y=y(tick) + 4, cls="tick last") for tick in up.ticks]
    parts += [tag("text", _tick(value), x=x(value), y=LINES - 6, cls="tick") for value in across.ticks]
    if limit:
        parts.append(tag("line", x1="7%", x2="95%", y1=y(limit), y2=y(limit), cls="limit"))
    for _, colour, points in series:
        for (x1, y1), (x2, y2) in itertools.pairwise(points):
            parts.append(tag("line", x1=x(x1), y1=y(y1), x2=x(x2), y2=y(y2), cls=f"line c{colour}"))
        parts += [tag("circle", cx=x(x1), cy=y(y1), r=3, cls=f"dot c{colour}") for x1, y1 in points]
    last: dict[str, float] = {}
    heights: dict[str, float] = {}
    for label, _, points in series:
        if points:
            last[label], heights[label] = points[-1][0], y(points[-1][1])
    for label, place in _apart(heights, bottom).items():
        parts.append(tag("text", label, x=x(last[label]), dx=8, y=place + 4, cls="end"))
    return tag("svg", *parts, width="100%", height=LINES, cls="lines", role="img", aria_label=title)


def _apart(places: Mapping[str, float], bottom: float) -> dict[str, float]:
    """Move labels down to avoid overlaps, and up again to stay inside the picture."""
    moved: dict[str, float] = {}
    last = -math.inf
    for label, place in sorted(places.items(), key=lambda item: item[1]):
        last = moved[label] = max(place, last + LABEL)
    last = bottom + LABEL
    for label in reversed(moved):
        last = moved[label] = min(moved[label], last - LABEL)
    return moved


# ------------------------------------------------------------------------------------- a single picture


Bar = tuple[str, int, Sequence[float]]  # case, colour, rounds

WIDTH, MARGIN, NAME, FIGURE = 860, 24, 300, 84
# Characters in a line of the heading, which a standalone picture does not wrap, and its height.
HEADING_CHARACTERS, HEADING_LINE = 70, 25
STYLE = """text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:#1b1f24}
.heading{font-size:19px;font-weight:650}.dim,.tick{fill:#59636e}.tick{font-size:11px;text-anchor:middle}
.tick.first{text-anchor:start}.tick.last,.figure{text-anchor:end}.card{fill:#fff;stroke:#d1d9e0}
.grid{stroke:#e6eaef}.median{stroke:#1b1f24;stroke-width:1.5}.dot{fill-opacity:.75}
.c0{fill:#6e7781}.c1{fill:#0072b2}.c2{fill:#e69f00}.c3{fill:#009e73}.c4{fill:#d55e00}.c5{fill:#56b4e9}.c6{fill:#cc79a7}"""


def picture(heading: str, below: str, groups: Mapping[str, Sequence[Bar]], foot: str) -> str:
    """Every round of every case as a separate file, on a white card for light and dark pages.

    `groups`: workload -> its cases.
    """
    inner = WIDTH - 2 * MARGIN - NAME - FIGURE
    lines = textwrap.wrap(heading, HEADING_CHARACTERS)
    parts = [
        tag("text", line, x=MARGIN, y=36 + count * HEADING_LINE, cls="heading") for count, line in enumerate(lines)
    ]
    top = 59.0 + len(lines) * HEADING_LINE
    parts.append(tag("text", below, x=MARGIN, y=top - 26, cls="dim"))
    for workload, bars in groups.items():
        axis = Axis.of(itertools.chain.from_iterable(rates for _, _, rates in bars))
        parts.append(tag("text", f"{workload}, requests/s", x=MARGIN, y=top + 11, font_weight="650"))
        parts.append(_placed(head(axis), top, inner))
        for count, (label, colour, rates) in enumerate(bars):
            y = top + 18 + count * STRIP
            parts.append(tag("text", label, x=MARGIN, y=y + 15))
            parts.append(_placed(dots(axis, rates, colour), y, inner))
            figure = "not measured"
            if rates:
                figure = number(median(rates))
            parts.append(tag("text", figure, x=WIDTH - MARGIN, y=y + 15, cls="figure"))
        top += 18 + len(bars) * STRIP + 22
    height = top + 24
    parts.append(tag("text", foot, x=MARGIN, y=height - 16, cls="dim"))
    card = tag("rect", x=0.5, y=0.5, width=WIDTH - 1, height=height - 1, rx=8, cls="card")
    return tag(
        "svg",
        tag("title", heading),
        tag("style", Markup(STYLE)),
        card,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height:g}",
        width=WIDTH,
        height=height,
        role="img",
    )


def _placed(drawing: Markup, y: float, width: float) -> Markup:
    """A strip at its place in the picture: percentages refer to its own width."""
    return tag("svg", drawing, x=MARGIN + NAME, y=y, width=width, height=STRIP)

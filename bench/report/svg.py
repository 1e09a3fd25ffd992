"""Pieces that all charts are drawn with: SVG elements, colours, markers and the card of a standalone picture. Pure.

Colours are classes (`k0`, `k1`, ...) that a style sheet resolves for light, dark and print.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from bench.report.numbers import printable

COLOURS = 8  # k0 is the baseline's grey; k1 to k7 are the Okabe-Ito colours, which then repeat
PATTERNS = 5

CHARACTER = 6.9  # average width of a 13 px character


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element. Text and attribute values are escaped; `cls` means class, `_` in a name becomes a hyphen."""
    # A chart has thousands of elements: strings are joined several times as fast as Markup.
    pairs = "".join(
        f' {_attribute(key)}="{escape(_text(value))}"' for key, value in attributes.items() if value is not None
    )
    content = "".join(child if isinstance(child, Markup) else escape(_text(child)) for child in children)
    return Markup(f"<{name}{pairs}>{content}</{name}>" if children else f"<{name}{pairs}/>")


def _attribute(key: str) -> str:
    return "class" if key == "cls" else key if key == "viewBox" else key.replace("_", "-")


def _text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else printable(value)


def colour(index: int) -> str:
    """The class of a colour: 0 is the baseline's; the others repeat."""
    return f"k{index if index < COLOURS else 1 + (index - 1) % (COLOURS - 1)}"


def patterns() -> Markup:
    """Definitions of the hatchings that make stacked parts distinct without colour; needed once in a document."""
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


def marker(shape: int, x: float, y: float, cls: str) -> Markup:
    """A circle, a diamond, a triangle or a square, about equally heavy."""
    if shape % 4 == 0:
        return tag("circle", cx=x, cy=y, r=4.5, cls=cls)
    paths = {1: "m0-5.8l5.8 5.8l-5.8 5.8l-5.8-5.8z", 2: "m0-5.6l5.6 9.8h-11.2z", 3: "m-4.2-4.2h8.4v8.4h-8.4z"}
    return tag("path", d=f"M{x:.1f} {y:.1f}{paths[shape % 4]}", cls=cls)


def marker_key(shape: int, filled: bool = True) -> Markup:
    """A marker for a legend."""
    return tag(
        "svg",
        marker(shape, 7.0, 7.0, "dot key" if filled else "hollow"),
        viewBox="0 0 14 14",
        width=14,
        height=14,
        cls="key",
        aria_hidden="true",
    )


def swatch(index: int, hatched: bool = False) -> Markup:
    """A colour with its hatching for a legend."""
    box = {"x": 1, "y": 1, "width": 12, "height": 12, "rx": 1.5}
    parts = [tag("rect", **box, cls=f"bar {colour(index)}")]
    if hatched and (index - 1) % PATTERNS:
        parts.append(tag("rect", **box, fill=f"url(#hatch{(index - 1) % PATTERNS})"))
    return tag("svg", *parts, viewBox="0 0 14 14", width=14, height=14, cls="key", aria_hidden="true")


def fit(text: str, room: float, character: float = CHARACTER) -> str:
    """`text`, cut with an ellipsis when it would not fit into `room` pixels, estimated from an average character."""
    text = printable(text)
    limit = max(4, int(room / character))
    return text if len(text) <= limit else text[: limit - 1] + "…"


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
    """A chart as a file of its own, on a white card that reads well on light and dark pages.

    `style` is the charts' style sheet. Its variables become plain colours: many image viewers do not support them.
    """
    found = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)
    inner_width, inner_height = map(float, found[0])
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

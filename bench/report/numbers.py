"""Figures as text: three significant digits, a unit, and `not measured` instead of null."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime

from bench.figures.stats import Estimate, PooledPercentile

NOT_MEASURED = "not measured"
DASH = "\N{EN DASH}"  # where no figure is expected, as in the row of a failed case
TIMES = "\N{MULTIPLICATION SIGN}"

MIB = 1024 * 1024

Show = Callable[[float | None], str]  # how a figure is written
Figure = Estimate | PooledPercentile

# Characters that break a line, hide text or are invalid XML: control characters, bidirectional marks, non-characters
# and lone surrogates.
_UNPRINTABLE = dict.fromkeys(
    (
        *range(0x09),
        *range(0x0B, 0x0D),
        *range(0x0E, 0x20),
        *range(0x7F, 0xA0),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
        *range(0xD800, 0xE000),
        0xFFFE,
        0xFFFF,
    ),
    "\N{REPLACEMENT CHARACTER}",
)


def printable(text: object) -> str:
    """`text` with each unsafe character replaced by the replacement character."""
    return str(text).translate(_UNPRINTABLE)


def one_line(text: object) -> str:
    """`text` on one line, each run of white space as one space."""
    return " ".join(printable(text).split())


def number(value: float | None) -> str:
    """Three significant digits, thousands apart: 12,345 / 123 / 12.3 / 1.23 / 0.0123."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    if value == 0:
        return "0"
    if 0 < value < 5e-7:
        return "under 0.000001"  # never 0.000000, which reads as zero
    # Rounding first keeps 99.96 from being shown as 100.0 and 9.996 as 10.00.
    digits = 2 - math.floor(math.log10(abs(value)))
    digits = 2 - math.floor(math.log10(abs(round(value, digits)))) if round(value, digits) else digits
    return f"{value:,.{min(max(digits, 0), 6)}f}"


def as_published(value: float) -> str:
    """A published figure with its published digits."""
    return f"{value:,.10g}"


def whole(value: int | None) -> str:
    """A count, thousands apart."""
    return NOT_MEASURED if value is None else f"{value:,}"


def times(value: float | None) -> str:
    """A ratio with a multiplication sign behind it."""
    return NOT_MEASURED if value is None else f"{number(value)}{TIMES}"


def mebibytes(value: float | None) -> str:
    """Bytes as mebibytes, without the unit."""
    return NOT_MEASURED if value is None else number(value / MIB)


def median(figure: Figure | None, show: Show = number) -> str:
    """The median alone."""
    return show(figure.median if figure else None)


def range_of(figure: Figure | None, show: Show = number) -> str:
    """`low to high`, or `one round` without a range."""
    if figure is None:
        return NOT_MEASURED
    if not figure.count:
        return "all rounds pooled"
    return "one round" if figure.count == 1 else f"{show(figure.low)} to {show(figure.high)}"


def size(value: int) -> str:
    """The memory of a machine in MiB or GiB."""
    return f"{number(value / MIB / 1024)} GiB" if value >= 1024 * MIB else f"{number(value / MIB)} MiB"


def moment(text: str | None) -> datetime | None:
    """An ISO 8601 time in UTC; None when the text is not one."""
    try:
        when = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)


def when(text: str) -> str:
    """`21 November 2026, 08:07 UTC`; the text itself when it is not a time."""
    at = moment(text)
    return f"{at.day} {at:%B %Y, %H:%M} UTC" if at else text

"""Every phrase, number and plural for people: in the terminal, on the page and in documents.

None is "not measured", never zero. A figure has three significant digits.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain

from bench import PROGRAM

# The four verdict words. A case proven slower has none: its ratio is shown.
LEADS, TIES, INCONCLUSIVE, NOT_MEASURED = "leads", "ties", "inconclusive", "not measured"

MIB = 1024 * 1024
MAX_NAMES = 3  # in one sentence

# Characters that break a line, hide text or are invalid XML: control characters, bidirectional marks, lone surrogates.
_RANGES = (
    *(range(0x09), range(0x0B, 0x0D), range(0x0E, 0x20), range(0x7F, 0xA0)),
    *(range(0x202A, 0x202F), range(0x2066, 0x206A), range(0xD800, 0xE000), range(0xFFFE, 0x10000)),
)
_UNPRINTABLE = dict.fromkeys(chain.from_iterable(_RANGES), "\N{REPLACEMENT CHARACTER}")


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 round`, `3 rounds`."""
    if count == 1:
        return f"{count:,} {one}"
    return f"{count:,} {many or one + 's'}"


def joined(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`; `last` replaces `and`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def first_names(names: Sequence[str]) -> str:
    """At most MAX_NAMES of the names, and how many more: `a, b, c and 4 more`."""
    more = []
    if len(names) > MAX_NAMES:
        more = [f"{len(names) - MAX_NAMES} more"]
    return joined([*names[:MAX_NAMES], *more])


def duration(seconds: float) -> str:
    """`40 s`, `4 min 10 s`, `2 h 5 min`."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        if rest:
            return f"{minutes} min {rest} s"
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if minutes:
        return f"{hours} h {minutes} min"
    return f"{hours} h"


def estimate(seconds: float) -> str:
    """An estimate: `40 s`, `3 min`, `1 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


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
    if round(value, digits):
        digits = 2 - math.floor(math.log10(abs(round(value, digits))))
    return f"{value:,.{min(max(digits, 0), 6)}f}"


def compact(value: float) -> str:
    """A count, or seconds to a hundredth: `0`, `12`, `0.35`."""
    digits = 1
    if value < 10:
        digits = 2
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".")


def interval_text(low: float, high: float | None) -> str:
    """The ends of an interval: `1.9 to 2.4`, or `1.9 or more`."""
    if high is None or math.isinf(high):
        return f"{number(low)} or more"
    return f"{number(low)} to {number(high)}"


def interval(low: float, high: float | None) -> str:
    """`1.9 to 2.4 (95 % confidence)`."""
    return f"{interval_text(low, high)} (95 % confidence)"


def size(count: float) -> str:
    """The memory of a machine in MiB or GiB."""
    if count >= 1024 * MIB:
        return f"{number(count / MIB / 1024)} GiB"
    return f"{number(count / MIB)} MiB"


def timestamp_text(text: str) -> str:
    """`21 November 2026, 08:07 UTC`; the unchanged text if not an ISO 8601 time."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    if at.tzinfo:
        at = at.astimezone(UTC)
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def printable(text: object) -> str:
    """`text` with each unsafe character replaced by the replacement character."""
    return str(text).translate(_UNPRINTABLE)


def one_line(text: object) -> str:
    """`text` on one line, each run of white space as one space."""
    return " ".join(printable(text).split())


def command_line(*words: object) -> str:
    """A command of this program that a shell takes as it is printed."""
    return shlex.join([*PROGRAM.split(), *map(str, words)])


def option_words(options: Mapping[str, str | Sequence[str] | None]) -> list[str]:
    """The words of options with a value, on a command line; an option with several values is repeated."""
    words: list[str] = []
    for option, given in options.items():
        values = given
        if isinstance(given, str):
            values = [given]
        for value in values or ():
            words += [option, value]
    return words


def setting_words(settings: Mapping[str, object]) -> list[str]:
    """`NAME=VALUE` of each setting, as on a command line."""
    return [f"{name}={value}" for name, value in settings.items()]


def case_name(stack: str, layer: str, none: str = "none") -> str:
    """A stack with its layer: `stack with layer`; without a layer only the stack."""
    if layer == none:
        return one_line(stack)
    return f"{one_line(stack)} with {one_line(layer)}"

"""Counts, lists and durations as words of a sentence."""

from __future__ import annotations


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 round`, `3 rounds`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def joined(words: list[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`; `last` replaces `and`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def duration(seconds: float) -> str:
    """`40 s`, `4 min 10 s`, `2 h 5 min`."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def about(seconds: float) -> str:
    """An estimate: `40 s`, `3 min`, `1 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

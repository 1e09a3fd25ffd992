"""Rows of text as aligned columns, and paragraphs, within a width: for all printed text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

# A narrower column would have a word a line; it goes beyond the width instead.
MIN_WIDTH = 20


def columns(rows: Iterable[Sequence[str]], indent: str = "", width: int | None = None) -> list[str]:
    """One line a row, the cells left-aligned and two spaces apart; all rows have the same number of cells.

    With a `width`, the last cell is wrapped within its column.
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    lines = []
    for *cells, last in rows:
        start = indent + "".join(f"{cell:{size}}  " for cell, size in zip(cells, widths, strict=True))
        wrapped = [last]
        if width:
            wrapped = paragraph(last, width - len(start))
        lines.append((start + wrapped[0]).rstrip())
        lines += [" " * len(start) + line for line in wrapped[1:]]
    return lines


def paragraph(text: str, width: int, indent: str = "", hanging: str = "") -> list[str]:
    """Wrap the text to a width, each line indented, later lines by `hanging` too. A longer word is broken."""
    return textwrap.wrap(
        text, max(width, MIN_WIDTH), initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False
    ) or [""]

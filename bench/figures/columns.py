"""Rows of text as aligned columns, for everything that a command prints as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def columns(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """One line a row, the cells left-aligned and two spaces apart; all rows have the same number of cells."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        indent + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]

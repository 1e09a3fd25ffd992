"""From the position of a row in a list, newest first, to the id that it is found by."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from benchapp.page_index.triggers import LARGE, SMALL

BLOCKS = (
    "SELECT block, rows FROM benchapp_pageblock WHERE list = %s AND bits = %s AND block BETWEEN %s AND %s"
    " ORDER BY block DESC"
)
EVERY = -(1 << 63), (1 << 63) - 1


class Place(NamedTuple):
    """Where a row stands: after `newer` rows with an id of at most `last_id`."""

    last_id: int
    newer: int


class Blocks:
    """The counted blocks of a table. `connection` is Django's."""

    def __init__(self, connection: Any, table: str):
        self.connection, self.table = connection, table

    @cached_property
    def large(self) -> list[tuple[int, int]]:
        """The large blocks, each with its number of rows, newest first."""
        return self._read(LARGE, *EVERY)

    @property
    def total(self) -> int:
        """The length of the whole list."""
        return sum(rows for _, rows in self.large)

    def place(self, position: int) -> Place | None:
        """The place of the row with `position` newer ones; None where the list has no such row."""
        block, newer = _step(self.large, position)
        if block is not None:
            first = block << LARGE - SMALL
            block, newer = _step(self._read(SMALL, first, first + (1 << LARGE - SMALL) - 1), newer)
        return None if block is None else Place((block + 1 << SMALL) - 1, newer)

    def _read(self, bits: int, low: int, high: int) -> list[tuple[int, int]]:
        with self.connection.cursor() as cursor:
            cursor.execute(BLOCKS, [self.table, bits, low, high])
            return cursor.fetchall()


def _step(blocks: list[tuple[int, int]], position: int) -> tuple[int | None, int]:
    """The block with the row that `position` others of `blocks` come before, and how many of these are in it."""
    for block, rows in blocks:
        if position < rows:
            return block, position
        position -= rows
    return None, 0

"""From the position of a row in a list, newest first, to the block that holds it.

PostgreSQL needs one query: a function adds up the blocks. SQLite runs inside this process, where a loop
over the blocks is an order of magnitude faster than a window function.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

BITS = 8  # the SQL files say the same
LEVELS = (16, 8)
BATCH = 64  # blocks that are read at once: the one looked for is often among the first

TOTAL = "SELECT coalesce(sum(rows), 0) FROM benchapp_pageblock WHERE list = %s AND bits = 16"
BLOCKS = (
    "SELECT block, rows FROM benchapp_pageblock WHERE list = %s AND bits = %s AND block BETWEEN %s AND %s"
    " ORDER BY block "
)


class Place(NamedTuple):
    """Where a row stands: `newer` rows with an id up to `last_id` come before it. `total` is the list's length."""

    total: int
    last_id: int | None = None  # None if the list is not that long
    newer: int = 0


def total(connection: Any, table: str) -> int:
    """The number of rows of a table."""
    with connection.cursor() as cursor:
        cursor.execute(TOTAL, [table])
        return int(cursor.fetchone()[0])


def locate(connection: Any, table: str, position: int) -> Place:
    """The place of the row that has `position` rows with higher ids. `connection` is Django's."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT total, last_id, newer FROM benchapp_find_block(%s, %s)", [table, position])
            return Place(*cursor.fetchone())
        cursor.execute(TOTAL, [table])
        (rows,) = cursor.fetchone()
        if position >= rows:
            return Place(rows)
        return Place(rows, *find_in_sqlite(cursor, table, rows, position))


def find_in_sqlite(cursor: Any, table: str, held: int, newer: int) -> tuple[int, int]:
    """Through the blocks from the nearer end, first the large ones, then the small ones within one of these.

    `held` is the number of rows of the list, `newer` how many of them come before the one to be found.
    """
    low, high = -(1 << 63), (1 << 63) - 1
    for bits in LEVELS:
        descending = newer < held // 2
        rest = newer if descending else held - 1 - newer
        cursor.execute(BLOCKS + ("DESC" if descending else "ASC"), [table, bits, low, high])
        for block, held in chain.from_iterable(iter(lambda: cursor.fetchmany(BATCH), [])):  # noqa: B007
            if rest < held:
                break
            rest -= held
        newer = rest if descending else held - 1 - rest
        low, high = block << BITS, (block << BITS) + (1 << BITS) - 1
    return high, newer

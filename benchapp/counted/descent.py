"""Finding the key of a row from its position: down the page index, whatever the depth at the same price.

One question to PostgreSQL, where a function walks; a few to SQLite, which answers each within
microseconds, faster than one statement with window functions over the same buckets.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from benchapp.counted.postgresql import DESCEND
from benchapp.counted.trees import BITS, LEVELS, TABLE, Tree

TOTAL = f"SELECT coalesce(sum(rows), 0) FROM {TABLE} WHERE tree = %s AND scope = 0 AND level = {LEVELS[0]}"
BUCKETS = (
    f"SELECT bucket, rows FROM {TABLE} WHERE tree = %s AND scope = %s AND level = %s"
    " AND bucket BETWEEN %s AND %s ORDER BY bucket "
)
EVERY_BUCKET = (-(1 << 63), (1 << 63) - 1)

# Buckets are read by so many, since the one looked for is often among the first.
BATCH = 64


def total(connection: Any, tree: Tree) -> int:
    """How many rows a whole list has."""
    with connection.cursor() as cursor:
        cursor.execute(TOTAL, [tree.number])
        return int(cursor.fetchone()[0])


def locate(connection: Any, tree: Tree, scope: int, position: int, ascending: bool) -> tuple[int, int | None]:
    """The number of rows in the list, and the key of the row at a position from 0 (None beyond the end).

    `scope` is the parent's id, 0 for a whole list; lists run by descending key unless `ascending`.
    """
    find = locate_in_postgresql if connection.vendor == "postgresql" else locate_in_sqlite
    with connection.cursor() as cursor:
        return find(cursor, tree, scope, position, ascending)


def locate_in_postgresql(cursor: Any, tree: Tree, scope: int, position: int, ascending: bool) -> tuple[int, int | None]:
    count = f"p.{tree.count}" if tree.scope else "d.total"
    skip = f"{count} - 1 - %(position)s" if ascending else "%(position)s"
    within = f"{tree.scope} = %(scope)s AND " if tree.scope else ""
    key = (
        f"SELECT {tree.key} FROM {tree.table} WHERE {within}{tree.key} BETWEEN d.low AND d.high"
        f" ORDER BY {tree.key} DESC LIMIT 1 OFFSET greatest(d.rest, 0)"
    )
    parent = f"{tree.parent} p CROSS JOIN LATERAL " if tree.scope else ""
    where = " WHERE p.id = %(scope)s" if tree.scope else ""
    cursor.execute(
        f"SELECT {count}, CASE WHEN %(position)s < {count} THEN ({key}) END"
        f" FROM {parent}{DESCEND}({tree.number}, %(scope)s, {skip}) d{where}",
        {"position": position, "scope": scope},
    )
    return cursor.fetchone() or (0, None)


def locate_in_sqlite(cursor: Any, tree: Tree, scope: int, position: int, ascending: bool) -> tuple[int, int | None]:
    if tree.scope:
        stored = f"SELECT 1 FROM {TABLE} WHERE tree = %s AND scope = %s AND level BETWEEN 1 AND 3"
        cursor.execute(
            f"SELECT {tree.count}, EXISTS ({stored}) FROM {tree.parent} WHERE id = %s",
            [tree.number, scope, scope],
        )
        count, descends = cursor.fetchone() or (0, False)
    else:
        cursor.execute(TOTAL, [tree.number])
        count, descends = cursor.fetchone()[0], True
    if position >= count:
        return count, None
    skip = count - 1 - position if ascending else position
    bucket, skip = descend(cursor, tree, scope, skip, count) if descends else (0, skip)
    within = f"{tree.scope} = %s AND " if tree.scope else ""
    cursor.execute(
        f"SELECT {tree.key} FROM {tree.table} WHERE {within}{tree.key} BETWEEN %s AND %s"
        f" ORDER BY {tree.key} DESC LIMIT 1 OFFSET %s",
        [*([scope] if tree.scope else []), *keys_of(bucket), skip],
    )
    row = cursor.fetchone()
    return count, row[0] if row else None


def descend(cursor: Any, tree: Tree, scope: int, skip: int, count: int) -> tuple[int, int]:
    """The bucket of level 1 with the row that has `skip` rows above it, and how many of these it holds."""
    keys, held = EVERY_BUCKET, count
    for level in LEVELS:
        # From the nearer end, unless a bucket that is not stored is at the lower one.
        from_below = not scope and skip > held // 2
        if from_below:
            skip = held - 1 - skip
        cursor.execute(BUCKETS + ("ASC" if from_below else "DESC"), [tree.number, scope, level, *keys])
        bucket = 0  # if none of those stored: the parent's rows beyond the stored buckets
        for stored, rows in chain.from_iterable(iter(lambda: cursor.fetchmany(BATCH), [])):
            if skip < rows:
                bucket, held = stored, rows
                break
            skip -= rows
        if from_below:
            skip = held - 1 - skip
        keys = keys_of(bucket)
    return bucket, skip


def keys_of(bucket: int) -> tuple[int, int]:
    """The first and last key of a bucket of level 1, or number of bucket one level down."""
    return bucket << BITS, (bucket + 1 << BITS) - 1

"""The page index compared with the rows it counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchapp.counted.install import missing_triggers
from benchapp.counted.rebuild import COLUMNS
from benchapp.counted.trees import BITS, LEVELS, MARK, TABLE, TREES, Tree


def counted_select(tree: Tree) -> str:
    """What the buckets of a tree should be, each level counted from the table itself."""
    selects = []
    for level in LEVELS:
        bucket = f"{tree.key} >> {level * BITS}"
        if tree.scope is None:
            selects.append(f"SELECT {tree.number}, 0, {level}, {bucket}, count(*) FROM {tree.table} GROUP BY {bucket}")
        else:
            selects.append(
                f"SELECT {tree.number}, {tree.scope}, {level}, {bucket}, count(*) FROM {tree.table}"
                f" WHERE {bucket} > 0 GROUP BY {tree.scope}, {bucket}"
            )
    return " UNION ALL ".join(selects)


def stored_select(tree: Tree) -> str:
    return f"SELECT {COLUMNS} FROM {TABLE} WHERE tree = {tree.number} AND level <> {MARK}"


def wrong_buckets(cursor: Any, tree: Tree) -> Iterator[str]:
    """Buckets whose stored count is not that of the rows, missing or too many."""
    wrong: dict[tuple[int, ...], list[int]] = {}
    for place, (one, other) in enumerate(
        [(stored_select(tree), counted_select(tree)), (counted_select(tree), stored_select(tree))]
    ):
        cursor.execute(f"SELECT * FROM ({one}) AS a EXCEPT SELECT * FROM ({other}) AS b")
        for _, scope, level, bucket, rows in cursor.fetchall():
            wrong.setdefault((scope, -level, bucket), [0, 0])[place] = rows
    for (scope, level, bucket), (stored, counted) in sorted(wrong.items()):
        of = f" {scope}" if tree.scope else ""
        yield f"{tree.name}{of}, level {-level}, bucket {bucket}: {stored} stored, {counted} counted"


def wrong_parents(cursor: Any, tree: Tree) -> Iterator[str]:
    """Parents whose count of children is not the number of their children."""
    cursor.execute(
        f"SELECT p.id, p.{tree.count}, coalesce(c.n, 0) FROM {tree.parent} p LEFT JOIN"
        f" (SELECT {tree.scope} AS id, count(*) AS n FROM {tree.table} GROUP BY {tree.scope}) c ON c.id = p.id"
        f" WHERE p.{tree.count} <> coalesce(c.n, 0) ORDER BY p.id"
    )
    for scope, stored, counted in cursor.fetchall():
        yield f"{tree.parent} {scope}, {tree.count}: {stored} stored, {counted} counted"


def missing_numbers(cursor: Any, tree: Tree) -> Iterator[str]:
    """Children without a number, which no page shows."""
    cursor.execute(f"SELECT count(*) FROM {tree.table} WHERE number IS NULL")
    (rows,) = cursor.fetchone()
    if rows:
        yield f"{tree.name}: {rows} without a number"


def differences(connection: Any) -> list[str]:
    """One line for each thing that is wrong, none when the index is right. `connection` is Django's."""
    with connection.cursor() as cursor:
        lines = [f"trigger {name} is missing" for name in missing_triggers(cursor, connection.vendor)]
        for tree in TREES:
            lines += wrong_buckets(cursor, tree)
            if tree.scope:
                lines += wrong_parents(cursor, tree)
                lines += missing_numbers(cursor, tree)
        cursor.execute(f"SELECT count(*) FROM {TABLE} WHERE tree NOT BETWEEN 1 AND {len(TREES)}")
        (strays,) = cursor.fetchone()
        if strays:
            lines.append(f"{TABLE}: {strays} rows of no tree")
    return lines

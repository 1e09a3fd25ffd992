"""The page index made from the rows themselves, and compared with them: seconds for millions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import transaction

from benchapp.page_index.triggers import LARGE, LISTS, OURS, SMALL, List, create_triggers, missing_triggers

# The rows of all blocks, by one walk through each table: the large blocks are added up from the small ones.
COUNTED_BLOCKS = (
    "WITH small AS ("
    + " UNION ALL ".join(
        f"SELECT '{table}' AS list, id >> {SMALL} AS block, count(*) AS rows FROM {table} GROUP BY id >> {SMALL}"
        for table in OURS
    )
    + f") SELECT list, {SMALL} AS bits, block, rows FROM small UNION ALL"
    f" SELECT list, {LARGE}, block >> {LARGE - SMALL}, sum(rows) FROM small GROUP BY list, block >> {LARGE - SMALL}"
)


def fill(cursor: Any) -> None:
    """Count the rows of all blocks anew; counts on parents are left alone, and nobody else may write meanwhile.

    `cursor` may be Django's or the driver's own.
    """
    cursor.execute("DELETE FROM benchapp_pageblock")
    cursor.execute(f"INSERT INTO benchapp_pageblock (list, bits, block, rows) {COUNTED_BLOCKS}")


def rebuild(connection: Any) -> None:
    """Count everything anew while the site runs: writers wait, readers do not. `connection` is Django's."""
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"LOCK TABLE {', '.join(OURS)} IN SHARE ROW EXCLUSIVE MODE")
        create_triggers(cursor, connection.vendor)
        fill(cursor)
        for one in LISTS:
            if one.parent:
                cursor.execute(
                    f"UPDATE {one.parent} SET {one.count} = (SELECT count(*) FROM {one.table} WHERE {one.key} ="
                    f" {one.parent}.id) WHERE id IN (SELECT id FROM ({_wrong_counts(one)}) AS wrong)"
                )


def install(apps: Any, schema_editor: Any) -> None:
    """Create the page index and count the rows that are there, in a migration."""
    rebuild(schema_editor.connection)


def differences(connection: Any) -> list[str]:
    """One line for each thing that is wrong, none when the index is right. `connection` is Django's."""
    with connection.cursor() as cursor:
        lines = [f"trigger {name} is missing" for name in missing_triggers(cursor, connection.vendor)]
        lines += _wrong_blocks(cursor)
        for one in LISTS:
            if one.parent:
                cursor.execute(f"{_wrong_counts(one)} ORDER BY 1")
                lines += [
                    f"{one.parent} {pk}, {one.count}: {stored} stored, {counted} counted"
                    for pk, stored, counted in cursor.fetchall()
                ]
    return lines


def _wrong_blocks(cursor: Any) -> Iterator[str]:
    """Blocks whose stored count is not that of their rows; none and 0 are the same."""
    cursor.execute(
        "SELECT list, bits, block, sum(stored), sum(counted) FROM ("
        " SELECT list, bits, block, rows AS stored, 0 AS counted FROM benchapp_pageblock"
        f" UNION ALL SELECT list, bits, block, 0, rows FROM ({COUNTED_BLOCKS}) AS counted_blocks"
        ") AS both_counts GROUP BY list, bits, block HAVING sum(stored) <> sum(counted) ORDER BY 1, 2, 3"
    )
    for table, bits, block, stored, counted in cursor.fetchall():
        yield f"{table}, ids from {block << bits}: {stored} stored, {counted} counted"


def _wrong_counts(one: List) -> str:
    """SELECT of the parents whose count of children is not the number of their children."""
    return (
        f"SELECT parent.id, parent.{one.count}, coalesce(children.counted, 0) FROM {one.parent} AS parent"
        f" LEFT JOIN (SELECT {one.key}, count(*) AS counted FROM {one.table} GROUP BY {one.key}) AS children"
        f" ON children.{one.key} = parent.id WHERE parent.{one.count} <> coalesce(children.counted, 0)"
    )

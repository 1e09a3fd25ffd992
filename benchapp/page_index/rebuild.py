"""The page index made from the rows themselves, and compared with them: seconds for millions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db import transaction

from benchapp.page_index.locate import LEVELS
from benchapp.page_index.sql import create_triggers, missing_triggers, triggers

VALUES_PER_STATEMENT = 500
TABLES = ("benchapp_author", "benchapp_post", "benchapp_comment")


class Children(NamedTuple):
    """A count of children on their parent."""

    parent: str
    count: str
    table: str
    key: str


CHILDREN = (
    Children("benchapp_author", "post_count", "benchapp_post", "author_id"),
    Children("benchapp_post", "comment_count", "benchapp_comment", "post_id"),
)


def fill(cursor: Any) -> None:
    """Count the rows of all blocks anew; counts on parents are left alone.

    Nobody else may write at the same time. `cursor` may be Django's or the driver's own.
    """
    cursor.execute("DELETE FROM benchapp_pageblock")
    for table in TABLES:
        for bits in LEVELS:
            cursor.execute(f"INSERT INTO benchapp_pageblock (list, bits, block, rows) {_blocks_of(table, bits)}")


def fill_without_gaps(cursor: Any, counts: dict[str, int]) -> None:
    """As `fill`, for tables whose ids are 1 to `counts[table]`: nothing has to be read."""
    for table, last in counts.items():
        for bits in LEVELS:
            size = 1 << bits
            values = [
                f"('{table}', {bits}, {first >> bits}, {min(last, first + size - 1) - max(1, first) + 1})"
                for first in range(0, last + 1, size)
            ]
            for start in range(0, len(values), VALUES_PER_STATEMENT):
                some = ", ".join(values[start : start + VALUES_PER_STATEMENT])
                cursor.execute(f"INSERT INTO benchapp_pageblock (list, bits, block, rows) VALUES {some}")


def rebuild(connection: Any) -> None:
    """Make the whole page index anew while the site runs: writers wait, readers do not. `connection` is Django's."""
    vendor = connection.vendor
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if vendor == "postgresql":
            cursor.execute(f"LOCK TABLE {', '.join(TABLES)} IN SHARE ROW EXCLUSIVE MODE")
        create_triggers(cursor, vendor)
        for name, table in triggers(vendor).items():
            if name.endswith("_keep"):  # which would undo the repair
                drop = f"ALTER TABLE {table} DISABLE TRIGGER" if vendor == "postgresql" else "DROP TRIGGER"
                cursor.execute(f"{drop} {name}")
        fill(cursor)
        for children in CHILDREN:
            parent, count, table, key = children
            cursor.execute(
                f"UPDATE {parent} SET {count} = (SELECT count(*) FROM {table} WHERE {key} = {parent}.id)"
                f" WHERE id IN (SELECT id FROM ({_wrong_counts(children)}) AS wrong)"
            )
        create_triggers(cursor, vendor)


def differences(connection: Any) -> list[str]:
    """One line for each thing that is wrong, none when the index is right. `connection` is Django's."""
    with connection.cursor() as cursor:
        lines = [f"trigger {name} is missing" for name in missing_triggers(cursor, connection.vendor)]
        for table in TABLES:
            for bits in LEVELS:
                lines += _wrong_blocks(cursor, table, bits)
        for children in CHILDREN:
            cursor.execute(f"{_wrong_counts(children)} ORDER BY 1")
            lines += [
                f"{children.parent} {key}, {children.count}: {stored} stored, {counted} counted"
                for key, stored, counted in cursor.fetchall()
            ]
        cursor.execute(f"SELECT count(*) FROM benchapp_pageblock WHERE list NOT IN {TABLES}")
        if strays := cursor.fetchone()[0]:
            lines.append(f"benchapp_pageblock: {strays} rows of no list")
    return lines


def _blocks_of(table: str, bits: int) -> str:
    """The blocks of a level as they should be."""
    block = f"id >> {bits}"
    return f"SELECT '{table}' AS list, {bits} AS bits, {block} AS block, count(*) AS rows FROM {table} GROUP BY {block}"


def _wrong_blocks(cursor: Any, table: str, bits: int) -> Iterator[str]:
    """Blocks whose stored count is not that of the rows, missing or too many."""
    cursor.execute(
        "SELECT block, sum(stored), sum(counted) FROM ("
        " SELECT block, rows AS stored, 0 AS counted FROM benchapp_pageblock"
        f" WHERE list = '{table}' AND bits = {bits}"
        f" UNION ALL SELECT block, 0, rows FROM ({_blocks_of(table, bits)}) AS b"
        ") AS both_counts GROUP BY block HAVING sum(stored) <> sum(counted) ORDER BY block"
    )
    for block, stored, counted in cursor.fetchall():
        yield f"{table}, ids from {block << bits}: {stored} stored, {counted} counted"


def _wrong_counts(children: Children) -> str:
    """SELECT of the parents whose count of children is not the number of their children."""
    parent, count, table, key = children
    return (
        f"SELECT p.id, p.{count} AS stored, coalesce(c.counted, 0) AS counted FROM {parent} p"
        f" LEFT JOIN (SELECT {key} AS id, count(*) AS counted FROM {table} GROUP BY {key}) c ON c.id = p.id"
        f" WHERE p.{count} <> coalesce(c.counted, 0)"
    )

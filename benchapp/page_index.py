"""The page index: how many rows each block of ids has, and how many children each parent, counted by triggers.

A page far down a list is cheap when the database knows the id it begins with. The table `benchapp_pageblock` holds the
number of rows of each block of 256 ids (`id >> 8`) and of each 64 of these blocks (`id >> 14`). Adding up the large
blocks, then the small ones within one of them, leads to the block that a page begins in; an OFFSET of at most 255 does
the rest. The sum of the large blocks is the length of the list. Ids may have gaps of any size.

Triggers count what INSERT and DELETE do, and an UPDATE that gives a row another parent, by any writer: the ORM one by
one or in bulk, cascades, raw SQL, COPY. A writer holds the counts of its blocks and parents until its transaction
ends, so writers of one list take turns; of two statements that move rows between many parents one can deadlock.

Not counted: TRUNCATE, a changed id, a child that is inserted before its parent, a count that raw SQL sets, INSERT OR
REPLACE in SQLite, and what is written while triggers are disabled. After these run `./manage.py recount`. Until then a
page that does not have the rows that the index promises is found as Django's paginator does it: right, but slow. Only
pages beyond a count that is too small are not found.

A migration that rebuilds one of the tables in SQLite ends with `RunPython(page_index.install, page_index.remove)`:
the triggers go with the old table.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from django.db import transaction

# Of the ids in a block, as powers of 2. SQLite passes whole rows on its way through a small one, and large ones are
# added up for every page: a million rows have 60 of them, ten million 600.
SMALL, LARGE = 8, 14


class List(NamedTuple):
    """A table whose rows are counted, and the column of its parents that counts those of each."""

    table: str
    key: str = ""
    parent: str = ""
    count: str = ""

    @property
    def counted(self) -> str:
        """SQL: how many children a parent has."""
        return f"(SELECT count(*) FROM {self.table} WHERE {self.key} = {self.parent}.id)"


LISTS = (
    List("benchapp_author"),
    List("benchapp_post", "author_id", "benchapp_author", "post_count"),
    List("benchapp_comment", "post_id", "benchapp_post", "comment_count"),
)
TABLES = tuple(one.table for one in LISTS)
CHILDREN = tuple(one for one in LISTS if one.parent)

# --- Reading ------------------------------------------------------------------------------------

BLOCKS = (
    "SELECT block, rows FROM benchapp_pageblock WHERE list = %s AND bits = %s AND block BETWEEN %s AND %s"
    " ORDER BY block DESC"
)
EVERY = -(1 << 63), (1 << 63) - 1


class Blocks:
    """The counted blocks of a table, each with its number of rows, newest first. `connection` is Django's."""

    def __init__(self, connection: Any, table: str):
        self.connection, self.table = connection, table

    @cached_property
    def large(self) -> list[tuple[int, int]]:
        """All large blocks."""
        return self._read(LARGE, *EVERY)

    @property
    def total(self) -> int:
        """The length of the whole list."""
        return sum(rows for _, rows in self.large)

    def place(self, position: int) -> tuple[int, int] | None:
        """The highest id of the block with the row that `position` newer ones precede, and how many of these it has.

        None where no such row is counted, or was deleted since the large blocks were read.
        """
        block, newer = _step(self.large, position)
        if block is not None:
            first = block << LARGE - SMALL
            block, newer = _step(self._read(SMALL, first, first + (1 << LARGE - SMALL) - 1), newer)
        return None if block is None else ((block + 1 << SMALL) - 1, newer)

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


# --- The triggers -------------------------------------------------------------------------------

PAGE_BLOCKS = """
CREATE TABLE IF NOT EXISTS benchapp_pageblock (
  list varchar(40) NOT NULL,  -- the table whose rows are counted
  bits smallint NOT NULL,     -- SMALL or LARGE
  block bigint NOT NULL,      -- id >> bits
  rows bigint NOT NULL,
  PRIMARY KEY (list, bits, block)
)"""

# SQLite has triggers for each row only.
SQLITE_ROWS = """
CREATE TRIGGER {table}_{event} AFTER {event} ON {table} BEGIN
  INSERT INTO benchapp_pageblock (list, bits, block, rows)
  VALUES ('{table}', {small}, {row}.id >> {small}, {change}), ('{table}', {large}, {row}.id >> {large}, {change})
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + excluded.rows;
  {count_children}
END"""
SQLITE_CHILDREN = "UPDATE {parent} SET {count} = {count} + {change} WHERE id = {row}.{key};"
SQLITE_MOVED = """
CREATE TRIGGER {table}_moved AFTER UPDATE OF {key} ON {table} WHEN OLD.{key} <> NEW.{key} BEGIN
  UPDATE {parent} SET {count} = {count} - 1 WHERE id = OLD.{key};
  UPDATE {parent} SET {count} = {count} + 1 WHERE id = NEW.{key};
END"""

# PostgreSQL counts a whole statement at once. Blocks and parents in order: statements that meet do not deadlock.
POSTGRESQL_ROWS = """
CREATE OR REPLACE FUNCTION {table}_{event}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO benchapp_pageblock AS stored (list, bits, block, rows)
  SELECT '{table}', bits, id >> bits, {change} * count(*)
  FROM changed CROSS JOIN (VALUES ({small}), ({large})) AS sizes (bits)
  GROUP BY bits, id >> bits ORDER BY bits, id >> bits
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = stored.rows + excluded.rows;
  {count_children}
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER {table}_{event} AFTER {event} ON {table}
  REFERENCING {row} TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {table}_{event}()"""
POSTGRESQL_CHILDREN = """
  PERFORM FROM {parent} WHERE id IN (SELECT {key} FROM changed) ORDER BY id FOR NO KEY UPDATE;
  UPDATE {parent} SET {count} = {count} + {change} * children.counted
  FROM (SELECT {key}, count(*) AS counted FROM changed GROUP BY {key}) AS children WHERE id = children.{key};"""
POSTGRESQL_MOVED = """
CREATE OR REPLACE FUNCTION {table}_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM FROM {parent} WHERE id IN (OLD.{key}, NEW.{key}) ORDER BY id FOR NO KEY UPDATE;
  UPDATE {parent} SET {count} = {count} + CASE id WHEN NEW.{key} THEN 1 ELSE -1 END
  WHERE id IN (OLD.{key}, NEW.{key});
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER {table}_moved AFTER UPDATE OF {key} ON {table}
  FOR EACH ROW WHEN (OLD.{key} <> NEW.{key}) EXECUTE FUNCTION {table}_moved()"""

TEMPLATES = {
    "sqlite": (SQLITE_ROWS, SQLITE_CHILDREN, SQLITE_MOVED),
    "postgresql": (POSTGRESQL_ROWS, POSTGRESQL_CHILDREN, POSTGRESQL_MOVED),
}
# Name and table of every trigger of ours, those of earlier versions too: names begin with that of the table.
INSTALLED = {
    "sqlite": (
        "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'"
        f" AND tbl_name IN {TABLES} AND name LIKE tbl_name || '%'"
    ),
    "postgresql": (
        "SELECT tgname, relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
        " WHERE NOT tgisinternal AND tgenabled <> 'D' AND pg_table_is_visible(tgrelid)"
        f" AND relname IN {TABLES} AND tgname LIKE relname || '%'"
    ),
}


def triggers(vendor: str) -> dict[str, str]:
    """What creates each trigger, by its name."""
    rows, children, moved = TEMPLATES[vendor]
    made = {}
    for one in LISTS:
        for event, row, change in (("insert", "NEW", 1), ("delete", "OLD", -1)):
            names = {**one._asdict(), "small": SMALL, "large": LARGE, "event": event, "row": row, "change": change}
            count_children = children.format(**names) if one.parent else ""
            made[f"{one.table}_{event}"] = rows.format(**names, count_children=count_children)
        if one.parent:
            made[f"{one.table}_moved"] = moved.format(**one._asdict())
    return made


def create_triggers(cursor: Any, vendor: str) -> None:
    """Create the table of blocks and the triggers, those that are there anew. `cursor` may be the driver's own."""
    cursor.execute(PAGE_BLOCKS)
    if vendor == "sqlite":
        # PostgreSQL replaces them: to drop one it would wait for readers, and they for it.
        drop_triggers(cursor, vendor)
    for sql in triggers(vendor).values():
        cursor.execute(sql)


def drop_triggers(cursor: Any, vendor: str) -> None:
    """Drop our triggers of the three tables, for a bulk load or a change of tables; pages can still be read."""
    cursor.execute(INSTALLED[vendor])
    for name, table in cursor.fetchall():
        cursor.execute(f"DROP TRIGGER {name}" + (f" ON {table}" if vendor == "postgresql" else ""))


def missing_triggers(cursor: Any, vendor: str) -> list[str]:
    """Names of the triggers that should be there and are not, or are disabled."""
    expected = triggers(vendor)
    cursor.execute(INSTALLED[vendor])
    return sorted(expected.keys() - {name for name, _ in cursor.fetchall()})


def remove(apps: Any, schema_editor: Any) -> None:
    """Leave nothing that counts, in a migration."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        drop_triggers(cursor, connection.vendor)
        cursor.execute("DROP TABLE IF EXISTS benchapp_pageblock")


# --- Counting anew: seconds for millions of rows ------------------------------------------------

# The rows of all blocks, by one walk through each table: the large blocks are added up from the small ones.
COUNTED_BLOCKS = (
    "WITH small AS ("
    + " UNION ALL ".join(
        f"SELECT '{table}' AS list, id >> {SMALL} AS block, count(*) AS rows FROM {table} GROUP BY id >> {SMALL}"
        for table in TABLES
    )
    + f") SELECT list, {SMALL} AS bits, block, rows FROM small UNION ALL"
    f" SELECT list, {LARGE}, block >> {LARGE - SMALL}, sum(rows) FROM small GROUP BY list, block >> {LARGE - SMALL}"
)
# Those whose stored count is not that of their rows; none and 0 are the same.
WRONG_BLOCKS = (
    "SELECT list, bits, block, sum(stored), sum(counted) FROM ("
    " SELECT list, bits, block, rows AS stored, 0 AS counted FROM benchapp_pageblock"
    f" UNION ALL SELECT list, bits, block, 0, rows FROM ({COUNTED_BLOCKS}) AS counted_blocks"
    ") AS both_counts GROUP BY list, bits, block HAVING sum(stored) <> sum(counted) ORDER BY 1, 2, 3"
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
            cursor.execute(f"LOCK TABLE {', '.join(TABLES)} IN SHARE ROW EXCLUSIVE MODE")
        create_triggers(cursor, connection.vendor)
        fill(cursor)
        for one in CHILDREN:
            cursor.execute(f"UPDATE {one.parent} SET {one.count} = {one.counted} WHERE {one.count} <> {one.counted}")


def install(apps: Any, schema_editor: Any) -> None:
    """Create the page index and count the rows that are there, in a migration."""
    rebuild(schema_editor.connection)


def differences(connection: Any) -> list[str]:
    """One line for each thing that is wrong, none when the index is right. `connection` is Django's."""
    with connection.cursor() as cursor:
        lines = [f"trigger {name} is missing" for name in missing_triggers(cursor, connection.vendor)]
        cursor.execute(WRONG_BLOCKS)
        for table, bits, block, stored, counted in cursor.fetchall():
            lines.append(f"{table}, ids from {block << bits}: {stored} stored, {counted} counted")
        for one in CHILDREN:
            wrong = f"SELECT id, {one.count}, {one.counted} FROM {one.parent} WHERE {one.count} <> {one.counted}"
            cursor.execute(f"{wrong} ORDER BY id")
            for pk, stored, counted in cursor.fetchall():
                lines.append(f"{one.parent} {pk}, {one.count}: {stored} stored, {counted} counted")
    return lines

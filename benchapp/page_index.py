"""The page index: the number of rows in each block of ids and of children of each parent, counted by triggers.

A page far down a list is cheap when the database knows the id of its first row. The model `PageBlock` holds the number
of rows of each block of 256 ids (`id >> 8`) and of each 64 of these blocks (`id >> 14`). Adding up the large blocks,
then the small ones within one of them, leads to the block with the first row; an OFFSET of at most 255 does the rest.
The sum of the large blocks is the length of the list. Ids may have gaps of any size.

Triggers (`benchapp.page_triggers`) count after INSERT, DELETE and TRUNCATE, and after an UPDATE that gives a row
another parent, by any writer: the ORM one by one or in bulk, cascades, raw SQL, COPY, `flush`. A writer holds the
counts of its blocks and parents until its transaction ends, so writers of one list take turns.

Not counted: a changed id, a child that raw SQL inserts before its parent, a count that somebody sets, INSERT OR REPLACE
in SQLite, and writes while triggers are missing or disabled. `./manage.py recount` repairs all of these. Until then, if
a page lacks rows that the index promises, it is found slowly, as in Django's paginator. Rows that are not counted may
be on no page.

The SQL is made from the models as they are: `migrate` takes the triggers down before a migration of the site, puts them
up again afterwards, and counts (`before_migrations`, `after_migrations`). A system check names a database without
triggers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from django.apps import apps as site_apps
from django.db import connections, transaction
from django.db.models import BigIntegerField, IntegerField
from django.db.models.expressions import RawSQL

from benchapp import page_triggers
from benchapp.fields import ChildCount

# Of the ids in a block, as powers of 2. SQLite passes whole rows on its way through a small one, and large ones are
# added up for every page: a million rows have 60 of them, ten million 600.
SMALL, LARGE = 8, 14
# The migrations that a command makes, each with whether it goes back.
Plan = Sequence[tuple[Any, bool]]


class Count(NamedTuple):
    """A column of a parent's table with the number of children, and the foreign key of the children."""

    foreign_key: str
    parent: str
    parent_key: str
    count: str

    @property
    def quoted(self) -> dict[str, str]:
        """The names, quoted for SQL."""
        return {name: f'"{value}"' for name, value in self._asdict().items()}


class List(NamedTuple):
    """A table with counted rows, its primary key, and the counts on the parents of its rows."""

    table: str
    key: str
    counts: list[Count]

    @property
    def quoted(self) -> dict[str, Any]:
        """The names, quoted for SQL, and the sizes of blocks."""
        text = self.table.replace("'", "''")
        return {"list": text, "table": f'"{self.table}"', "key": f'"{self.key}"', "small": SMALL, "large": LARGE}


def lists(apps: Any = site_apps) -> list[List]:
    """The lists of the models in `apps`, which may come from an earlier migration; empty without a `PageBlock`."""
    models = [model for model in apps.get_models() if model._meta.app_label == "benchapp"]
    if not any(model._meta.model_name == "pageblock" for model in models):
        return []
    counted = [model for model in models if _is_counted(model)]
    return [List(model._meta.db_table, model._meta.pk.column, _counts(model, counted)) for model in counted]


def _is_counted(model: Any) -> bool:
    """True if a model has a table with whole numbers as keys: blocks are of numbers."""
    return model._meta.managed and not model._meta.proxy and isinstance(model._meta.pk, IntegerField)


def _counts(child: Any, parents: list[Any]) -> list[Count]:
    """The counts of a child's rows in its parents."""
    counts = []
    for parent in parents:
        for field in parent._meta.local_fields:
            foreign_key = field.foreign_key if isinstance(field, ChildCount) else None
            if foreign_key is not None and foreign_key.model is child:
                key = foreign_key.target_field.column
                counts.append(Count(foreign_key.column, parent._meta.db_table, key, field.column))
    return counts


def uncounted(apps: Any = site_apps) -> list[ChildCount]:
    """The counts that no trigger maintains."""
    counted = set()
    for rows in lists(apps):
        counted.update((count.parent, count.count) for count in rows.counts)
    fields = []
    for model in apps.get_models():
        for field in model._meta.local_fields:
            if isinstance(field, ChildCount) and (model._meta.db_table, field.column) not in counted:
                fields.append(field)
    return fields


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
        """The highest id of the block with the row after `position` newer ones, and how many of the newer rows it has.

        None if no such row is counted, or was deleted since the large blocks were read.
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
    """The block with the row after `position` others of `blocks`, and how many of the others it has."""
    for block, rows in blocks:
        if position < rows:
            return block, position
        position -= rows
    return None, 0


# How many rows of a list have higher ids than a row: in higher blocks of both sizes, then in its own small block.
NEWER_ROWS = """CAST(
  (SELECT coalesce(sum(rows), 0) FROM benchapp_pageblock
   WHERE list = '{list}' AND bits = {large} AND block > {table}.{key} >> {large})
  + (SELECT coalesce(sum(rows), 0) FROM benchapp_pageblock
     WHERE list = '{list}' AND bits = {small} AND block > {table}.{key} >> {small}
     AND block < ((({table}.{key} >> {large}) + 1) << {large} - {small}))
  + (SELECT count(*) FROM {table} AS others
     WHERE others.{key} > {table}.{key} AND others.{key} <= ({table}.{key} | (1 << {small}) - 1)) AS bigint)"""


def newer_rows(model: Any) -> RawSQL:
    """An expression for a query of `model`: how many rows of the whole list, newest first, come before a row."""
    counted = List(model._meta.db_table, model._meta.pk.column, [])
    return RawSQL(NEWER_ROWS.format(**counted.quoted), [], output_field=BigIntegerField())


# --- Counting: seconds for millions of rows -----------------------------------------------------

# The small blocks of a list, counted by one walk through its table.
SMALL_BLOCKS = "SELECT '{list}' AS list, {key} >> {small} AS block, count(*) AS rows FROM {table} GROUP BY 2"
# The blocks of all lists: the large ones are added up from the small ones.
COUNTED_BLOCKS = (
    "WITH small AS ({small_blocks})"
    f" SELECT list, {SMALL} AS bits, block, rows FROM small UNION ALL"
    f" SELECT list, {LARGE}, block >> {LARGE - SMALL}, sum(rows) FROM small GROUP BY list, block >> {LARGE - SMALL}"
)
# Blocks whose stored count is not that of their rows; a missing block is like a 0.
WRONG_BLOCKS = (
    "SELECT list, bits, block, sum(stored), sum(counted) FROM ("
    " SELECT list, bits, block, rows AS stored, 0 AS counted FROM benchapp_pageblock"
    " UNION ALL SELECT list, bits, block, 0, rows FROM ({counted_blocks}) AS counted_blocks"
    ") AS both_counts GROUP BY list, bits, block HAVING sum(stored) <> sum(counted) ORDER BY 1, 2, 3"
)
# The children have a name that no table has: they may be rows of the parent's own table.
CHILDREN = "(SELECT count(*) FROM {table} AS children WHERE children.{foreign_key} = {parent}.{parent_key})"


def create_triggers(connection: Any, apps: Any = site_apps) -> None:
    """Create or replace the triggers for the models in `apps`. `connection` is Django's."""
    page_triggers.create(connection, lists(apps))


def drop_triggers(connection: Any) -> None:
    """Drop all triggers of the page index, for a bulk load or a change of tables; pages can still be read."""
    page_triggers.drop(connection)


def missing_triggers(connection: Any, apps: Any = site_apps) -> list[str]:
    """Names of missing or disabled triggers of existing tables.

    Databases other than SQLite and PostgreSQL have none.
    """
    if not page_triggers.supported(connection):
        return []
    tables = connection.introspection.table_names()
    present = [rows for rows in lists(apps) if rows.table in tables]
    return page_triggers.missing(connection, present)


def fill(connection: Any, apps: Any = site_apps) -> None:
    """Count the rows of all blocks; leave counts on parents as they are. Nobody else may write meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM benchapp_pageblock")
        cursor.execute(f"INSERT INTO benchapp_pageblock (list, bits, block, rows) {_counted_blocks(lists(apps))}")


def rebuild(connection: Any, apps: Any = site_apps) -> None:
    """Put up the triggers and count everything while the site runs: writers wait, readers do not."""
    counted = lists(apps)
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            tables = ", ".join(rows.quoted["table"] for rows in counted)
            cursor.execute(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")
        page_triggers.create(connection, counted)
        fill(connection, apps)
        for names, children in _counts_of_children(counted):
            cursor.execute(
                "UPDATE {parent} SET {count} = {children} WHERE {count} <> {children}".format(
                    children=children, **names
                )
            )


def differences(connection: Any, apps: Any = site_apps) -> list[str]:
    """One line for each error, empty for a right index. `connection` is Django's."""
    lines = [f"trigger {name} is missing" for name in missing_triggers(connection, apps)]
    counted = lists(apps)
    with connection.cursor() as cursor:
        cursor.execute(WRONG_BLOCKS.format(counted_blocks=_counted_blocks(counted)))
        for table, bits, block, stored, rows in cursor.fetchall():
            lines.append(f"{table}, ids from {block << bits}: {stored} stored, {rows} counted")
        for names, children in _counts_of_children(counted):
            wrong = "SELECT {parent_key}, {count}, {children} FROM {parent} WHERE {count} <> {children}"
            cursor.execute(wrong.format(children=children, **names) + " ORDER BY 1")
            parent, count = names["parent"].strip('"'), names["count"].strip('"')
            for pk, stored, rows in cursor.fetchall():
                lines.append(f"{parent} {pk}, {count}: {stored} stored, {rows} counted")
    return lines


def _counted_blocks(counted: list[List]) -> str:
    """The SELECT of all blocks of the lists, counted from their rows."""
    small_blocks = " UNION ALL ".join(SMALL_BLOCKS.format(**rows.quoted) for rows in counted)
    return COUNTED_BLOCKS.format(small_blocks=small_blocks)


def _counts_of_children(counted: list[List]) -> Iterator[tuple[dict[str, str], str]]:
    """The names of each count, and the SQL that counts the children of a parent."""
    for rows in counted:
        for count in rows.counts:
            yield count.quoted, CHILDREN.format(table=rows.quoted["table"], **count.quoted)


# --- Migrations ---------------------------------------------------------------------------------


def before_migrations(using: str, plan: Plan, **options: Any) -> None:
    """Take the triggers down before a migration of the site: SQLite cannot rename a table with triggers."""
    if _changes_site(plan) and page_triggers.supported(connections[using]):
        page_triggers.drop(connections[using])


def after_migrations(using: str, plan: Plan = (), apps: Any = site_apps, **options: Any) -> None:
    """Put the triggers up and count after a migration of the site, or if an interrupted one has left no triggers.

    `apps` has the models after the migrations: going back leads to earlier models, or to an empty app.
    """
    connection = connections[using]
    if not page_triggers.supported(connection):
        return
    tables = connection.introspection.table_names()
    counted = lists(apps)
    if not counted or not all(rows.table in tables for rows in counted):
        return
    if _changes_site(plan) or page_triggers.missing(connection, counted):
        rebuild(connection, apps)


def _changes_site(plan: Plan) -> bool:
    return any(migration.app_label == "benchapp" for migration, _ in plan)

"""The triggers that keep the page index: one set of templates for SQLite, one for PostgreSQL.

Their names begin with `pageindex_`. All SQL is made from the lists that `benchapp.page_index` derives from models.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.db import transaction

if TYPE_CHECKING:
    from benchapp.page_index import List

MAX_NAME = 63  # bytes; https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS
# Triggers of version 0.1, which had other names.
FORMER = (
    "benchapp_author_insert",
    "benchapp_author_delete",
    "benchapp_post_insert",
    "benchapp_post_delete",
    "benchapp_post_moved",
    "benchapp_comment_insert",
    "benchapp_comment_delete",
    "benchapp_comment_moved",
)

# --- SQLite: a trigger runs for each row --------------------------------------------------------

SQLITE_INSERT = """
CREATE TRIGGER {trigger} AFTER INSERT ON {table} BEGIN
  INSERT INTO benchapp_pageblock (list, bits, block, rows)
  VALUES ('{list}', {small}, NEW.{key} >> {small}, 1), ('{list}', {large}, NEW.{key} >> {large}, 1)
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + 1;
  {parents}
END"""
# No block is made here: `flush` may empty the table of blocks before the table that is counted.
SQLITE_DELETE = """
CREATE TRIGGER {trigger} AFTER DELETE ON {table} BEGIN
  UPDATE benchapp_pageblock SET rows = rows - 1
  WHERE list = '{list}' AND bits = {small} AND block = OLD.{key} >> {small};
  UPDATE benchapp_pageblock SET rows = rows - 1
  WHERE list = '{list}' AND bits = {large} AND block = OLD.{key} >> {large};
  {parents}
END"""
SQLITE_INSERT_PARENT = "UPDATE {parent} SET {count} = {count} + 1 WHERE {parent_key} = NEW.{foreign_key};"
SQLITE_DELETE_PARENT = "UPDATE {parent} SET {count} = {count} - 1 WHERE {parent_key} = OLD.{foreign_key};"
SQLITE_MOVED = """
CREATE TRIGGER {trigger} AFTER UPDATE OF {foreign_key} ON {table}
WHEN OLD.{foreign_key} IS NOT NEW.{foreign_key} BEGIN
  UPDATE {parent} SET {count} = {count} - 1 WHERE {parent_key} = OLD.{foreign_key};
  UPDATE {parent} SET {count} = {count} + 1 WHERE {parent_key} = NEW.{foreign_key};
END"""

# --- PostgreSQL: a trigger runs for each statement ----------------------------------------------

POSTGRESQL_FUNCTION = """
CREATE OR REPLACE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  {body}
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER {trigger} AFTER {event} ON {table} {scope} EXECUTE FUNCTION {trigger}()"""

# Blocks and parents are locked in order, so that statements that meet do not deadlock.
POSTGRESQL_BLOCKS = """
  INSERT INTO benchapp_pageblock AS stored (list, bits, block, rows)
  SELECT '{list}', bits, {key} >> bits, {change} * count(*)
  FROM changed CROSS JOIN (VALUES ({small}), ({large})) AS sizes (bits)
  GROUP BY bits, {key} >> bits ORDER BY bits, {key} >> bits
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = stored.rows + excluded.rows;"""
POSTGRESQL_PARENT = """
  PERFORM FROM {parent} WHERE {parent_key} IN (SELECT {foreign_key} FROM changed)
  ORDER BY {parent_key} FOR NO KEY UPDATE;
  UPDATE {parent} SET {count} = {count} + {change} * children.counted
  FROM (SELECT {foreign_key} AS parent, count(*) AS counted FROM changed GROUP BY {foreign_key}) AS children
  WHERE {parent_key} = children.parent;"""
POSTGRESQL_MOVED = """
  PERFORM FROM {parent} WHERE {parent_key} IN (OLD.{foreign_key}, NEW.{foreign_key})
  ORDER BY {parent_key} FOR NO KEY UPDATE;
  UPDATE {parent} SET {count} = {count} + CASE {parent_key} WHEN NEW.{foreign_key} THEN 1 ELSE -1 END
  WHERE {parent_key} IN (OLD.{foreign_key}, NEW.{foreign_key});"""
POSTGRESQL_MOVED_ROW = "FOR EACH ROW WHEN (OLD.{foreign_key} IS DISTINCT FROM NEW.{foreign_key})"
POSTGRESQL_TRUNCATE = "DELETE FROM benchapp_pageblock WHERE list = '{list}';"
POSTGRESQL_TRUNCATE_PARENT = "UPDATE {parent} SET {count} = 0 WHERE {count} <> 0;"

# --- Names and statements -----------------------------------------------------------------------

OURS = f"IN {FORMER} OR {{column}} LIKE 'pageindex!_%' ESCAPE '!'"
INSTALLED = {
    "sqlite": f"SELECT name FROM sqlite_master WHERE type = 'trigger' AND (name {OURS.format(column='name')})",
    "postgresql": (
        "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'"
        f" AND pg_table_is_visible(tgrelid::regclass) AND (tgname {OURS.format(column='tgname')})"
    ),
}
# A trigger of PostgreSQL goes with its function.
DROPPED = {
    "sqlite": ("DROP TRIGGER {}", INSTALLED["sqlite"]),
    "postgresql": (
        "DROP FUNCTION {}() CASCADE",
        "SELECT proname FROM pg_proc WHERE prorettype = 'trigger'::regtype AND pg_function_is_visible(oid)"
        f" AND (proname {OURS.format(column='proname')})",
    ),
}


def supported(connection: Any) -> bool:
    """True for a kind of database with triggers. `connection` is Django's."""
    return connection.vendor in INSTALLED


def triggers(vendor: str, lists: list[List]) -> dict[str, str]:
    """The statements that create each trigger, by name."""
    statements = {}
    for rows in lists:
        statements |= _sqlite(rows) if vendor == "sqlite" else _postgresql(rows)
    return statements


def create(connection: Any, lists: list[List]) -> None:
    """Create or replace the triggers. `connection` is Django's."""
    statements = triggers(connection.vendor, lists)
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            # PostgreSQL replaces them: dropping one would wait for readers.
            drop(connection)
        for sql in statements.values():
            cursor.execute(sql)


def drop(connection: Any) -> None:
    """Drop all triggers of the page index, for a bulk load or a change of tables; pages can still be read."""
    statement, names = DROPPED[connection.vendor]
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(names)
        for (name,) in cursor.fetchall():
            cursor.execute(statement.format(_quoted(name)))


def missing(connection: Any, lists: list[List]) -> list[str]:
    """Names of the triggers that are missing or disabled."""
    with connection.cursor() as cursor:
        cursor.execute(INSTALLED[connection.vendor])
        installed = {name for (name,) in cursor.fetchall()}
    return sorted(triggers(connection.vendor, lists).keys() - installed)


def _sqlite(rows: List) -> dict[str, str]:
    """The triggers of one list in SQLite."""
    statements = {}
    events = (("insert", SQLITE_INSERT, SQLITE_INSERT_PARENT), ("delete", SQLITE_DELETE, SQLITE_DELETE_PARENT))
    for event, template, parent in events:
        parents = "\n  ".join(parent.format(**count.quoted) for count in rows.counts)
        name = _name(rows, event)
        statements[name] = template.format(trigger=_quoted(name), parents=parents, **rows.quoted)
    for count in rows.counts:
        name = _name(rows, f"moved_{count.foreign_key}")
        statements[name] = SQLITE_MOVED.format(trigger=_quoted(name), **rows.quoted, **count.quoted)
    return statements


def _postgresql(rows: List) -> dict[str, str]:
    """The triggers of one list in PostgreSQL."""
    statements = {}

    def add(what: str, event: str, scope: str, body: str) -> None:
        name = _name(rows, what)
        names = {"trigger": _quoted(name), "table": rows.quoted["table"]}
        statements[name] = POSTGRESQL_FUNCTION.format(body=body, event=event, scope=scope, **names)

    for what, table, change in (("insert", "NEW", 1), ("delete", "OLD", -1)):
        parents = [POSTGRESQL_PARENT.format(change=change, **count.quoted) for count in rows.counts]
        body = POSTGRESQL_BLOCKS.format(change=change, **rows.quoted) + "".join(parents)
        add(what, what.upper(), f"REFERENCING {table} TABLE AS changed FOR EACH STATEMENT", body)
    parents = [POSTGRESQL_TRUNCATE_PARENT.format(**count.quoted) for count in rows.counts]
    body = "\n  ".join([POSTGRESQL_TRUNCATE.format(**rows.quoted), *parents])
    add("truncate", "TRUNCATE", "FOR EACH STATEMENT", body)
    for count in rows.counts:
        event = f"UPDATE OF {count.quoted['foreign_key']}"
        row = POSTGRESQL_MOVED_ROW.format(**count.quoted)
        add(f"moved_{count.foreign_key}", event, row, POSTGRESQL_MOVED.format(**count.quoted))
    return statements


def _name(rows: List, what: str) -> str:
    name = f"pageindex_{rows.table}_{what}"
    if len(name.encode()) <= MAX_NAME:
        return name
    # PostgreSQL would cut off the end, which tells the triggers of a table apart.
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return name.encode()[: MAX_NAME - len(digest)].decode(errors="ignore") + digest


def _quoted(name: str) -> str:
    return f'"{name}"'

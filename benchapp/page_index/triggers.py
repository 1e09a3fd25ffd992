"""The table of blocks and the triggers that count, in SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db import NotSupportedError

# Of the ids in a block, as powers of 2. SQLite passes whole rows on its way through a small one, and large ones are
# added up for every page: a million rows have 60 of them, ten million 600.
SMALL, LARGE = 8, 14


class List(NamedTuple):
    """A table whose rows are counted, and the column of its parents that counts those of each."""

    table: str
    key: str = ""
    parent: str = ""
    count: str = ""


LISTS = (
    List("benchapp_author"),
    List("benchapp_post", "author_id", "benchapp_author", "post_count"),
    List("benchapp_comment", "post_id", "benchapp_post", "comment_count"),
)

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
OURS = tuple(one.table for one in LISTS)
# Name and table of every trigger on a table of ours.
INSTALLED = {
    "sqlite": f"SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN {OURS}",
    "postgresql": (
        "SELECT tgname, relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
        f" WHERE NOT tgisinternal AND tgenabled <> 'D' AND pg_table_is_visible(tgrelid)"
        f" AND relname IN {OURS}"
    ),
}


def triggers(vendor: str) -> dict[str, str]:
    """What creates each trigger, by its name; NotSupportedError for a database that has none here."""
    if vendor not in TEMPLATES:
        raise NotSupportedError(f"DATABASE_URL: the page index needs SQLite or PostgreSQL, not {vendor}")
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
    drop_triggers(cursor, vendor)
    for sql in triggers(vendor).values():
        cursor.execute(sql)


def drop_triggers(cursor: Any, vendor: str) -> None:
    """Drop all triggers of the three tables, for a bulk load or a change of tables; pages can still be read."""
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

"""The SQL of the page index in a database: its table, functions and triggers, by the database's vendor."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from django.db import NotSupportedError

VENDORS = ("sqlite", "postgresql")
TRIGGER = re.compile(r"^CREATE (?:OR REPLACE )?TRIGGER (\w+) .*? ON (\w+)", re.MULTILINE)
FUNCTION = re.compile(r"^CREATE OR REPLACE FUNCTION (\w+)", re.MULTILINE)

INSTALLED = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": (
        "SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND pg_table_is_visible(c.oid)"
    ),
}


@cache
def script(vendor: str) -> str:
    """The SQL file of a vendor; NotSupportedError for a database without one."""
    if vendor not in VENDORS:
        raise NotSupportedError(
            f"DATABASE_URL: the page index needs SQLite or PostgreSQL, not {vendor}; choose one of these"
        )
    return (Path(__file__).parent / f"{vendor}.sql").read_text(encoding="utf-8")


@cache
def triggers(vendor: str) -> dict[str, str]:
    """The table of each trigger, by name."""
    return dict(TRIGGER.findall(script(vendor)))


def statements(text: str) -> Iterator[str]:
    """The statements of an SQLite script: the driver runs a script only outside of a transaction."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def create_triggers(cursor: Any, vendor: str) -> None:
    """Create the table of blocks and the triggers, or replace those that exist; readers continue.

    `cursor` may be Django's or the driver's own.
    """
    if vendor == "postgresql":
        cursor.execute(script(vendor))
        return
    drop_triggers(cursor, vendor)
    for statement in statements(script(vendor)):
        cursor.execute(statement)


def drop_triggers(cursor: Any, vendor: str) -> None:
    """Drop the triggers for a bulk load or a change of tables; pages can still be read.

    Fill the index afterwards (`fill`) and create the triggers again, within one transaction.
    """
    for name, table in triggers(vendor).items():
        cursor.execute(f"DROP TRIGGER IF EXISTS {name}" + (f" ON {table}" if vendor == "postgresql" else ""))


def missing_triggers(cursor: Any, vendor: str) -> list[str]:
    """Names of the triggers that should be there and are not, or are disabled."""
    cursor.execute(INSTALLED[vendor])
    installed = {name for (name,) in cursor.fetchall()}
    return [name for name in triggers(vendor) if name not in installed]

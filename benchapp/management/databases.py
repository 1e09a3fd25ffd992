"""The site's database for commands: its name, reading it without changing it, and its errors in plain words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from fixtures import load


@contextmanager
def reading() -> Iterator[Any]:
    """A cursor of the driver itself that leaves the database as it is.

    The site's connections change the journal of an SQLite file, and create a missing file: so commands first check
    that the file is the site's.
    """
    path = sqlite_file()
    if path is None or connection.in_atomic_block:
        connection.ensure_connection()
        with transaction.atomic(), closing(connection.connection.cursor()) as cursor:
            yield cursor
    elif not path.exists():
        raise load.Refused("there is no such file: run ./manage.py migrate first")
    else:
        # mode=rw, not ro: rolling back the transaction of a killed program writes.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as reader:
            yield reader.cursor()


def sqlite_file() -> Path | None:
    """The file of an SQLite database; None for PostgreSQL and for a database in memory."""
    if connection.vendor != "sqlite" or connection.is_in_memory_db():
        return None
    return Path(connection.settings_dict["NAME"])


def name() -> str:
    """A name for people, without the password."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"SQLite database {settings['NAME']}"
    place = f" at {settings['HOST']}" if settings["HOST"] else ""
    return f"PostgreSQL database {settings['NAME']}{place}{':' if place and settings['PORT'] else ''}{settings['PORT']}"


_SQLITE_REASONS = {
    sqlite3.SQLITE_BUSY: "another program is using it: stop that, or wait, and try again",
    sqlite3.SQLITE_FULL: "the disk is full: make room, or load fewer --rows",
    sqlite3.SQLITE_READONLY: "it cannot be written to: check the permissions of the file and its directory",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check the permissions of the file and its directory",
    sqlite3.SQLITE_NOTADB: "the file is not an SQLite database: choose another with DATABASE_URL",
}
# PostgreSQL's codes of a missing table and of a missing column.
_MISSING_CODES = ("42P01", "42703")
_POSTGRESQL_REASONS = {
    "53100": "the server's disk is full: make room, or load fewer --rows",
    "55P03": "its tables are in use: stop the site, or wait, and try again",
    "42501": "its user may not do this, but has to own the tables",
}


def problem(error: Exception) -> str:
    """What is wrong with the database and what to do, in a line; only missing tables ask for a migration."""
    cause = error.__cause__ or error
    if getattr(cause, "pgcode", None) in _MISSING_CODES or str(cause).startswith("no such "):
        return f"{name()} cannot be used ({reason(error)}): run ./manage.py migrate"
    return f"{name()} cannot be used: {reason(error)}"


def reason(error: Exception) -> str:
    """What went wrong and what to do, in a few words."""
    error = error.__cause__ or error
    known = _SQLITE_REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF) or _POSTGRESQL_REASONS.get(
        getattr(error, "pgcode", None)
    )
    return known or str(error).strip().partition("\n")[0]

"""The site's database for commands: its name, whether the site owns the tables, and errors in plain words."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from django.core.management import CommandError
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from benchapp import page_index

SQLITE_REASONS = {
    sqlite3.SQLITE_BUSY: "another program is using it: stop that, or wait, and try again",
    sqlite3.SQLITE_FULL: "the disk is full: make room, or load fewer --rows",
    sqlite3.SQLITE_READONLY: "it cannot be written to: check the permissions of the file and its directory",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check the permissions of the file and its directory",
    sqlite3.SQLITE_NOTADB: "the file is not an SQLite database: choose another with DATABASE_URL",
}
POSTGRESQL_REASONS = {
    "53100": "the server's disk is full: make room, or load fewer --rows",
    "55P03": "its tables are in use: stop the site, or wait, and try again",
    "42501": "its user may not do this, but has to own the tables",
}


def require_site() -> None:
    """Raise CommandError unless the database can be reached and has this site's tables; a missing file is not made."""
    in_file = connection.vendor == "sqlite" and not connection.is_in_memory_db()
    if in_file and not Path(connection.settings_dict["NAME"]).exists():
        raise CommandError(f"{name()}: there is no such file: run ./manage.py migrate first")
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        uncounted = page_index.missing_triggers(connection)
    except Error as error:
        next_step = "" if connection.connection else "; see that it runs and that DATABASE_URL is right"
        raise CommandError(f"{name()}: {reason(error)}{next_step}") from error
    if missing:
        raise CommandError(
            f"{name()} has not the tables of this site as they are now: run ./manage.py migrate,"
            " or choose another with DATABASE_URL"
        )
    if uncounted:
        raise CommandError(f"{name()}: the trigger {uncounted[0]} is missing: run ./manage.py recount")


def name() -> str:
    """A name for people, without the password."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        # The kit renames a new file once it is filled.
        return f"SQLite database {str(settings['NAME']).removesuffix('.partial')}"
    place = f" at {settings['HOST']}" if settings["HOST"] else ""
    return f"PostgreSQL database {settings['NAME']}{place}{':' if place and settings['PORT'] else ''}{settings['PORT']}"


def problem(error: Exception) -> str:
    """Describe a database error and its remedy in one line; only missing tables call for a migration."""
    cause = error.__cause__ or error
    # PostgreSQL's codes of a missing table and of a missing column.
    if _sqlstate(cause) in ("42P01", "42703") or str(cause).startswith("no such "):
        return f"{name()} cannot be used ({reason(error)}): run ./manage.py migrate"
    return f"{name()} cannot be used: {reason(error)}"


def reason(error: Exception) -> str:
    """Describe an error and its remedy in a few words."""
    error = error.__cause__ or error
    known = SQLITE_REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF) or POSTGRESQL_REASONS.get(_sqlstate(error))
    return known or str(error).strip().partition("\n")[0]


def _sqlstate(error: Exception) -> str | None:
    """PostgreSQL's code of an error, an attribute with different names in psycopg 3 and psycopg2."""
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)

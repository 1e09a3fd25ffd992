"""The site's database for commands: its name, whether it is the site's, and its errors in plain words."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

from django.core.management import CommandError
from django.db import Error, connection
from django.db.backends.postgresql.client import DatabaseClient
from django.db.migrations.executor import MigrationExecutor

from benchapp import page_index

# By the database's vendor: what a backup's name ends in.
BACKUPS = {"sqlite": ".sqlite3", "postgresql": ".dump"}
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


def sqlite_file() -> Path | None:
    """The file of an SQLite database; None for PostgreSQL and for a database in memory."""
    if connection.vendor != "sqlite" or connection.is_in_memory_db():
        return None
    return Path(connection.settings_dict["NAME"])


def existing_sqlite_file() -> Path:
    """The same; raises CommandError where it is not there yet."""
    file = sqlite_file()
    if file is None or not file.exists():
        raise CommandError(f"{name()}: there is no such file: run ./manage.py migrate first")
    return file


def run_postgresql(program: str, *options: str | Path) -> None:
    """Run one of PostgreSQL's programs on the site's database; raises CommandError with its last line when it fails."""
    # What Django makes for psql: its options and, last, the database's name.
    (_, *place, database), env = DatabaseClient.settings_to_cmd_args_env(connection.settings_dict, [])
    argv = [program, *place, "--dbname", database, *map(str, options)]
    env = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise CommandError(f"{program} not found: install postgresql-client") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it failed"]
        raise CommandError(f"{program}: {lines[-1]}")


def require_site() -> None:
    """Raise CommandError unless the database can be reached and has this site's tables; a missing file is not made."""
    if sqlite_file():
        existing_sqlite_file()
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        with connection.cursor() as cursor:
            uncounted = page_index.missing_triggers(cursor, connection.vendor)
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
        return f"SQLite database {settings['NAME']}"
    place = f" at {settings['HOST']}" if settings["HOST"] else ""
    return f"PostgreSQL database {settings['NAME']}{place}{':' if place and settings['PORT'] else ''}{settings['PORT']}"


def problem(error: Exception) -> str:
    """What is wrong with the database and what to do, in a line; only missing tables ask for a migration."""
    cause = error.__cause__ or error
    # PostgreSQL's codes of a missing table and of a missing column.
    if _sqlstate(cause) in ("42P01", "42703") or str(cause).startswith("no such "):
        return f"{name()} cannot be used ({reason(error)}): run ./manage.py migrate"
    return f"{name()} cannot be used: {reason(error)}"


def reason(error: Exception) -> str:
    """What went wrong and what to do, in a few words."""
    error = error.__cause__ or error
    known = SQLITE_REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF) or POSTGRESQL_REASONS.get(_sqlstate(error))
    return known or str(error).strip().partition("\n")[0]


def _sqlstate(error: Exception) -> str | None:
    """PostgreSQL's code of an error, which psycopg 3 and psycopg2 call by different names."""
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)

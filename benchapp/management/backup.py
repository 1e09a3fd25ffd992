"""Copies of the site's database, made while it serves, and put back."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from django.core.management import CommandError
from django.db import DatabaseError, connection
from django.db.backends.postgresql.client import DatabaseClient

from benchapp.management.databases import sqlite_file
from benchapp.models import Author

# By the database's vendor: what a backup's name ends in.
SUFFIXES = {"sqlite": ".sqlite3", "postgresql": ".dump"}


def save(folder: Path, keep: int) -> Path:
    """Write a backup into `folder`, for its owner's eyes only, and remove the oldest beyond `keep`; returns its path.

    Raises CommandError when it cannot be made; then nothing is removed and no part of it is left.
    """
    suffix = SUFFIXES[connection.vendor]
    target = folder / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S.%fZ}{suffix}"
    partial = target.with_suffix(".part")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial.touch(mode=0o600)
        if connection.vendor == "sqlite":
            with closing(sqlite3.connect(_file())) as site, closing(sqlite3.connect(partial)) as copy:
                site.backup(copy)
        else:
            _postgresql("pg_dump", "--format=custom", "--no-owner", "--file", partial)
        partial.replace(target)
    except (OSError, sqlite3.Error) as error:
        raise CommandError(f"{folder}: no backup was made: {error}") from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    for old in sorted(folder.glob(f"*{suffix}"))[:-keep]:
        old.unlink()
    return target


def put_back(source: Path, *, force: bool) -> None:
    """Replace the database's content with a backup; raises CommandError when it cannot, or has rows without `force`."""
    suffix = SUFFIXES[connection.vendor]
    if source.suffix != suffix or not source.is_file():
        raise CommandError(f"{source}: no backup of this database: that is a file whose name ends in {suffix}")
    if not force and _has_rows():
        raise CommandError("the database has rows, which would be lost; --force replaces them")
    if connection.vendor == "sqlite":
        _put_back_sqlite(source)
    else:
        _postgresql(
            "pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error", source
        )


def _put_back_sqlite(source: Path) -> None:
    try:
        with closing(sqlite3.connect(source)) as copy:
            if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise CommandError(f"{source}: it is damaged; nothing is changed")
            with closing(sqlite3.connect(_file())) as site:
                copy.backup(site)
    except sqlite3.Error as error:
        raise CommandError(f"{source}: {error}; nothing is changed") from None


def _file() -> Path:
    file = sqlite_file()
    if file is None or not file.exists():
        raise CommandError("there is no database file; run ./manage.py migrate first")
    return file


def _has_rows() -> bool:
    try:
        return Author.objects.exists()
    except DatabaseError:
        # No such table.
        return False


def _postgresql(*command: str | Path) -> None:
    """Run one of PostgreSQL's programs on the site's database; raises CommandError with its last line when it fails."""
    settings = connection.settings_dict
    _, password = DatabaseClient.settings_to_cmd_args_env(settings, [])
    place = {"PGHOST": settings["HOST"], "PGPORT": str(settings["PORT"]), "PGUSER": settings["USER"]}
    env = {**os.environ, **(password or {}), **{name: value for name, value in place.items() if value}}
    argv = [*map(str, command), "--dbname", settings["NAME"]]
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise CommandError(f"{command[0]} not found: install postgresql-client") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it failed"]
        raise CommandError(f"{command[0]}: {lines[-1]}")

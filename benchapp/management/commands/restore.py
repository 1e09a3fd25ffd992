"""Put a backup of the database back."""

from __future__ import annotations

import sqlite3
from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from benchapp.caching.invalidation import all_pages, invalidate
from benchapp.management import databases
from benchapp.models import Author


class Command(BaseCommand):
    """All of the database becomes what it was; cached pages are invalidated."""

    help = "Replace the content of the database with a backup that `backup` made."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="also where the database has rows, which are lost")

    def handle(self, file: Path, force: bool, **options: Any) -> None:
        suffix = databases.BACKUPS[connection.vendor]
        if file.suffix != suffix or not file.is_file():
            raise CommandError(f"{file}: no backup of this database: that is a file whose name ends in {suffix}")
        if not force and _has_rows():
            raise CommandError("the database has rows, which would be lost; --force replaces them")
        if connection.vendor == "sqlite":
            _restore_sqlite(file)
        else:
            options = ("--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error")
            databases.run_postgresql("pg_restore", *options, file)
        invalidate(all_pages())
        self.stdout.write(f"The database is that of {file.name}.")


def _restore_sqlite(file: Path) -> None:
    try:
        with closing(sqlite3.connect(file)) as copy:
            if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise CommandError(f"{file}: it is damaged; nothing is changed")
            with closing(sqlite3.connect(databases.existing_sqlite_file())) as site:
                copy.backup(site)
    except sqlite3.Error as error:
        raise CommandError(f"{file}: {error}; nothing is changed") from None


def _has_rows() -> bool:
    try:
        return Author.objects.exists()
    except DatabaseError:
        # No such table.
        return False

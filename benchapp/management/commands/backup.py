"""Make a backup of the database while the site serves."""

from __future__ import annotations

import contextlib
import sqlite3
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from benchapp.management import databases

KEEP = 14


class Command(BaseCommand):
    """SQLite's own copy, or pg_dump; for its owner's eyes only."""

    help = "Write a backup of the database into a directory, and remove the oldest ones there."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path)
        parser.add_argument("--keep", type=_positive, default=KEEP, help=f"how many backups stay (default: {KEEP})")

    def handle(self, directory: Path, keep: int, **options: Any) -> None:
        """When it cannot be made nothing is removed, and no part of it is left."""
        suffix = databases.BACKUPS[connection.vendor]
        target = directory / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S.%fZ}{suffix}"
        partial = target.with_suffix(".part")
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial.touch(mode=0o600)
            if connection.vendor == "sqlite":
                source = databases.existing_sqlite_file()
                with closing(sqlite3.connect(source)) as site, closing(sqlite3.connect(partial)) as copy:
                    site.backup(copy)
            else:
                databases.run_postgresql("pg_dump", "--format=custom", "--no-owner", "--file", partial)
            partial.replace(target)
        except (OSError, sqlite3.Error) as error:
            raise CommandError(f"{directory}: no backup was made: {error}") from None
        finally:
            with contextlib.suppress(OSError):
                partial.unlink()
        for old in sorted(directory.glob(f"*{suffix}"))[:-keep]:
            old.unlink()
        self.stdout.write(str(target))


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text}: use a whole number, 1 or more")
    return int(text)

"""Detection of writes to the databases, without reading rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError, connections

# A file without any content is made by who only reads.
SQLITE_FILES = ("", "-wal", "-journal")
TUPLES = "SELECT tup_inserted, tup_updated, tup_deleted FROM pg_stat_database WHERE datname = current_database()"


class Command(BaseCommand):
    """Prints a text as `written`, another one after each write; null for a database that does not tell."""

    help = "Print a text that is another one once something was written to the databases, as one JSON object."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        states = [_written(connections[alias]) for alias in connections]
        written = None
        if None not in states:
            written = " ".join(map(str, states))
        self.stdout.write(json.dumps({"written": written}))


def _written(connection: Any) -> str | None:
    if connection.vendor == "sqlite":
        return _of_files(str(connection.settings_dict["NAME"]))
    if connection.vendor == "postgresql":
        try:
            with connection.cursor() as cursor:
                cursor.execute(TUPLES)
                return str(cursor.fetchone())
        except DatabaseError:
            return None
    if connection.vendor == "unknown":
        return ""
    return None


def _of_files(name: str) -> str:
    """The size and the time of the last write of each file of an SQLite database."""
    files = [Path(f"{name}{suffix}") for suffix in SQLITE_FILES]
    statuses = [path.stat() for path in files if path.is_file()]
    return str([(file.st_size, file.st_mtime_ns) for file in statuses if file.st_size])

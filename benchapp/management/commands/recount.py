"""Verify or rebuild the page index."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, OperationalError, ProgrammingError, connections

from benchapp import page_index, page_triggers

MAX_SHOWN = 20


class Command(BaseCommand):
    help = (
        "Rebuild the page index (counts of rows by block of ids and counts of children on their parents)"
        " from the rows, in one transaction: the site continues to read, writers wait. With --check, change"
        " nothing, print each difference, and exit with 1 if there is one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="only compare the page index with the rows")
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, choices=tuple(connections), help="which database")

    def handle(self, *args: Any, check: bool, database: str, **options: Any) -> None:
        connection = connections[database]
        if not page_triggers.supported(connection):
            raise CommandError(f"database {database}: the page index is kept in SQLite and PostgreSQL only")
        try:
            wrong = page_index.differences(connection)
            if wrong and not check:
                page_index.rebuild(connection)
        except (OperationalError, ProgrammingError) as error:
            reason = str(error).strip().splitlines()[0]
            raise CommandError(f"database {database}: {reason}; is it migrated (./manage.py migrate)?") from error
        for line in wrong[:MAX_SHOWN]:
            self.stdout.write(line)
        if len(wrong) > MAX_SHOWN:
            self.stdout.write(f"and {len(wrong) - MAX_SHOWN} more")
        if not wrong:
            self.stdout.write("The page index is right.")
        elif check:
            raise CommandError(f"The page index differs in {len(wrong)} places; ./manage.py recount rebuilds it.")
        else:
            self.stdout.write(f"The page index differed in {len(wrong)} places and was rebuilt.")

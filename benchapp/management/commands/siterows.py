"""Print how many rows the site holds, for whoever measures it from outside."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from benchapp import pagination


class Command(BaseCommand):
    """Reads the totals that the lists show; nothing is counted row by row."""

    help = "Print how many rows each of the three tables holds."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of a line for each")

    def handle(self, **options: Any) -> None:
        try:
            rows = {
                "authors": pagination.total_authors(),
                "posts": pagination.total_posts(),
                "comments": pagination.total_comments(),
            }
        except DatabaseError as error:
            reason = str(error).strip().splitlines()[0]
            raise CommandError(f"the database cannot be read ({reason}): run ./manage.py migrate") from error
        if options["json"]:
            self.stdout.write(json.dumps(rows))
        else:
            self.stdout.write("\n".join(f"{table:<10} {count:,}" for table, count in rows.items()))

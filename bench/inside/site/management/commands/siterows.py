"""Print how many rows the site holds, for the results of a run."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from benchapp import pagination
from benchapp.management import databases
from benchapp.models import Author, Comment, Post
from fixtures.rows import ROWS_MIN, SEED_DEFAULT, Rows


class Command(BaseCommand):
    """Reads the totals that the lists show; it does not count rows."""

    help = "Print how many rows each of the three tables holds."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of a line for each")
        parser.add_argument(
            "--seed", action="store_true", help=f"also the seed, when it is loadfixtures' default, {SEED_DEFAULT}"
        )

    def handle(self, **options: Any) -> None:
        try:
            rows = {
                "authors": pagination.total(Author),
                "posts": pagination.total(Post),
                "comments": pagination.total(Comment),
            }
            seed = {"seed": _seed()} if options["seed"] else {}
        except DatabaseError as error:
            raise CommandError(databases.problem(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps({**rows, **seed}))
        else:
            self.stdout.write("\n".join(f"{table:<10} {count:,}" for table, count in rows.items()))
            if seed:
                self.stdout.write(f"seed       {'unknown' if seed['seed'] is None else seed['seed']}")


def _seed() -> int | None:
    """The default seed when the first author is the one that it makes, at any number of rows; else None."""
    first = [column[0] for column in next(Rows(SEED_DEFAULT, ROWS_MIN).frames()).columns]
    same = dict(zip(("id", "name", "city", "bio"), first, strict=False))
    return SEED_DEFAULT if Author.objects.filter(**same).exists() else None

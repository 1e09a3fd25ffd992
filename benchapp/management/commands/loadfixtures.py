"""Fill the site with made-up rows: authors, posts and comments."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connection

from benchapp import page_index
from benchapp.caching.invalidation import all_pages, invalidate
from benchapp.management import databases
from benchapp.models import Author, Comment, Post
from fixtures import load
from fixtures.rows import ROWS_DEFAULT, ROWS_MAX, ROWS_MIN, SEED_DEFAULT, Rows

MODELS = [Author, Post, Comment]
LINE_EVERY_S = 30  # if no terminal is


class Command(BaseCommand):
    help = (
        "Replace all authors, posts and comments by made-up ones, in one transaction: after an interruption"
        " the old rows are still there. The same seed and number of rows give the same rows on every"
        " database, which the checksum proves. Accounts and sessions stay."
    )
    requires_system_checks = []

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        """The parser of the command line, whose errors are one line without the usage."""
        parser = super().create_parser(prog_name, subcommand, **options)
        if parser.called_from_command_line:
            parser.error = lambda message: parser.exit(2, f"{parser.prog}: {message}; see {parser.prog} --help\n")
        return parser

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--rows",
            type=int,
            default=ROWS_DEFAULT,
            metavar="N",
            help=f"rows in all, {ROWS_MIN} to {ROWS_MAX} (default {ROWS_DEFAULT}); for each author there are"
            " 10 posts and 40 comments",
        )
        parser.add_argument(
            "--seed", type=int, default=SEED_DEFAULT, metavar="S", help=f"which rows (default {SEED_DEFAULT})"
        )
        parser.add_argument("--force", action="store_true", help="delete the rows that are there")
        parser.add_argument("--dry-run", action="store_true", help="print what would be done, change nothing")

    def handle(self, *args: Any, rows: int, seed: int, force: bool, dry_run: bool, **options: Any) -> None:
        try:
            wanted = Rows(seed, rows)
        except ValueError as error:
            raise CommandError(str(error)) from None
        databases.require_site()
        counts = ", ".join(f"{count:,} {table}s" for table, count in wanted.counts.items())
        what = f"{wanted.total:,} rows of seed {wanted.seed}"
        if dry_run:
            if tables := load.filled(MODELS):
                if not force:
                    self.stdout.write(f"Would refuse: {databases.name()} has {tables} already. With --force:")
                self.stdout.write(f"Would delete all {tables} in {databases.name()}.")
            size = f"about {wanted.total * load.BYTES_PER_ROW / 1e6:,.0f} MB"
            self.stdout.write(f"Would load {what} into {databases.name()}: {counts}, {size} with their indexes.")
            return
        quiet = options["verbosity"] == 0
        self._load(wanted, force, (lambda task, added: None) if quiet else Progress(self.stdout, wanted.total))
        if not quiet:
            self.stdout.write(f"{databases.name()} has {what}: {counts}.\nchecksum {wanted.checksum}")

    def _load(self, rows: Rows, force: bool, progress: Callable[[str, int], None]) -> None:
        try:
            load.replace(connection, MODELS, rows, page_index, progress, force=force)
        except load.Refused as error:
            raise CommandError(f"{databases.name()}: {error}") from None
        except (Error, connection.Database.Error, OSError) as error:
            raise CommandError(f"{databases.name()}: {databases.reason(error)}; no row was changed") from error
        except KeyboardInterrupt:
            raise CommandError(f"{databases.name()}: interrupted; no row was changed", returncode=130) from None
        invalidate(all_pages())
        progress("gathering statistics", 0)
        load.gather_statistics(connection, MODELS)


class Progress:
    """Prints the name of each step and its progress: in place on a terminal, else a line every 30 s."""

    def __init__(self, stdout: Any, total: int):
        self.stdout, self.total, self.done, self.task = stdout, total, 0, ""
        self.written = time.monotonic()

    def __call__(self, task: str, added: int) -> None:
        if task != self.task:
            self.stdout.write(task)
            self.stdout.flush()
            self.task = task
        self.done += added
        terminal, now = self.stdout.isatty(), time.monotonic()
        if added and now - self.written > (0.2 if terminal else LINE_EVERY_S):
            self.written = now
            self.stdout.write(f"{100 * self.done // self.total:3} %", ending="\r" if terminal else "\n")
            self.stdout.flush()

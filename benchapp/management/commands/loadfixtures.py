"""Fill the site with made-up rows: authors, posts and comments."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connection, transaction

from benchapp import page_index
from benchapp.caching.invalidation import all_pages, invalidate
from benchapp.management import databases
from fixtures import load
from fixtures.database import Busy
from fixtures.generator import ROWS_DEFAULT, ROWS_MAX, ROWS_MIN, SEED_DEFAULT, Rows
from fixtures.stream import Stream, StreamError
from fixtures.text import VocabularyError


class Command(BaseCommand):
    help = (
        "Replace all authors, posts and comments by made-up ones, in one transaction: after an interruption"
        " the old rows are still there. The same seed and number of rows give the same rows on every"
        " database, which the checksum proves. Accounts and sessions are left alone."
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
        doing = parser.add_mutually_exclusive_group()
        doing.add_argument("--dry-run", action="store_true", help="print what would be done or refused, change nothing")
        doing.add_argument(
            "--verify", action="store_true", help="compare the rows that are there with those asked for, change nothing"
        )

    def handle(self, *args: Any, rows: int, seed: int, force: bool, **options: Any) -> None:
        try:
            wanted = Rows(seed, rows)
        except ValueError as error:
            raise CommandError(str(error)) from None
        self.verbosity, self.committed = options["verbosity"], False
        with self._one_line():
            if options["dry_run"]:
                self._say_what(wanted, self._inspect(wanted, force=True), force)
            elif options["verify"]:
                self._verify(wanted)
            else:
                self._load(wanted, force)

    def _inspect(self, rows: Rows, force: bool) -> list[str]:
        """Refuse what must not be loaded into; returns which tables have rows to be deleted."""
        with databases.reading() as cursor:
            load.inspect(cursor, connection.vendor, page_index)
            found = load.filled(cursor)
        if found and not force:
            load.refuse(found)
        _check_space(rows)
        return found

    def _verify(self, rows: Rows) -> None:
        with databases.reading() as cursor:
            load.inspect(cursor, connection.vendor, page_index)
            there = load.checksum(cursor, connection.vendor)
        with Stream(rows) as stream:
            for _ in stream:
                pass
        if there != stream.checksum:
            raise load.Refused(
                f"its rows are not the {rows.total:,} of seed {rows.seed}:"
                f" their checksum is {there}, not {stream.checksum}"
            )
        self._say(f"{databases.name()} has exactly the {rows.total:,} rows of seed {rows.seed}.", f"checksum {there}")

    def _say_what(self, rows: Rows, found: list[str], force: bool) -> None:
        if found and not force:
            self._say(f"Would refuse: {databases.name()} has {', '.join(found)} already. With --force:")
        if found:
            self._say(f"Would delete all {', '.join(found)} in {databases.name()}.")
        self._say(
            f"Would load {rows.total:,} rows of seed {rows.seed} into {databases.name()}: {_counts(rows)},"
            f" about {_bytes(rows) / 1e6:,.0f} MB with their indexes."
        )

    def _load(self, rows: Rows, force: bool) -> None:
        try:
            from rich.console import Console

            from fixtures.progress import Progress
        except ModuleNotFoundError:
            # A production host does without.
            raise CommandError("it shows its progress by rich, which is not installed; run pip install rich") from None
        progress = Progress(rows.total, self._write, Console() if self.stdout.isatty() else None)
        # Meanwhile the process that makes the rows starts.
        with Stream(rows) as stream:
            self._inspect(rows, force)
            connection.ensure_connection()
            with closing(connection.connection.cursor()) as cursor:
                try:
                    load.replace(cursor, connection.vendor, stream, force, progress, page_index, self._transaction())
                    invalidate(all_pages())
                    progress.task("gathering statistics")
                    load.update_statistics(cursor, connection.vendor)
                finally:
                    progress.clear()
        self._say(
            f"{databases.name()} has {rows.total:,} rows of seed {rows.seed}: {_counts(rows)}.",
            f"checksum {stream.checksum}",
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with transaction.atomic():
            yield
        self.committed = True

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        """Report every error as one line: what, where, and what to do next."""
        try:
            yield
        except load.Refused as error:
            raise CommandError(f"{databases.name()}: {error}") from None
        except (Busy, StreamError, VocabularyError, OSError) as error:
            raise CommandError(f"{databases.name()}: {error}; {self._state()}") from error
        except (Error, connection.Database.Error) as error:
            raise CommandError(f"{databases.name()}: {databases.reason(error)}; {self._state()}") from error
        except KeyboardInterrupt:
            raise CommandError(f"{databases.name()}: interrupted; {self._state()}", returncode=130) from None

    def _state(self) -> str:
        if self.committed:
            return "the new rows are there, but statistics may be missing"
        return "nothing was changed"

    def _say(self, *lines: str) -> None:
        for line in lines:
            self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        if self.verbosity > 0:
            self.stdout.write(text, ending="")
            self.stdout.flush()


def _counts(rows: Rows) -> str:
    return ", ".join(f"{count:,} {table}s" for table, count in rows.counts.items())


def _bytes(rows: Rows) -> int:
    return rows.total * load.DATABASES[connection.vendor].BYTES_PER_ROW


def _check_space(rows: Rows) -> None:
    """Refuse early what would fill the disk; the disk of a database server cannot be checked."""
    path = databases.sqlite_file()
    if path and (free := shutil.disk_usage(path.parent).free) < _bytes(rows):
        raise load.Refused(
            f"about {_bytes(rows) / 1e6:,.0f} MB are needed and {free / 1e6:,.0f} MB are free:"
            " make room, or load fewer --rows"
        )

"""Fill the site with made-up rows: authors, posts and comments."""

from __future__ import annotations

import shutil
import sqlite3
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connection, transaction

from benchapp import counted
from benchapp.caching import staleness
from fixtures import load
from fixtures.database import Busy
from fixtures.generator import ROWS_DEFAULT, ROWS_MAX, ROWS_MIN, SEED_DEFAULT, Rows
from fixtures.progress import Progress
from fixtures.stream import Stream, StreamError
from fixtures.text import VocabularyError


class Command(BaseCommand):
    help = (
        "Replace all authors, posts and comments by made-up ones, in one transaction: interrupted at any moment,"
        " the rows of before are still there. The same seed and number of rows give the same rows on every"
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
        doing.add_argument(
            "--dry-run", action="store_true", help="check everything, say what would be done, change nothing"
        )
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
                self._say_what(wanted, self._inspect(wanted, force))
            elif options["verify"]:
                self._verify(wanted)
            else:
                self._load(wanted, force)

    def _inspect(self, rows: Rows, force: bool) -> list[str]:
        """Refuse what must not be loaded into; returns which tables have rows to be deleted."""
        with _reading() as cursor:
            load.inspect(cursor, connection.vendor, counted)
            found = load.filled(cursor)
        if found and not force:
            load.refuse(found)
        _check_space(rows)
        return found

    def _verify(self, rows: Rows) -> None:
        with _reading() as cursor:
            load.inspect(cursor, connection.vendor, counted)
            there = load.checksum(cursor, connection.vendor)
        with Stream(rows) as stream:
            for _ in stream:
                pass
        if there != stream.checksum:
            raise load.Refused(
                f"its rows are not the {rows.total:,} of seed {rows.seed}:"
                f" their checksum is {there}, not {stream.checksum}"
            )
        self._say(f"{_database()} has exactly the {rows.total:,} rows of seed {rows.seed}.", f"checksum {there}")

    def _say_what(self, rows: Rows, found: list[str]) -> None:
        if found:
            self._say(f"Would delete all {', '.join(found)} in {_database()}.")
        self._say(
            f"Would load {rows.total:,} rows of seed {rows.seed} into {_database()}: {_counts(rows)},"
            f" about {_bytes(rows) / 1e6:,.0f} MB with their indexes."
        )

    def _load(self, rows: Rows, force: bool) -> None:
        progress = Progress(rows.total, self._write, self.stdout.isatty())
        # The process that makes the rows gets ready meanwhile.
        with Stream(rows) as stream:
            self._inspect(rows, force)
            connection.ensure_connection()
            with closing(connection.connection.cursor()) as cursor:
                try:
                    load.replace(cursor, connection.vendor, stream, force, progress, counted, self._transaction())
                    staleness.announce(staleness.everything())
                    progress.task("gathering statistics")
                    load.tidy(cursor, connection.vendor)
                finally:
                    progress.clear()
        self._say(
            f"{_database()} has {rows.total:,} rows of seed {rows.seed}: {_counts(rows)}.",
            f"checksum {stream.checksum}",
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with transaction.atomic():
            yield
        self.committed = True

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        """Every error as one line that says what, where, and what next."""
        try:
            yield
        except load.Refused as error:
            raise CommandError(f"{_database()}: {error}") from None
        except (Busy, StreamError, VocabularyError, OSError) as error:
            raise CommandError(f"{_database()}: {error}; {self._state()}") from error
        except (Error, connection.Database.Error) as error:
            raise CommandError(f"{_database()}: {_reason(error)}; {self._state()}") from error
        except KeyboardInterrupt:
            raise CommandError(f"{_database()}: interrupted; {self._state()}", returncode=130) from None

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


@contextmanager
def _reading() -> Iterator[Any]:
    """A cursor of the driver's own that leaves the database as it is.

    The site's connections change the journal of an SQLite file and create one that is missing: not before it
    is known to be the site's.
    """
    path = _sqlite_file()
    if path is None or connection.in_atomic_block:
        connection.ensure_connection()
        with transaction.atomic(), closing(connection.connection.cursor()) as cursor:
            yield cursor
    elif not path.exists():
        raise load.Refused("there is no such file: run ./manage.py migrate first")
    else:
        # mode=rw, not ro: what a killed program left unfinished can only be undone by writing.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as reader:
            yield reader.cursor()


def _sqlite_file() -> Path | None:
    if connection.vendor != "sqlite" or connection.is_in_memory_db():
        return None
    return Path(connection.settings_dict["NAME"])


def _database() -> str:
    """The database as a person would name it, without password."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"SQLite database {settings['NAME']}"
    place = f" at {settings['HOST']}" if settings["HOST"] else ""
    return f"PostgreSQL database {settings['NAME']}{place}{':' if place and settings['PORT'] else ''}{settings['PORT']}"


def _counts(rows: Rows) -> str:
    return ", ".join(f"{count:,} {table}s" for table, count in rows.counts.items())


def _bytes(rows: Rows) -> int:
    return rows.total * load.DATABASES[connection.vendor].BYTES_PER_ROW


def _check_space(rows: Rows) -> None:
    """Refuse early what would fill the disk; a server's disk is not ours to look at."""
    path = _sqlite_file()
    if path and (free := shutil.disk_usage(path.parent).free) < _bytes(rows):
        raise load.Refused(
            f"about {_bytes(rows) / 1e6:,.0f} MB are needed and {free / 1e6:,.0f} MB are free:"
            " make room, or load fewer --rows"
        )


_SQLITE_REASONS = {
    sqlite3.SQLITE_BUSY: "another program is using it: stop that, or wait, and try again",
    sqlite3.SQLITE_FULL: "the disk is full: make room, or load fewer --rows",
    sqlite3.SQLITE_READONLY: "it cannot be written to: check the permissions of the file and its directory",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check the permissions of the file and its directory",
    sqlite3.SQLITE_NOTADB: "the file is not an SQLite database: choose another with DATABASE_URL",
}
_POSTGRESQL_REASONS = {
    "53100": "the server's disk is full: make room, or load fewer --rows",
    "55P03": "its tables are in use: stop the site, or wait, and try again",
    "42501": "its user may not do this, but has to own the tables",
}


def _reason(error: Exception) -> str:
    """What went wrong, and what to do, in a few words."""
    error = error.__cause__ or error
    known = _SQLITE_REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF) or _POSTGRESQL_REASONS.get(
        getattr(error, "pgcode", None)
    )
    return known or str(error).strip().partition("\n")[0]

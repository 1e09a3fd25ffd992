"""./manage.py loadfixtures refuses what it cannot do, in one line, and changes nothing then."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
from django.db import connection

from benchapp import page_index
from benchapp.management import databases
from benchapp.models import Author
from fixtures import postgresql, sqlite
from tests.app.loading import another_connection, assert_refused, expected_checksum, load_rows, stored_checksum


@pytest.fixture
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """URL of a database without any table."""

    def url(vendor: str) -> str:
        if vendor == "postgresql":
            return request.getfixturevalue("postgresql_database")
        path = tmp_path / "empty.sqlite3"
        sqlite3.connect(path).close()
        path.touch()
        return f"sqlite:///{path}"

    return url


def test_rows_that_are_there_stay_without_force(site_database):
    author = Author.objects.create(name="Ann", city="Ghent")
    assert_refused("it has authors already: add --force to replace all of them")
    assert list(Author.objects.all()) == [author]


@pytest.mark.parametrize("vendor", ["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def test_a_database_that_was_not_migrated_is_refused(empty_database, vendor, run):
    url = empty_database(vendor)
    code, output, errors = run(url)
    assert (code, output) == (1, "")
    assert re.fullmatch(
        r"CommandError: \w+ database \S+( at \S+)?: there is no table benchapp_author: run ./manage.py migrate first\n",
        errors,
    )


def test_a_missing_file_is_not_created(tmp_path, run):
    path = tmp_path / "none.sqlite3"
    code, output, errors = run(f"sqlite:///{path}")
    assert (code, output) == (1, "")
    assert errors == f"CommandError: SQLite database {path}: there is no such file: run ./manage.py migrate first\n"
    assert not path.exists()


def test_a_file_that_is_no_database_is_refused(tmp_path, run):
    path = tmp_path / "notes.txt"
    path.write_text("Not a database, but rather long for a note. " * 50)
    code, output, errors = run(f"sqlite:///{path}")
    assert (code, output) == (1, "")
    assert errors == (
        f"CommandError: SQLite database {path}: the file is not an SQLite database:"
        " choose another with DATABASE_URL; nothing was changed\n"
    )


def test_a_server_that_does_not_answer_is_named(run):
    code, output, errors = run("postgresql://someone:secret@127.0.0.1:1/site")
    assert (code, output) == (1, "")
    assert re.fullmatch(
        r"CommandError: PostgreSQL database site at 127\.0\.0\.1:1: .*refused.*; nothing was changed\n", errors
    )
    assert "secret" not in errors


def test_other_columns_are_refused(site_database):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE benchapp_post RENAME COLUMN views TO seen")
    assert_refused(
        "its table benchapp_post is not this site's or not up to date (columns that differ: seen, views):"
        " run ./manage.py migrate, or choose another database with DATABASE_URL",
        force=True,
    )


def test_a_foreign_file_is_not_touched(tmp_path, run):
    """Not even its journal mode, which every connection of the site sets."""
    path = tmp_path / "shop.sqlite3"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE benchapp_author (id integer PRIMARY KEY, iban text)")
        other.execute("INSERT INTO benchapp_author VALUES (1, 'x')")
        other.commit()
    before = path.read_bytes()
    code, _, errors = run(f"sqlite:///{path}", "--force")
    assert code == 1
    assert "its table benchapp_author is not this site's or not up to date" in errors
    assert path.read_bytes() == before


def test_tables_that_refer_to_the_rows_are_respected(site_database):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bookmark (post_id bigint REFERENCES benchapp_post (id))")
    assert_refused("the table bookmark refers to this site's rows, which could not be replaced then", force=True)


def test_missing_triggers_are_refused(site_database):
    with connection.cursor() as cursor:
        page_index.drop_triggers(cursor, connection.vendor)
    assert_refused(
        "the trigger benchapp_author_insert is missing: run ./manage.py migrate first,"
        " or ./manage.py recount if that has nothing to do"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "99"], "the number of rows must be from 100 to 100,000,000, not 99"),
        (["--rows", "many"], "argument --rows: invalid int value: 'many'"),
        (["--rows", "1e6"], "argument --rows: invalid int value: '1e6'"),
        (["--seed", "-1"], "the seed must be a whole number from 0 to 9223372036854775807, not -1"),
        (["--seeds", "1"], "unrecognized arguments: --seeds 1"),
        (["all"], "unrecognized arguments: all"),
        (["--dry-run", "--verify"], "argument --verify: not allowed with argument --dry-run"),
    ],
)
def test_wrong_arguments_get_one_clear_line(tmp_path, arguments, message, run):
    code, output, errors = run(f"sqlite:///{tmp_path / 'none.sqlite3'}", *arguments)
    assert code != 0
    assert output == ""
    assert errors.count("\n") == 1
    assert message in errors
    assert "Traceback" not in errors


def test_a_database_of_something_else_is_not_to_be_migrated_first(tmp_path, run):
    path = tmp_path / "music.sqlite3"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE track (id integer)")
    code, _, errors = run(f"sqlite:///{path}")
    assert code == 1
    assert errors == (
        f"CommandError: SQLite database {path}: it has tables of something else, such as track, and no table"
        " benchapp_author: choose another database with DATABASE_URL, or run ./manage.py migrate to add this"
        " site's tables\n"
    )


@pytest.mark.parametrize(
    ("pragma", "message"),
    [
        ("max_page_count = 300", "the disk is full: make room, or load fewer --rows; nothing was changed"),
        (
            "query_only = 1",
            "it cannot be written to: check the permissions of the file and its directory; nothing was changed",
        ),
    ],
)
def test_a_file_that_cannot_grow_or_be_written_keeps_its_rows(sqlite_site, pragma, message):
    load_rows(1000)
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {pragma}")
    assert_refused(message, rows=5000, force=True)
    assert stored_checksum() == expected_checksum(1000)
    assert page_index.differences(connection) == []


def test_a_disk_that_is_too_small_is_noticed_before(sqlite_site, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**12, 10**12, 20_000_000))
    assert_refused(
        "about 260 MB are needed and 20 MB are free: make room, or load fewer --rows", rows=1_000_000, dry_run=True
    )


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("53100", "the server's disk is full: make room, or load fewer --rows"),
        ("42501", "its user may not do this, but has to own the tables"),
        ("XX000", "something else"),
    ],
)
def test_a_complaint_of_the_server_is_one_line(code, message):
    class Complaint(psycopg2.Error):
        pgcode = code

    assert databases.reason(Complaint("something else\nDETAIL: of which nobody knows")) == message


def test_only_one_at_a_time(postgresql_site):
    with closing(psycopg2.connect(postgresql_site)) as other, other.cursor() as cursor:
        postgresql.begin(cursor, ["benchapp_author"])
        assert_refused("another loadfixtures is running in it; nothing was changed", force=True)


def test_tables_in_use_are_waited_for_but_not_for_ever(postgresql_site, monkeypatch):
    monkeypatch.setattr(postgresql, "_LOCK_TIMEOUT_S", 1)
    with closing(psycopg2.connect(postgresql_site)) as other, other.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM benchapp_post")
        assert_refused("its tables are in use: stop the site, or wait, and try again; nothing was changed", force=True)


def test_a_file_that_another_writes_to_is_waited_for_but_not_for_ever(sqlite_site, monkeypatch):
    monkeypatch.setattr(sqlite, "_BUSY_TIMEOUT_S", 0.2)
    with another_connection(sqlite_site) as other:
        other.execute("BEGIN IMMEDIATE")
        assert_refused(
            "another program is using it: stop that, or wait, and try again; nothing was changed", force=True
        )

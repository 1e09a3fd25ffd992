"""Backups of a rendered host, of the kit's site and of a fresh project, on both databases."""

from __future__ import annotations

import os
import runpy
import secrets
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest

from bench import paths
from bench.serve.project.opened import UnderTest, open_project
from tests import postgresql, projects, waiting
from tests.cases import kit
from tests.conftest import new_postgresql_database
from tests.deploy.backed_up import POSTGRESQL, SQLITE, Site, migrated, rendered, site_on
from tests.skips import needs

# Each starts several programs.
pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("own_var")]

OLD = "2001-01-01T000000.000000Z-default"
SUFFIXES = {SQLITE: ".sqlite3", POSTGRESQL: ".dump"}


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == SQLITE:
        return f"sqlite:///{tmp_path / 'site.sqlite3'}"
    needs("pg_dump")
    return request.getfixturevalue("postgresql_database")


@pytest.fixture(scope="module")
def fresh_host(tmp_path_factory: pytest.TempPathFactory) -> tuple[UnderTest, Path]:
    """A fresh project, and what is rendered for its host."""
    folder = tmp_path_factory.mktemp("host")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "STATE", folder / "var")
        project = open_project(projects.write(folder / "shop", tmp_path_factory, "", ""))
        return project, rendered(project, folder / "out")


@pytest.fixture(scope="module")
def kits_host(tmp_path_factory: pytest.TempPathFactory) -> tuple[UnderTest, Path]:
    """The kit's own site, and what is rendered for its host."""
    return kit(), rendered(kit(), tmp_path_factory.mktemp("kit") / "out")


@pytest.fixture(scope="module")
def migrated_file(fresh_host, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the tables of the fresh project, to be copied."""
    folder = tmp_path_factory.mktemp("migrated")
    migrated(*fresh_host, f"sqlite:///{folder / 'site.sqlite3'}", folder)
    return folder / "site.sqlite3"


@pytest.fixture(scope="module")
def migrated_on_server(
    fresh_host, postgresql_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The URL and the name of a PostgreSQL database with the same tables, to be copied."""
    needs("pg_dump")
    with new_postgresql_database(postgresql_url) as url:
        migrated(*fresh_host, url, tmp_path_factory.mktemp("migrated"))
        yield url, url.rpartition("/")[2]


@pytest.fixture
def in_file(fresh_host, migrated_file: Path, tmp_path: Path) -> Site:
    """The fresh project on an SQLite file of the test's own."""
    shutil.copyfile(migrated_file, tmp_path / "site.sqlite3")
    return site_on(*fresh_host, f"sqlite:///{tmp_path / 'site.sqlite3'}", tmp_path)


@pytest.fixture
def on_server(fresh_host, migrated_on_server: tuple[str, str], tmp_path: Path) -> Iterator[Site]:
    """The fresh project on a PostgreSQL database of the test's own."""
    url, name = migrated_on_server
    with new_postgresql_database(url, f"TEMPLATE {name}") as copy:
        yield site_on(*fresh_host, copy, tmp_path)


@pytest.fixture(params=["in_file", "on_server"], ids=[SQLITE, POSTGRESQL])
def fresh(request: pytest.FixtureRequest) -> Site:
    """The fresh project on each kind of database."""
    return request.getfixturevalue(request.param)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of an error."""
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("host", ["kits_host", "fresh_host"])
def test_what_a_backup_holds_comes_back(request, database, tmp_path, host):
    site = migrated(*request.getfixturevalue(host), database, tmp_path)
    site.note("one")
    done = site.backup()
    (name,) = site.files()
    assert (done.stdout, done.stderr, done.returncode) == (f"{site.backups / name}\n", "", 0)
    file = site.backups / name
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(site.backups.stat().st_mode) == 0o700
    site.sql("UPDATE django_session SET session_key = 'two'")

    assert "--force" in refused(site.restore(file))
    assert site.notes() == ["two"]
    done = site.restore(file, "--force")
    assert (done.stderr, done.returncode) == ("", 0)
    assert site.notes() == ["one"]
    assert site.run("manage.py", "migrate", "--check").returncode == 0
    assert site.files() == [name]


def test_a_database_that_only_migrate_has_filled_is_replaced_without_force(fresh):
    file = fresh.new_backup()
    fresh.sql("DELETE FROM auth_permission")
    done = fresh.restore(file)
    assert (done.stderr, done.returncode) == ("", 0)
    assert fresh.sql("SELECT count(*) FROM auth_permission") != [(0,)]


def test_tables_of_later_migrations_go(fresh):
    """Otherwise the migration that makes them fails after a restore."""
    file = fresh.new_backup()
    fresh.sql("CREATE TABLE later (id integer PRIMARY KEY REFERENCES auth_user (id))")
    assert fresh.restore(file).returncode == 0
    with pytest.raises((sqlite3.Error, psycopg2.Error), match="later"):
        fresh.sql("SELECT * FROM later")


def test_a_backup_is_of_one_moment_while_the_site_writes(fresh):
    """A row that is not committed is in none, and hinders none."""
    if fresh.kind == SQLITE:
        fresh.sql("PRAGMA journal_mode = WAL")
        writer = sqlite3.connect(fresh.database.removeprefix("sqlite:///"))
    else:
        writer = psycopg2.connect(fresh.database)
    with closing(writer):
        writer.cursor().execute("INSERT INTO django_session VALUES ('open', '', '2999-01-01')")
        file = fresh.new_backup()
        writer.commit()
    assert fresh.notes() == ["open"]
    assert fresh.restore(file, "--force").returncode == 0
    assert fresh.notes() == []


def test_visitors_during_a_restore_read_all_of_one_state(fresh):
    """Readers and writers meanwhile see the rows of before, then those of the backup, and never a part."""
    fresh.note("one")
    file = fresh.new_backup()
    fresh.note("two")
    seen, over = [], threading.Event()

    def visit() -> None:
        while not over.is_set():
            fresh.sql(f"INSERT INTO django_session VALUES ('{secrets.token_hex(8)}', '', '2999-01-01')")
            notes = fresh.notes()
            seen.append(("one" in notes, "two" in notes))
            time.sleep(0.01)

    with ThreadPoolExecutor(3) as pool:
        visitors = [pool.submit(visit) for _ in range(3)]
        waiting.until(lambda: len(seen) > 10, "visitors before")
        done = fresh.restore(file, "--force")
        after = len(seen)
        waiting.until(lambda: len(seen) > after + 10, "visitors after")
        over.set()
        for visitor in visitors:
            visitor.result()
    assert (done.stderr, done.returncode) == ("", 0)
    assert {has_one for has_one, _ in seen} == {True}
    assert seen[0] == (True, True) and {has_two for _, has_two in seen[after:]} == {False}


def test_what_a_restored_database_held_in_its_write_ahead_log_is_gone(in_file):
    in_file.sql("PRAGMA journal_mode = WAL")
    in_file.note("one")
    file = in_file.new_backup()
    with closing(sqlite3.connect(in_file.database.removeprefix("sqlite:///"))) as visitor:
        visitor.execute("INSERT INTO django_session VALUES ('two', '', '2999-01-01')")
        visitor.commit()
        assert in_file.restore(file, "--force").returncode == 0
        assert visitor.execute("SELECT session_key FROM django_session").fetchall() == [("one",)]
    # Nothing is written beside the backups.
    assert in_file.files() == [file.name]


def test_the_oldest_backups_go_and_nothing_else(in_file):
    in_file.backups.mkdir()
    for name in ("notes.txt", f"{OLD[:-7]}other.sqlite3", f"{OLD}.dump"):
        (in_file.backups / name).touch()
    others = in_file.files()
    names = [Path(in_file.backup("--keep", 2).stdout.strip()).name for _ in range(3)]
    assert in_file.files() == sorted([*others, *names[1:]])


def test_fourteen_backups_stay(in_file):
    in_file.backups.mkdir()
    for day in range(20):
        (in_file.backups / f"2001-01-{day + 1:02}T000000.000000Z-default.sqlite3").touch()
    backup = in_file.new_backup()
    assert len(in_file.files()) == 14 and in_file.files()[-1] == backup.name


def test_of_several_databases_each_has_a_backup_or_none_has(new_project, database, tmp_path):
    other = tmp_path / "data" / "other.sqlite3"
    folder = new_project(
        f"DATABASES['other'] = {{'ENGINE': 'django.db.backends.sqlite3', 'NAME': {str(other)!r}}}\n"
        "DATABASES['replica'] = {**DATABASES['default'], 'TEST': {'MIRROR': 'default'}}\n"
        "DATABASES['memory'] = {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}\n"
    )
    project = open_project(folder)
    site = migrated(project, rendered(project, tmp_path / "out"), database, tmp_path)
    assert str(other) in refused(site.backup())
    assert site.files() == []

    with closing(sqlite3.connect(other)) as connection:
        connection.executescript("CREATE TABLE page (title); INSERT INTO page VALUES ('one')")
    done = site.backup()
    assert (done.stderr, done.returncode) == ("", 0)
    first, second = [Path(line) for line in done.stdout.splitlines()]
    assert [first.name, second.name] == site.files()
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("UPDATE page SET title = 'two'")
        connection.commit()
        assert "other" in refused(site.restore(second))
        assert site.restore(second, "--force").returncode == 0
        assert connection.execute("SELECT title FROM page").fetchall() == [("one",)]


ASSUMES = """
from shop.settings import *

DATABASES["default"] = {"ENGINE": "django.db.backends.postgresql", "OPTIONS": {"assume_role": "keeper"}}
"""
ODD = """
from django.db.backends.dummy import base


class DatabaseWrapper(base.DatabaseWrapper):
    vendor = "odd"
"""


def test_a_database_of_another_kind_is_named_and_the_others_have_backups(in_file, tmp_path):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "base.py").write_text(ODD)
    (tmp_path / "below.py").write_text("from shop.settings import *\nDATABASES['legacy'] = {'ENGINE': 'odd'}\n")
    env = {"OVERLAID_SETTINGS": "below", "PYTHONPATH": f"{in_file.env['PYTHONPATH']}:{tmp_path}"}
    done = in_file.backup(**env)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, len(in_file.files()), "legacy" in line) == (0, 1, True)
    (tmp_path / "below.py").write_text("from shop.settings import *\nDATABASES = {'default': {'ENGINE': 'odd'}}\n")
    refused(in_file.backup(**env, BENCHAPP_DATABASE_URL=""))
    assert len(in_file.files()) == 1


@pytest.mark.parametrize("cut", [0.02, 0.5, 0.99], ids=["head", "half", "end"])
def test_a_damaged_backup_changes_nothing(fresh, cut):
    fresh.note("one")
    backup = fresh.new_backup()
    damaged = fresh.backups / f"{OLD}{backup.suffix}"
    content = backup.read_bytes()
    damaged.write_bytes(content[: int(len(content) * cut)])
    fresh.note("two")
    refused(fresh.restore(damaged, "--force"))
    assert fresh.notes() == ["one", "two"]


def test_a_foreign_file_changes_nothing(fresh, tmp_path):
    fresh.note("one")
    suffix, other = SUFFIXES[fresh.kind], SUFFIXES[POSTGRESQL if fresh.kind == SQLITE else SQLITE]
    mine = fresh.new_backup().read_bytes()
    named = {f"{OLD}{suffix}": b"no database" * 1000, f"{OLD}{other}": mine, f"mine{suffix}": mine}
    named |= {f"{OLD[:-7]}nosuch{suffix}": mine, f"{OLD[:-7]}.._default{suffix}": mine}
    for name, content in named.items():
        (tmp_path / name).write_bytes(content)
        assert str(tmp_path / name) in refused(fresh.restore(tmp_path / name, "--force"))
    assert str(tmp_path / "nosuch") in refused(fresh.restore(tmp_path / f"nosuch/{OLD}{suffix}", "--force"))
    assert fresh.notes() == ["one"]


def test_a_backup_of_another_program_changes_nothing(fresh, postgresql_url, tmp_path):
    fresh.note("one")
    foreign = tmp_path / f"{OLD}{SUFFIXES[fresh.kind]}"
    if fresh.kind == SQLITE:
        with closing(sqlite3.connect(foreign)) as connection:
            connection.executescript("CREATE TABLE page (title)")
    else:
        subprocess.run(["pg_dump", "-Fc", "-f", foreign, f"{postgresql_url.rpartition('/')[0]}/postgres"], check=True)
    assert str(foreign) in refused(fresh.restore(foreign, "--force"))
    assert fresh.notes() == ["one"]


def test_the_database_of_another_user_is_restored_as_its_owner(fresh_host, postgresql_database, tmp_path):
    """Of extensions of the administrator's, neither is one dropped nor its comment written."""
    server, _, name = postgresql_database.rpartition("/")
    postgresql.run_in(postgresql_database, "CREATE EXTENSION citext")
    postgresql.run_in(postgresql_database, "COMMENT ON EXTENSION citext IS 'text'")
    postgresql.run_in(postgresql_database, "CREATE ROLE owner LOGIN PASSWORD 'it''s %'")
    try:
        postgresql.run_in(postgresql_database, f'ALTER DATABASE "{name}" OWNER TO owner')
        place = server.partition("@")[2]
        site = migrated(*fresh_host, f"postgresql://owner:it%27s%20%25@{place}/{name}", tmp_path)
        site.sql("CREATE TABLE word (text citext)")
        site.sql("INSERT INTO word VALUES ('one')")
        file = site.new_backup()
        site.sql("UPDATE word SET text = 'two'")
        done = site.restore(file, "--force")
        assert (done.stderr, done.returncode) == ("", 0)
        assert site.sql("SELECT text FROM word") == [("one",)]
    finally:
        postgresql.run_in(postgresql_database, f'REASSIGN OWNED BY owner TO "{postgresql.OWNER}"')
        postgresql.run_in(postgresql_database, "DROP OWNED BY owner CASCADE")
        postgresql.run_in(postgresql_database, "DROP ROLE owner")


def test_the_role_that_a_project_assumes_owns_what_is_restored(on_server, tmp_path):
    on_server.sql("CREATE ROLE keeper")
    try:
        on_server.sql("GRANT CREATE ON SCHEMA public TO keeper")
        on_server.sql("CREATE TABLE kept (id integer)")
        for (table,) in on_server.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
            on_server.sql(f"ALTER TABLE {table} OWNER TO keeper")
        (tmp_path / "below.py").write_text(ASSUMES)
        env = {"OVERLAID_SETTINGS": "below", "PYTHONPATH": f"{on_server.env['PYTHONPATH']}:{tmp_path}"}
        file = on_server.new_backup(**env)
        done = on_server.restore(file, "--force", **env)
        assert (done.stderr, done.returncode) == ("", 0)
        assert on_server.sql("SELECT tableowner FROM pg_tables WHERE tablename = 'kept'") == [("keeper",)]
    finally:
        on_server.sql("DROP OWNED BY keeper CASCADE")
        on_server.sql("DROP ROLE keeper")


def test_partitions_go_with_their_tables(on_server):
    """Each is dropped with its table, before its own turn comes."""
    on_server.sql('CREATE TABLE "Kept %" (id integer) PARTITION BY RANGE (id)')
    for number in range(70):
        values = f"FOR VALUES FROM ({number}) TO ({number + 1})"
        on_server.sql(f'CREATE TABLE kept_{number} PARTITION OF "Kept %" {values}')
    on_server.sql('INSERT INTO "Kept %" VALUES (3)')
    file = on_server.new_backup()
    on_server.sql('DELETE FROM "Kept %"')
    done = on_server.restore(file, "--force")
    assert (done.stderr, done.returncode) == ("", 0)
    assert on_server.sql("SELECT id FROM kept_3") == [(3,)]


def test_an_sqlite_file_that_another_program_keeps_is_not_waited_for_without_end(tmp_path):
    module = runpy.run_path(str(paths.DEPLOY / "production" / "one-host" / "backups.py"))
    copy_pages = module["copy_pages"]
    copy_pages.__globals__["PATIENCE_S"] = 0
    with closing(sqlite3.connect(tmp_path / "kept")) as other, closing(sqlite3.connect(tmp_path / "kept")) as target:
        other.executescript("CREATE TABLE page (title); BEGIN EXCLUSIVE")
        target.execute("PRAGMA busy_timeout = 0")
        with closing(sqlite3.connect(":memory:")) as source, pytest.raises(module["Failed"]):
            source.execute("CREATE TABLE page (title)")
            copy_pages(source, target)


def test_the_password_is_in_no_command_line(on_server, tmp_path):
    (tmp_path / "pg_dump").write_text(f'#!/bin/sh\necho "$*" > {tmp_path}/words\nexec /usr/bin/pg_dump "$@"\n')
    (tmp_path / "pg_dump").chmod(0o755)
    on_server.new_backup(PATH=f"{tmp_path}:{os.environ['PATH']}")
    password = on_server.database.partition("@")[0].rpartition(":")[2]
    assert password not in (tmp_path / "words").read_text()


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"BENCHAPP_DATABASE_URL": "postgresql://a:b@127.0.0.1:1/x"}, "refused"),
        ({"PATH": "/nonexistent"}, "postgresql-client"),
        ({"OVERLAID_SETTINGS": "nosuch"}, "nosuch"),
    ],
    ids=["down", "no pg_dump", "settings"],
)
def test_what_cannot_be_made_is_one_line_and_nothing_is_removed(on_server, env, message):
    file = on_server.new_backup()
    for words in (["backup", on_server.backups, "--keep", 1], ["restore", "--force", file]):
        line = refused(on_server.run(on_server.script, *words, **env))
        assert message in line and line.startswith(f"{words[0]}: ")
    assert on_server.files() == [file.name]


def test_of_a_missing_file_there_is_no_backup_and_a_restore_makes_it(in_file):
    in_file.note("one")
    file = in_file.new_backup()
    place = Path(in_file.database.removeprefix("sqlite:///"))
    place.unlink()
    assert str(place) in refused(in_file.backup())
    assert not place.exists()
    assert in_file.restore(file).returncode == 0
    assert in_file.notes() == ["one"]


def test_a_folder_that_cannot_be_written_is_named(in_file):
    in_file.backups = Path("/dev/null/b")
    assert "/dev/null/b" in refused(in_file.backup())


@pytest.mark.parametrize("keep", ["0", "-1", "x"])
def test_a_wrong_number_is_refused(in_file, keep):
    done = in_file.backup("--keep", keep)
    assert (done.returncode, in_file.files()) == (2, [])
    assert "Traceback" not in done.stderr


WRITES_AND_WAITS = """#!/bin/sh
for word; do case $word in --file=*) echo x > "${word#*=}"; esac; done
exec sleep 60
"""


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_of_a_backup_that_is_stopped_no_part_stays(on_server, tmp_path, sign):
    """A killed one cannot remove it: the next does."""
    site = on_server
    (tmp_path / "pg_dump").write_text(WRITES_AND_WAITS)
    (tmp_path / "pg_dump").chmod(0o755)
    argv = [sys.executable, site.script, "backup", site.backups]
    env = site.env | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(argv, cwd=site.folder, env=env, stderr=subprocess.PIPE, process_group=0) as begun:
        deadline = time.monotonic() + 60
        while not site.files() and time.monotonic() < deadline:
            time.sleep(0.05)
        (part,) = site.files()
        # Another one meanwhile is refused, and removes nothing of it.
        assert str(site.backups) in refused(site.backup())
        assert site.files() == [part]
        os.killpg(begun.pid, sign)
        stderr = begun.stderr.read().decode()
    if sign != signal.SIGKILL:
        assert (site.files(), stderr) == ([], "backup: stopped\n")
    assert site.new_backup().name in site.files()
    assert len(site.files()) == 1

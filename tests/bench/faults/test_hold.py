"""Locks and connections that another program holds, and lets go."""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import psycopg2
import pytest

from bench.faults import hold
from bench.machine.identity import worker
from bench.project import commands
from bench.verify.finding import NotTried
from tests import postgresql
from tests.waiting import until


def running(url: str, folder, service: str | None = "postgresql") -> SimpleNamespace:
    """A deployment on that database, which a service of its own runs unless it is None."""
    launcher = SimpleNamespace(identity=worker(folder), clean_env=commands.clean_environment(folder))
    services = SimpleNamespace(database=service)
    return SimpleNamespace(env={"DATABASE_URL": url}, chain=SimpleNamespace(launcher=launcher), services=services)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that the servers' user can reach; pytest's own is closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="benchapp-hold-", dir="/tmp"))
    worker(folder).give(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def sqlite_file(open_folder):
    path = open_folder / "site.sqlite3"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE words (word)")
    worker(open_folder).give_tree(open_folder)
    return path


def test_nobody_else_writes_while_the_lock_is_held(sqlite_file):
    with closing(sqlite3.connect(sqlite_file, timeout=0)) as connection:
        with hold.write_lock(running(f"sqlite:///{sqlite_file}", sqlite_file.parent)):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                connection.execute("BEGIN IMMEDIATE")
            assert connection.execute("SELECT count(*) FROM words").fetchone() == (0,)
        connection.execute("BEGIN IMMEDIATE")


@pytest.mark.parametrize(
    ("hold_it", "url", "why"),
    [
        (hold.write_lock, "sqlite:////nowhere/site.sqlite3", "the lock could not be held: .*unable to open"),
        (hold.write_lock, "postgresql://nowhere/x", "only SQLite has one lock"),
        (hold.connections, "sqlite:///x", "only a private database server has it: give --database postgresql"),
        # A server that others use, too.
        (hold.connections, "postgresql://nowhere/x", "only a private database server has it"),
    ],
)
def test_what_cannot_be_held_says_why(open_folder, hold_it, url, why):
    with pytest.raises(NotTried, match=why), hold_it(running(url, open_folder, None)):
        pass


@pytest.mark.servers
def test_every_connection_is_held_and_given_back(open_folder):
    binaries = postgresql.programs()
    if binaries is None:
        pytest.skip("programs not installed: initdb, postgres")
    with postgresql.cluster(binaries) as url:
        with closing(psycopg2.connect(url)) as before, hold.connections(running(url, open_folder)) as said:
            # PostgreSQL may have one left that ended a moment ago; it is taken, too, as soon as it is free.
            assert re.fullmatch(r"(39|40) connections are held", said)
            until(lambda: not _connects(url), "the last one is taken")
            with pytest.raises(psycopg2.OperationalError, match=r"too many clients|remaining connection slots"):
                psycopg2.connect(url)
            # Those that were there have ended.
            with pytest.raises(psycopg2.OperationalError):
                before.cursor().execute("SELECT 1")
        until(lambda: _connects(url), "a connection is free again")


def _connects(url: str) -> bool:
    try:
        psycopg2.connect(url).close()
    except psycopg2.OperationalError:
        return False
    return True

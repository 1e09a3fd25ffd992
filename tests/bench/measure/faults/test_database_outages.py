"""Locks and connections held and released by another program."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from urllib.parse import quote

import psycopg2
import pytest

from bench.measure.faults import database_outages
from bench.measure.faults.fault_context import FaultNotApplicable
from tests import postgresql
from tests.waiting import until


@pytest.fixture
def sqlite_file(tmp_path):
    path = tmp_path / "the site.sqlite3"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE words (word)")
    return path


def test_nobody_else_writes_while_the_lock_is_held(sqlite_file):
    with closing(sqlite3.connect(sqlite_file, timeout=0)) as connection:
        with database_outages.locked(f"sqlite:///{quote(str(sqlite_file))}"):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                connection.execute("BEGIN IMMEDIATE")
            assert connection.execute("SELECT count(*) FROM words").fetchone() == (0,)
        connection.execute("BEGIN IMMEDIATE")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("sqlite:////nowhere/site.sqlite3", "the write lock could not be held: unable to open"),
        ("postgresql://nowhere/x", "only SQLite has one lock"),
    ],
)
def test_a_lock_that_cannot_be_held_says_why(url, why):
    with pytest.raises(FaultNotApplicable, match=why), database_outages.locked(url):
        pass


@pytest.mark.servers
def test_every_connection_is_held_and_given_back():
    binaries = postgresql.programs()
    if binaries is None:
        pytest.skip("programs not installed: initdb, postgres")
    with postgresql.cluster(binaries) as url:
        with closing(psycopg2.connect(url)) as before, database_outages.all_connections(url) as count:
            assert count in (39, 40)
            with pytest.raises(psycopg2.OperationalError, match=r"too many clients|remaining connection slots"):
                psycopg2.connect(url)
            # Earlier connections have ended.
            with pytest.raises(psycopg2.OperationalError):
                before.cursor().execute("SELECT 1")
        until(lambda: _connects(url), "a connection is free again")


def _connects(url: str) -> bool:
    try:
        psycopg2.connect(url).close()
    except psycopg2.OperationalError:
        return False
    return True

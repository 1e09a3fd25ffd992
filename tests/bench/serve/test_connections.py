"""Counting the connections that a site holds to its database."""

from __future__ import annotations

import time
from types import SimpleNamespace

import psycopg2
import pytest

from bench.serve import connections
from bench.serve.connections import Connections

URL = "postgresql:///site"


@pytest.fixture
def database(monkeypatch):
    """A database that answers with these counts in turn, the last one for ever; an error is raised."""
    server = SimpleNamespace(counts=[0], opened=0, closed=0)

    class Cursor:
        def __enter__(self):
            return self

        def __exit__(self, *exc_info):
            pass

        def execute(self, statement, values):
            assert statement.count("%s") == len(values)

        def fetchone(self):
            count = server.counts.pop(0) if len(server.counts) > 1 else server.counts[0]
            if isinstance(count, Exception):
                raise count
            return (count,)

    def connect(url, **options):
        assert (url, options["application_name"]) == (URL, connections.NAME)
        server.opened += 1
        return SimpleNamespace(cursor=Cursor, close=lambda: setattr(server, "closed", server.closed + 1))

    monkeypatch.setattr(psycopg2, "connect", connect)
    monkeypatch.setattr(connections, "PAUSE_S", 0.001)
    return server


def test_only_postgresql_says_how_many_there_are():
    assert connections.of("sqlite:////var/site.sqlite3") is None
    assert connections.of("") is None
    assert isinstance(connections.of("postgres://me@db/site"), Connections)


def test_the_peak_is_the_highest_count_while_it_watched(database):
    database.counts = [2, 7, psycopg2.OperationalError("too many"), 3]
    with Connections(URL) as counter:
        counter.watch(interval_s=0.001)
        deadline = time.monotonic() + 10
        while database.opened < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert counter.peak() == 7
    assert (database.opened, database.closed) == (2, 2), "a broken connection is opened again, and none is left"


def test_a_database_that_does_not_answer_has_no_peak(database):
    database.counts = [psycopg2.OperationalError("gone")]
    with Connections(URL) as counter:
        counter.watch()
        assert counter.peak() is None


def test_what_is_left_is_counted_late_and_at_once_when_nothing_is(database):
    database.counts = [5, 3, 0, 9]
    with Connections(URL) as counter:
        assert counter.left(since=time.monotonic()) == 0
        assert counter.left(since=time.monotonic() - connections.LEFT_S) == 9


def test_the_limit_is_what_the_database_says(database):
    database.counts = [97]
    with Connections(URL) as counter:
        assert counter.limit() == 97

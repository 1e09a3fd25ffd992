"""Counting the connections that a site holds to its database."""

from __future__ import annotations

import time
from contextlib import closing

import psycopg2

from bench.serve.deployment import connections
from bench.serve.deployment.connections import Connections
from tests import postgresql
from tests.waiting import until


def test_only_postgresql_says_how_many_there_are():
    assert connections.connection_counter("sqlite:////var/site.sqlite3") is None
    assert connections.connection_counter("") is None
    assert isinstance(connections.connection_counter("postgres://me@db/site"), Connections)


def test_the_peak_is_counted_and_what_is_left_late_or_at_once_when_nothing_is(postgresql_database):
    with Connections(postgresql_database) as counter:
        counter.watch(interval_s=0.001)
        with closing(psycopg2.connect(postgresql_database)), closing(psycopg2.connect(postgresql_database)):
            until(lambda: counter._peak == 2, "both are counted")
        assert counter.peak() == 2
        assert counter.left(since=time.monotonic()) == 0
        with closing(psycopg2.connect(postgresql_database)):
            assert counter.left(since=time.monotonic() - connections.LEFT_S) == 1
        # Of all connections of the cluster some are for its owner only.
        assert counter.limit() in (37, 40)


def test_a_connection_that_broke_is_opened_again(postgresql_database):
    with Connections(postgresql_database) as counter:
        assert counter.count() == 0
        ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{connections.NAME}'"
        postgresql.run_in(postgresql_database, ended)
        assert [counter.count() for _ in range(2)] == [None, 0]


def test_a_database_that_does_not_respond_has_no_peak():
    with Connections("postgresql://127.0.0.1:1/site") as counter:
        counter.watch()
        assert counter.peak() is None

"""Run ./manage.py loadfixtures, and look at what is in the database then."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from benchapp.management import databases
from fixtures import load
from fixtures.generator import Rows
from fixtures.stream import PROJECT, Stream


def load_rows(rows: int = 1000, **options: object) -> str:
    """Run the command in this process; returns what it says."""
    output = StringIO()
    call_command("loadfixtures", rows=rows, stdout=output, **options)
    return output.getvalue()


def start(url: str, *arguments: str, **options: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "manage.py", "loadfixtures", *arguments],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": url, "PYTHONUNBUFFERED": "1"},
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options,
    )


def stored_checksum() -> str:
    """Computed from what the database holds, in a connection of its own."""
    connection.close()
    connection.ensure_connection()
    with closing(connection.connection.cursor()) as cursor:
        return load.checksum(cursor, connection.vendor)


@cache
def expected_checksum(rows: int, seed: int = 1) -> str:
    with Stream(Rows(seed, rows)) as stream:
        for _ in stream:
            pass
    return stream.checksum


def structure() -> list[tuple]:
    """Every table, index, constraint and trigger."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2")
            return cursor.fetchall()
        cursor.execute(
            "SELECT 'constraint', conname, conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace"
            " UNION ALL SELECT 'index', indexname, tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'"
            " UNION ALL SELECT 'trigger', tgname, tgrelid::regclass::text, tgenabled::text || pg_get_triggerdef(oid)"
            " FROM pg_trigger WHERE NOT tgisinternal"
            " UNION ALL SELECT 'identity', attname, attrelid::regclass::text, attidentity::text FROM pg_attribute"
            " WHERE attidentity <> '' ORDER BY 1, 2, 3"
        )
        return cursor.fetchall()


def assert_refused(message: str, **options: object) -> None:
    with pytest.raises(CommandError) as caught:
        load_rows(**options)
    assert str(caught.value) == f"{databases.name()}: {message}"


@contextmanager
def another_connection(url: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("SELECT count(*) FROM benchapp_author").fetchone()
        yield other

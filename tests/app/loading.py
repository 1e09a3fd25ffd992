"""Run ./manage.py loadfixtures, and look at what is in the database then."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from io import StringIO

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from fixtures.rows import TABLES, Rows


def load_rows(rows: int = 1000, **options: object) -> str:
    """Run the command in this process; returns what it says."""
    output = StringIO()
    call_command("loadfixtures", rows=rows, stdout=output, **options)
    return output.getvalue()


def start(url: str, *arguments: str) -> subprocess.Popen:
    """The command in a separate process."""
    return subprocess.Popen(
        [sys.executable, "manage.py", "loadfixtures", *arguments],
        cwd=settings.BASE_DIR,
        env=os.environ | {"DATABASE_URL": url, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@cache
def generated(rows: int, seed: int = 1) -> dict[str, list[tuple[str, ...]]]:
    """The values of every row, as their generator makes them, by table."""
    by_table: dict[str, list[tuple[str, ...]]] = {table: [] for table in TABLES}
    for frame in Rows(seed, rows).frames():
        by_table[frame.table] += zip(*frame.columns, strict=True)
    return by_table


def stored() -> dict[str, list[tuple[str, ...]]]:
    """The same of the rows in the database, read by a separate connection."""
    connection.close()
    by_table = {}
    with connection.cursor() as cursor:
        for table, columns in TABLES.items():
            cursor.execute(f"SELECT {', '.join(columns)} FROM benchapp_{table} ORDER BY id")
            by_table[table] = [tuple(str(value).removesuffix("+00:00") for value in row) for row in cursor.fetchall()]
    return by_table


def structure() -> list[tuple]:
    """Every table, index, constraint and trigger."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%' ORDER BY 1, 2"
            )
            return cursor.fetchall()
        cursor.execute(
            "SELECT 'constraint', conname, conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace"
            " UNION ALL SELECT 'index', indexname, tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'"
            " UNION ALL SELECT 'trigger', tgname, tgrelid::regclass::text, tgenabled::text || pg_get_triggerdef(oid)"
            " FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2, 3"
        )
        return cursor.fetchall()

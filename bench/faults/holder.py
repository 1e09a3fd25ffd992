"""Hold something of the site's database as another program would, until standard input ends.

A program of its own, run as the servers' user: `python -m bench.faults.holder lock|connections`, with DATABASE_URL.
It prints one line when it holds.
"""

from __future__ import annotations

import os
import select
import sqlite3
import sys
import time
from typing import Any
from urllib.parse import unquote, urlsplit

# Enough for any limit of connections; far fewer than a process may have open files.
MAX_CONNECTIONS = 500
POLL_S = 0.05
NAME = "holder"
END_OTHERS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name <> %s AND datname = current_database() AND backend_type = 'client backend'"
)


def lock(url: str) -> None:
    """Hold SQLite's write lock."""
    connection = sqlite3.connect(unquote(urlsplit(url).path), timeout=10, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    _say("the write lock is held")
    sys.stdin.read()


def connections(url: str) -> None:
    """Hold every connection that PostgreSQL allows; those of others end, and each that becomes free is taken."""
    import psycopg2  # type: ignore[import-untyped]

    def opened() -> list[Any]:
        """One connection more, none when there is none to have."""
        try:
            return [psycopg2.connect(url, connect_timeout=2, application_name=NAME)]
        except psycopg2.OperationalError:
            return []

    held = [psycopg2.connect(url, connect_timeout=2, application_name=NAME)]
    held[0].autocommit = True
    said = False
    while not select.select([sys.stdin], [], [], 0)[0]:
        if len(held) < MAX_CONNECTIONS and (more := opened()):
            held += more
            continue
        with held[0].cursor() as cursor:
            # Others may have been faster for one that had just ended.
            cursor.execute(END_OTHERS, [NAME])
            if cursor.fetchone() != (0,):
                continue
        if not said:
            _say(f"{len(held)} connections are held")
            said = True
        time.sleep(POLL_S)


def _say(what: str) -> None:
    print(what, flush=True)


if __name__ == "__main__":
    {"lock": lock, "connections": connections}[sys.argv[1]](os.environ["DATABASE_URL"])

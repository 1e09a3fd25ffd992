"""The connections that a site holds to its PostgreSQL database, counted from outside, without any code of the site."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import psutil

from bench.serve.project.opened import UnderTest
from bench.serve.project.venv_overlay import servers_module

# Seconds between two counts while a load is made.
INTERVAL_S = 0.1
# When closing connections are gone.
LEFT_S = 5.0
PAUSE_S = 0.25
CONNECT_TIMEOUT_S = 2
NAME = "bench-count"
COUNT = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND backend_type = 'client backend' AND application_name <> %s AND backend_start >= to_timestamp(%s)"
)
LIMIT = "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"


class Connections:
    """Counts the client connections to a database over a connection that does not count.

    As a context manager the object ends a count under way, and closes its connection.

    since  connections from before this time, in seconds since 1970, do not count
    """

    def __init__(self, url: str, since: float = 0.0) -> None:
        self._url, self._since = url, since
        self._own: Any = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._peak: int | None = None

    def count(self) -> int | None:
        """The number of connections now; None if the database does not respond."""
        return self._query(COUNT, NAME, self._since)

    def limit(self) -> int | None:
        """The number of connections allowed for all programs together; None if the database does not respond."""
        return self._query(LIMIT)

    def _query(self, question: str, *values: str | float) -> int | None:
        psycopg2 = servers_module("psycopg2")
        try:
            if self._own is None:
                self._own = psycopg2.connect(self._url, connect_timeout=CONNECT_TIMEOUT_S, application_name=NAME)
                self._own.autocommit = True
            with self._own.cursor() as cursor:
                cursor.execute(question, values)
                return int(cursor.fetchone()[0])
        except psycopg2.Error:
            self.close()
            return None

    def __enter__(self) -> Connections:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.peak()
        self.close()

    def close(self) -> None:
        """Close the counting connection."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def watch(self, interval_s: float = INTERVAL_S) -> None:
        """Begin to count again and again."""
        self._stop.clear()
        self._peak = None
        self._thread = threading.Thread(target=self._watch, args=(interval_s,), name="database connections")
        self._thread.start()

    def peak(self) -> int | None:
        """End the count; returns the highest number, None without any."""
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None
        return self._peak

    def left(self, since: float) -> int | None:
        """The number left LEFT_S after the moment `since` of the monotonic clock; at once if none is left."""
        while (count := self.count()) != 0 and time.monotonic() < since + LEFT_S:
            time.sleep(PAUSE_S)
        return count

    def _watch(self, interval_s: float) -> None:
        while True:
            if (count := self.count()) is not None:
                self._peak = max(count, self._peak or 0)
            if self._stop.wait(interval_s):
                return


def of_site(project: UnderTest, env: Mapping[str, str], pids: Iterable[int]) -> Connections | None:
    """Return a counter of the database connections of a site with this environment and these processes.

    If the environment names no database, the settings of a project do; that database may have other clients, and older
    connections than the site's do not count.
    """
    if url := env.get("DATABASE_URL"):
        return connection_counter(url)
    return connection_counter(project.facts.postgresql, min(map(_begun, pids), default=0.0))


def _begun(pid: int) -> float:
    """The start of a process, in seconds since 1970; 0 for an ended one."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return 0.0


def connection_counter(url: str, since: float = 0.0) -> Connections | None:
    """Return a counter of connections to the database of a URL; None for an unknown database or without the driver."""
    if urlsplit(url).scheme.partition("+")[0] not in ("postgres", "postgresql"):
        return None
    with contextlib.suppress(ImportError):
        servers_module("psycopg2")
        return Connections(url, since)
    return None

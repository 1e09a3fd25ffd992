"""The site's database dies or hangs, or another program holds it for a while."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

from bench.measure.faults.fault import ANY, NO_OWN_DATABASE, NO_WRITE_LOCK, fault
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable
from bench.measure.faults.fault_threads import in_threads
from bench.serve.machine.http import BadResponse
from bench.serve.project.venv_overlay import servers_module
from bench.verify import wire
from bench.verify.mismatch import NEEDS_ROWS
from bench.verify.rows import ROWS
from bench.verify.visitor import Visitor

# Duration of the outage: longer than any wait of the site for its database, and shorter than a visitor's patience.
AWAY_S = 5.0
# Time for a page to report the missing database: nothing keeps the page waiting. During a hang no wait may be longer
# than this; the site's own limit is 2 s, and a machine may be busy.
GONE_LIMIT_S, HUNG_LIMIT_S, HEALTH_LIMIT_S = 1.0, 8.0, 4.0
# Each thread of the application server has its wait by then.
SETTLED_S = 0.5
TIMEOUT_S, POLL_S = 10, 0.05
# Enough for any limit of connections; far fewer than a process may have open files.
MAX_CONNECTIONS = 500
NAME = "holder"
END_OTHERS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name <> %s AND datname = current_database() AND backend_type = 'client backend'"
)


@fault("database", "killed", ANY, NO_OWN_DATABASE)
def database_dies(scene: FaultContext) -> Generator[None]:
    """The database is killed, and is back after 5 s."""
    name = scene.running.case.database.service
    yield
    with scene.cause():
        scene.kill(name)
        # Other projects may do anything without a database.
        if scene.site.description.strict:
            _expect_page(scene, GONE_LIMIT_S)
            _expect_health(scene)
        # The host starts the database again: the supervisor would do so after a second.
        time.sleep(max(0.0, scene.moments.struck + AWAY_S - time.monotonic()))
        scene.wait_started(name)
        scene.running.services.wait_serving(name)


@fault("database-hangs", "hung", ANY, NO_OWN_DATABASE)
def database_hangs(scene: FaultContext) -> Generator[None]:
    """The database hangs for 5 s: pages fail, the health page does not."""
    yield
    with scene.cause(), scene.running.hung(scene.running.case.database.service), _watched(scene):
        if scene.site.description.strict:
            _expect_page(scene, HUNG_LIMIT_S)


@fault("database-connections", "hung", ANY, NO_OWN_DATABASE)
def database_connections(scene: FaultContext) -> Generator[None]:
    """Another program ends the site's connections to the database, and holds all possible ones for 5 s."""
    yield
    # Requests fail from the first connection that ends, before all are held.
    with scene.cause(), all_connections(scene.running.env["DATABASE_URL"]), _watched(scene):
        pass


@fault("write-lock", "hung", misfit=NO_WRITE_LOCK)
def write_lock(scene: FaultContext) -> Generator[None]:
    """Another program holds SQLite's write lock for 5 s, and one visitor a thread writes."""
    url = scene.running.env["DATABASE_URL"]
    if not scene.site.has_rows:
        raise FaultNotApplicable(NEEDS_ROWS)
    visitor = Visitor(scene.target)
    token = visitor.token(scene.site.url("login")) or ""
    yield
    writers = _writers(scene, {**visitor.cookie_header(), "X-CSRFToken": token})
    with scene.cause(), locked(url), writers, _watched(scene):
        pass
    yield
    scene.site.remove_probes()


@contextmanager
def _watched(scene: FaultContext) -> Iterator[None]:
    """Spend 5 s around the block; the health page must respond meanwhile."""
    begun = time.monotonic()
    scene.wait(SETTLED_S)
    _expect_health(scene)
    yield
    scene.wait(begun + AWAY_S - time.monotonic())


def _writers(scene: FaultContext, headers: dict[str, str]) -> AbstractContextManager[object]:
    """Visitors who write, again and again until the block ends, one for each thread of the application server."""

    def write(over: threading.Event) -> None:
        while not over.is_set():
            try:
                wire.fetch(scene.target, ROWS, headers, method="POST", body=b"")
            except (BadResponse, OSError):
                over.wait(SETTLED_S)

    return in_threads([write] * scene.running.case.threads)


def _expect_page(scene: FaultContext, limit_s: float) -> None:
    """Expect a page that no layer caches to send Retry-After within so many seconds."""
    path, headers = scene.site.url("section", "home"), {"Cookie": f"{scene.site.session_cookie}=nobody"}
    scene.expect(path, "503 with Retry-After", limit_s, "page_without_database_s", headers)


def _expect_health(scene: FaultContext) -> None:
    scene.expect(scene.site.url("health"), "200", HEALTH_LIMIT_S, "health_page_s")


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Hold the write lock of SQLite until the block ends; raises FaultNotApplicable on another database."""
    if not url.startswith("sqlite"):
        raise FaultNotApplicable("only SQLite has one lock for all writers")
    try:
        file = f"file:/{urlsplit(url).path.lstrip('/')}?mode=rw"
        connection = sqlite3.connect(file, timeout=TIMEOUT_S, isolation_level=None, uri=True)
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        raise FaultNotApplicable(f"the write lock could not be held: {error}") from None
    with closing(connection):
        yield


@contextmanager
def all_connections(url: str) -> Iterator[int]:
    """Hold every connection allowed by PostgreSQL until the block ends, and yield their number; other connections are
    ended."""
    psycopg2 = servers_module("psycopg2")

    def opened() -> Any:
        return held.enter_context(closing(psycopg2.connect(url, connect_timeout=2, application_name=NAME)))

    with ExitStack() as held:
        first, count, others, deadline = opened(), 1, 1, time.monotonic() + TIMEOUT_S
        first.autocommit = True
        # Others may be faster at taking an ended connection: repeat until none is left after they had none.
        while True:
            try:
                while count < MAX_CONNECTIONS:
                    opened()
                    count += 1
            except psycopg2.OperationalError:
                pass
            if not others:
                break
            with first.cursor() as cursor:
                cursor.execute(END_OTHERS, [NAME])
                (others,) = cursor.fetchone()
            if time.monotonic() > deadline:
                raise FaultNotApplicable(f"the site still has {others} connections after {TIMEOUT_S} s")
            time.sleep(POLL_S)
        yield count


FAULTS = (database_dies, database_hangs, database_connections, write_lock)

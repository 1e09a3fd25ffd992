"""Commands of a process that uses the site's database as a server does: `python -m tests.app.database_client NAME`.

Each prints one line of JSON. The environment chooses the database, and with PYTHONPATH the driver.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

COMMANDS: dict[str, Callable[[], dict[str, Any]]] = {}


def command(function: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    COMMANDS[function.__name__] = function
    return function


def tried(sql: str = "SELECT 1") -> dict[str, Any]:
    """Run a statement; returns its value or the kind of its error, and the seconds that it took."""
    from django.db import Error, connection

    begun = time.monotonic()
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            result: Any = cursor.fetchone()[0]
    except Error as error:
        result = type(error).__name__
    return {"value": result, "seconds": time.monotonic() - begun}


@command
def parameters() -> dict[str, Any]:
    """The parameters of the connection, and its driver."""
    from django.db import connection

    names = ("statement_timeout", "work_mem")
    return {"driver": connection.Database.__name__} | {name: tried(f"SHOW {name}")["value"] for name in names}


@command
def slow() -> dict[str, Any]:
    """A statement of two seconds in a thread, and after it one on another connection."""
    slow_result = {}
    thread = threading.Thread(target=lambda: slow_result.update(tried("SELECT 'slept' FROM pg_sleep(2)")))
    thread.start()
    thread.join()
    return {"slow": slow_result, "other": tried()}


@contextmanager
def stopped_server() -> Iterator[None]:
    """Stop the processes of the server until the block ends; the connection stays, as between two requests."""
    import psutil

    server = psutil.Process(tried("SELECT pg_backend_pid()")["value"]).parent()
    processes = [server, *server.children()]
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


@command
def hung_between_requests() -> dict[str, Any]:
    """Requests of two threads, one after the other, while the server is stopped; both have a connection from before."""
    from django.db import close_old_connections

    connected, turn, results = threading.Event(), threading.Event(), {}

    def other() -> None:
        tried()
        connected.set()
        turn.wait()
        close_old_connections()
        results["other"] = tried()

    thread = threading.Thread(target=other)
    thread.start()
    connected.wait()
    with stopped_server():
        # A request begins with this.
        close_old_connections()
        results["first"] = tried()
        turn.set()
        thread.join()
    return results


@command
def hung() -> dict[str, Any]:
    """Statements while the server is stopped, and after it goes on."""
    from django.db import connection

    with stopped_server():
        established = tried()
        connection.close()
        connecting = tried()
        connection.close()
        refused = tried()
    deadline = time.monotonic() + 20
    while (after := tried())["value"] != 1 and time.monotonic() < deadline:
        connection.close()
        time.sleep(0.1)
    return {"established": established, "connecting": connecting, "refused": refused, "after": after}


@command
def responding() -> dict[str, Any]:
    """Statements that fail while the server responds: for a lock, a closed connection and one that is being closed.

    After each one, what another connection finds, and what the next request does.
    """
    from django.db import close_old_connections, connection

    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7)")
    results: dict[str, Any] = {}
    kill = "SELECT pg_terminate_backend({})"
    for name, sql in (
        ("lock", "SELECT pg_advisory_lock(7)"),
        ("killed", kill.format("pg_backend_pid()")),
        ("killed before", ""),
    ):
        if not sql:
            pid = tried("SELECT pg_backend_pid()")["value"]
            with other.cursor() as cursor:
                cursor.execute(kill.format(pid))
            sql = "SELECT 1"
        failed = tried(sql)["value"]
        with other.cursor() as cursor:
            cursor.execute("SELECT 1")
            seen = cursor.fetchone()[0]
        close_old_connections()
        results[name] = [failed, seen, tried()["value"]]
    other.close()
    return results


@command
def greenlets() -> dict[str, Any]:
    """A greenlet of gunicorn's gevent worker, which has patched Python before, waits for a lock of another one."""
    from gevent import spawn

    held = tried("SELECT 'held' FROM pg_advisory_lock(7)")["value"]
    waits = spawn(tried, "SELECT 'had' FROM pg_advisory_lock(7)")
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while not waits.ready() and tried(waiting)["value"] != 1:
        pass
    freed = tried("SELECT pg_advisory_unlock(7)")["value"]
    waits.join()
    return {"held": held, "freed": freed, "had": waits.value["value"]}


@command
def pool() -> dict[str, Any]:
    """Three statements at once, and twice: how many connections the pool has then, and how many it made."""
    from django.db import connection

    def use() -> None:
        values.append(tried("SELECT 'slept' FROM pg_sleep(0.2)")["value"])
        connection.close()

    values: list[Any] = []
    for _ in range(2):
        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    connection_count = connection.pool.get_stats()["connections_num"]
    connection.close_pool()
    return {"values": values, "connections": connection_count}


def main(name: str) -> None:
    if name == "greenlets":
        from gevent import monkey

        monkey.patch_all()
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    print(json.dumps(COMMANDS[name]()))


if __name__ == "__main__":
    main(sys.argv[1])

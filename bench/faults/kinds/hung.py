"""A process, or the database, takes requests and answers none; after some seconds it goes on."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager

from bench.faults import hold
from bench.faults.fault import Expected, fault, has_no_service, is_alone
from bench.faults.scene import CannotFault, Scene
from bench.machine import http
from bench.verify.browser import Browser
from bench.verify.finding import NEEDS_ROWS, NotTried
from bench.verify.wire import BadAnswer, Connection, Target

# A server; and the database: longer than any wait of the site for it. Both shorter than a visitor's patience.
SERVER_HANGS_S, HANGS_S = 3.0, 5.0
# No wait for the database may hold up the health page for longer.
HEALTH_LIMIT_S = 4.0
# Each thread of the application server has its wait by then.
SETTLED_S = 0.5
ROWS = "/__probe__/rows/"


@fault("application-server-hangs", group="hung", expected=Expected(lost=None))
def application_server_hangs(scene: Scene) -> Generator[None]:
    """The application server with all its workers answers nothing for 3 s."""
    yield
    _hang(scene, scene.running.case.servers[0].name)


@fault("front-server-hangs", group="hung", expected=Expected(lost=None), misfit=is_alone)
def front_server_hangs(scene: Scene) -> Generator[None]:
    """The server that clients speak to answers nothing for 3 s."""
    yield
    _hang(scene, scene.running.case.servers[-1].name)


@fault("caching-service-hangs", group="hung", misfit=has_no_service)
def caching_service_hangs(scene: Scene) -> Generator[None]:
    """The caching service answers nothing for 3 s: the site serves without it."""
    yield
    _hang(scene, scene.running.case.services[0].name)


@fault("database-hangs", group="hung", expected=Expected(lost=None))
def database_hangs(scene: Scene) -> Generator[None]:
    """The database answers nothing for 5 s: pages fail, the health page does not."""
    name = scene.running.services.database
    if name is None:
        raise CannotFault("it needs a database of its own to hang: give --database postgresql")
    yield
    scene.strike()
    with scene.running.hung(name):
        _held(scene)
    scene.end()


@fault("database-connections", group="hung", expected=Expected(lost=None))
def database_connections(scene: Scene) -> Generator[None]:
    """Another program ends the site's connections to the database, and holds all that there are for 5 s."""
    if not hold.has_limit(scene.running):
        raise CannotFault(hold.NO_LIMIT)
    yield
    # Requests fail from the first connection that ends, before all are held.
    scene.strike()
    with _can(hold.connections(scene.running)):
        _held(scene)
    scene.end()


@fault("write-lock", group="hung")
def write_lock(scene: Scene) -> Generator[None]:
    """Another program holds SQLite's write lock for 5 s, and as many visitors write as there are threads."""
    if not scene.site.has_rows:
        raise CannotFault(NEEDS_ROWS)
    with _can(hold.write_lock(scene.running)):
        pass
    visitor = Browser(Target.parse(scene.running.url))
    token = visitor.token(scene.site.url("login")) or ""
    yield
    with _can(hold.write_lock(scene.running)), _writers(scene, {**visitor.cookie_header(), "X-CSRFToken": token}):
        scene.strike()
        _held(scene)
    scene.end()
    yield
    scene.site.remove_probes()


def _hang(scene: Scene, name: str) -> None:
    """Have all instances of a server, or a service, hang."""
    scene.strike()
    names = [process.name for process in scene.running.processes if re.sub(r"-\d+$", "", process.name) == name]
    with _all_hung(scene, names or [name]):
        scene.wait(SERVER_HANGS_S)
    scene.end()


@contextmanager
def _all_hung(scene: Scene, names: list[str]) -> Iterator[None]:
    if not names:
        yield
        return
    with scene.running.hung(names[0]), _all_hung(scene, names[1:]):
        yield


@contextmanager
def _can(held: AbstractContextManager[str]) -> Iterator[None]:
    """Something held while the block lasts. Raises CannotFault where it cannot be."""
    try:
        with held:
            yield
    except NotTried as error:
        raise CannotFault(error.reason) from None


def _held(scene: Scene) -> None:
    """Let 5 s pass; the health page must be answered meanwhile."""
    begun, health = time.monotonic(), scene.site.url("health")
    scene.wait(SETTLED_S)
    asked = time.monotonic()
    status = http.status(scene.running.url, health, HANGS_S + HEALTH_LIMIT_S)
    took_s = time.monotonic() - asked
    scene.figures["health_page_s"] = round(took_s, 3)
    if status != 200 or took_s > HEALTH_LIMIT_S:
        scene.wrong.append(f"GET {health} meanwhile: {status or 'no answer'} after {took_s:.1f} s")
    scene.wait(begun + HANGS_S - time.monotonic())


@contextmanager
def _writers(scene: Scene, headers: dict[str, str]) -> Iterator[None]:
    """Visitors who write, again and again until the block ends, one for each thread of the application server."""
    target, over = Target.parse(scene.running.url), threading.Event()

    def write() -> None:
        while not over.is_set():
            try:
                with Connection(target) as connection:
                    connection.exchange("POST", ROWS, headers, b"")
            except (BadAnswer, OSError):
                over.wait(SETTLED_S)

    threads = [threading.Thread(target=write, daemon=True) for _ in range(scene.running.case.threads)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()

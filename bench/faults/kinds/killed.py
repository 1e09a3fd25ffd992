"""A process dies by SIGKILL and is started again as the units do: a second later, with the rest of it killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Generator

from bench.errors import BenchError
from bench.faults.fault import Expected, fault, has_no_service, is_alone
from bench.faults.scene import CannotFault, Scene
from bench.machine import http

# Says which process answers.
INSIDE = "/__probe__/inside"
# How long the database is gone.
DATABASE_S = 5.0
# How long what died may take until it runs again; a database recovers first.
BACK_S = 15.0


@fault("worker", group="killed", expected=Expected(lost=1))
def worker(scene: Scene) -> Generator[None]:
    """One worker process of the application server is killed; its master replaces it."""
    if _worker(scene) in scene.running.pids.values():
        raise CannotFault("the application server has no worker processes under a master")
    yield
    pid = _worker(scene)
    scene.strike()
    os.kill(pid, signal.SIGKILL)


def _worker(scene: Scene) -> int:
    """The process that answers now. Raises VisitError when none does."""
    return int(json.loads(http.get(scene.running.url, INSIDE))["process_id"])


@fault("application-server", group="killed", expected=Expected(lost=None))
def application_server(scene: Scene) -> Generator[None]:
    """The main process of the application server is killed, or of one of its instances."""
    yield
    _kill(scene, scene.running.case.servers[0].name)


@fault("front-server", group="killed", expected=Expected(lost=None), misfit=is_alone)
def front_server(scene: Scene) -> Generator[None]:
    """The main process of the server that clients speak to is killed."""
    yield
    _kill(scene, scene.running.case.servers[-1].name)


@fault("caching-service", group="killed", misfit=has_no_service)
def caching_service(scene: Scene) -> Generator[None]:
    """The caching service is killed: the site serves without it, and with it when it is back."""
    yield
    _kill(scene, scene.running.case.services[0].name)


@fault("database", group="killed", expected=Expected(lost=None))
def database(scene: Scene) -> Generator[None]:
    """The database is killed, and is back after 5 s."""
    name = scene.running.services.database
    if name is None:
        raise CannotFault("it needs a database of its own to kill: give --database postgresql")
    yield
    scene.strike()
    scene.kill(name)
    # Its host starts it again: not the supervisor, which would after a second.
    time.sleep(DATABASE_S)
    _wait_started(scene, name)
    scene.running.services.wait_serving(name)
    scene.end()


def _kill(scene: Scene, name: str) -> None:
    scene.strike()
    scene.kill(name)
    _wait_started(scene, name)


def _wait_started(scene: Scene, name: str) -> None:
    """Wait until what died was started again. Raises BenchError when it was not."""
    if not scene.wait(BACK_S, lambda: any(death.name == name and death.again_s for death in scene.deaths)):
        raise BenchError(f"{name} was not started again within {BACK_S:g} s")
    scene.servers[name] = "started again"

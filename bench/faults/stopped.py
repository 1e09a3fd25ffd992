"""A process is killed or hangs.

What is killed dies by SIGKILL, and is started again as the units do: a second later, with the rest of it killed. What
hangs takes requests and answers none; after some seconds it goes on.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Generator
from contextlib import ExitStack

from bench.faults.fault import (
    ANY,
    Expected,
    Fault,
    Misfit,
    Run,
    fault,
    fits,
    has_no_service,
    is_alone,
)
from bench.faults.scene import CannotFault, Scene, Which, application, front, service
from bench.machine import http

# Says which process answers.
INSIDE = "/__probe__/inside"
# Shorter than a visitor's patience.
HANGS_S = 3.0


@fault("worker", "killed", Expected(lost=1))
def worker(scene: Scene) -> Generator[None]:
    """One worker process of the application server is killed; its master replaces it."""

    def answering() -> int:
        return int(json.loads(http.get(scene.running.url, INSIDE))["process_id"])

    if answering() in scene.running.pids.values():
        raise CannotFault("the application server has no worker processes under a master")
    yield
    killed = answering()
    with scene.cause():
        os.kill(killed, signal.SIGKILL)


def kill(which: Which) -> Run:
    """Kill the main process of a server or service, and wait until the supervisor has started it again."""

    def run(scene: Scene) -> Generator[None]:
        yield
        name = which(scene.running.case)
        with scene.cause():
            scene.kill(name)
        scene.wait_started(name)

    return run


def hang(which: Which) -> Run:
    """Have all instances of a server, or a service, hang."""

    def run(scene: Scene) -> Generator[None]:
        yield
        name = which(scene.running.case)
        names = [process.name for process in scene.running.processes if re.sub(r"-\d+$", "", process.name) == name]
        with scene.cause(), ExitStack() as hanging:
            for instance in names:
                hanging.enter_context(scene.running.hung(instance))
            scene.wait(HANGS_S)

    return run


def _killed_or_hung(name: str, what: str, which: Which, expected: Expected, misfit: Misfit) -> tuple[Fault, Fault]:
    killed, hangs = f"The main process of {what} is killed.", f"All processes of {what} answer nothing for 3 s."
    return (
        Fault(name, "killed", killed, kill(which), expected, misfit),
        Fault(f"{name}-hangs", "hung", hangs, hang(which), expected, misfit),
    )


KILLED, HUNG = zip(
    _killed_or_hung("application-server", "the application server", application, ANY, fits),
    _killed_or_hung("front-server", "the server that clients speak to", front, ANY, is_alone),
    _killed_or_hung("caching-service", "the caching service", service, Expected(), has_no_service),
    strict=True,
)
FAULTS = (worker, *KILLED, *HUNG)

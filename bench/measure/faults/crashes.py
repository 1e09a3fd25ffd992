"""A process is killed or hangs.

A killed process dies by SIGKILL and is restarted like its unit: a second later, after the rest of its group was killed.
A hanging process accepts requests without responding; after some seconds it goes on.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator

from bench.measure.faults.fault import ANY, NO_FRONT, NONE, Expected, Fault, Misfit, fault
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable, Which, application, front, instances
from bench.serve.machine import http
from bench.verify.site import INSIDE

# Shorter than a visitor's patience.
HANGS_S = 3.0


@fault("worker", "killed", Expected(lost=1))
def worker(scene: FaultContext) -> Generator[None]:
    """One worker process of the application server is killed; its master replaces it."""

    def responding_process() -> int:
        return int(json.loads(http.get(scene.running.url, INSIDE))["process_id"])

    if responding_process() in scene.running.pids.values():
        raise FaultNotApplicable("the application server has no worker processes under a master")
    yield
    killed = responding_process()
    with scene.cause():
        os.kill(killed, signal.SIGKILL)


def _stopped(name: str, what: str, which: Which, expected: Expected = ANY, misfit: Misfit = NONE) -> tuple[Fault, ...]:
    """Two faults of a server or service: its main process is killed, and all of its processes hang."""

    def killed(scene: FaultContext) -> Generator[None]:
        yield
        process = which(scene.running.case)
        with scene.cause():
            scene.kill(process)
        scene.wait_started(process)

    def hangs(scene: FaultContext) -> Generator[None]:
        yield
        processes = [process.name for process in scene.running.processes]
        with scene.cause(), scene.hung(instances(which(scene.running.case), processes)):
            scene.wait(HANGS_S)

    return (
        Fault(name, "killed", f"The main process of {what} is killed.", killed, expected, misfit),
        Fault(f"{name}-hangs", "hung", f"All processes of {what} hang for 3 s.", hangs, expected, misfit),
    )


FAULTS = (
    worker,
    *_stopped("application-server", "the application server", application),
    *_stopped("front-server", "the server that clients speak to", front, misfit=NO_FRONT),
)

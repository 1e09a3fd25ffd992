"""Restart ended programs, as the units of a production host do (server.service.j2)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.errors import DeploymentError
from bench.serve.deployment.deployment import Running
from bench.serve.machine import supervise
from bench.serve.machine.supervise import Process

# RestartSec= of the units.
RESTART_S = 1.0
POLL_S = 0.05


@dataclass
class Death:
    """The end of a server, service or sidecar by itself.

    why      the cause, the last words of the program if any, and its log
    at_s     the time of notice, by time.monotonic()
    again_s  the time of the restart, by the same clock; None before
    """

    name: str
    why: str
    at_s: float
    again_s: float | None = None


class Supervisor:
    """Restarts the servers, services and sidecars of a deployment, each by itself and for as long as it fails.

    As with Restart=always, KillMode= and RestartSec=1 of a unit: the rest of its processes is killed at once, and a
    second later its program is started, whether or not the programs it needs run.

    For the thread that outlives the deployment: the kernel ends a program with the thread that started it.

    deaths  every death so far, the first one first
    """

    def __init__(self, running: Running, print_line: Callable[[str], None]):
        self.deaths: list[Death] = []
        self._running, self._print_line = running, print_line
        self._waiting: dict[str, tuple[Process, Death]] = {}

    def step(self) -> None:
        """Notice the deaths since the last call, and start each program after its second."""
        processes = list(self._running.processes)
        for name, (process, _) in list(self._waiting.items()):
            if process not in processes:
                # Stopped or replaced on purpose meanwhile: its owner starts it again, and two would run.
                del self._waiting[name]
        for process in processes:
            if process.name not in self._waiting and (error := process.died()):
                supervise.kill_session(process.pid)
                self._expect(process, str(error))
        for process, death in list(self._waiting.values()):
            if time.monotonic() >= death.at_s + RESTART_S:
                self._start(process, death)

    def wait(self, until: Callable[[], object], timeout_s: float) -> bool:
        """Go on until the condition holds, tested after every step; False when the time is up before."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.step()
            if until():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)

    def _expect(self, process: Process, why: str) -> None:
        """Note a death, and plan the next start."""
        death = Death(process.name, why, time.monotonic())
        self.deaths.append(death)
        self._waiting[process.name] = process, death
        self._print_line(f"{why}; it is started again in {RESTART_S:g} s")

    def _start(self, process: Process, death: Death) -> None:
        del self._waiting[death.name]
        try:
            self._running.start_again(death.name)
        except DeploymentError as error:
            self._expect(process, str(error))
            return
        death.again_s = time.monotonic()
        times = sum(other.name == death.name for other in self.deaths)
        words = f"{death.name} was started again"
        if times > 1:
            words += f", for the {_nth(times)} time"
        self._print_line(words)


def _nth(number: int) -> str:
    """2nd, 3rd, 4th."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{endings.get(number % 10, 'th')}"

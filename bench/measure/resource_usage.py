"""The cost of one load for a deployment, sampled during the load, and the state of the deployment after it.

The record includes the observer's own cost: CPU seconds of the whole instrument without the load tool.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import psutil

from bench.machine import ports
from bench.machine.processes import Sampler, Usage, members
from bench.results.trials import Condition, Costs
from bench.serve import connections
from bench.serve.deployment import Running

# The time for a site to answer again after a load, and for its connections to be closed.
COME_BACK_S = 5.0
SETTLE_S = 1.0
POLL_S = 0.05


class Observer:
    """Samples a deployment from `start` to `stop`, then records its state with `look_back`.

    It counts killed processes from its creation on, so including the warm-up.

    costs      what the servers used between `start` and `stop`; None before
    condition  of the deployment, as far as it was observed
    """

    def __init__(self, running: Running):
        self.costs: Costs | None = None
        self._own_s: float | None = None
        self.condition = Condition(time_to_ready_s=round(running.ready_s, 3))
        self._running = running
        self._killed = running.oom_kills()
        self._sampler = Sampler(running.pids)
        self._connections = connections.of_site(running.case.project, running.env, running.pids.values())

    def note(self, **found: Any) -> None:
        """Add to the condition."""
        self.condition = replace(self.condition, **found)

    def start(self) -> None:
        """Begin, right before the load."""
        self._began, self._used = time.monotonic(), time.process_time()
        self._sampler.start()
        if self._connections:
            self._connections.watch()

    def stop(self) -> None:
        """End, right after the load."""
        if self.costs is not None:
            return
        self._ended = time.monotonic()
        usage = self._sampler.stop()
        if self._connections:
            self.note(database_connections_peak=self._connections.peak())
        lasted, self._own_s = time.monotonic() - self._began, time.process_time() - self._used
        self.costs = Costs(**{item.name: _each(usage, item.name) for item in fields(Costs)})
        self.note(
            memory_idle_bytes=dict(self._running.memory_idle_bytes),
            # A database starts and ends processes as requests come; a server's workers are there to stay.
            restarts=_sum(used.replaced for name, used in usage.items() if name in self._running.servers),
            observer_share=round(self._own_s / (lasted * (psutil.cpu_count() or 1)), 5),
        )

    def cpu_seconds(self) -> list[float | None]:
        """CPU seconds of the instrument itself and of each server and service, as far as known."""
        return [self._own_s, *((self.costs and self.costs.cpu_seconds) or {}).values()]

    def look_back(self) -> None:
        """Record the state that the load left behind; waits a moment until the deployment has settled."""
        came_back = until(self._running.answers, COME_BACK_S)
        if self._connections:
            with self._connections as counted:
                left = counted.left(self._ended)
                self.note(database_connections_left=left, database_connections_limit=counted.limit())
        killed = self._running.oom_kills()
        self.note(
            close_wait=settled_close_wait(self._running.pids),
            oom_kills=None if killed is None or self._killed is None else killed - self._killed,
            came_back=came_back,
        )


def _each(usage: Mapping[str, Usage], name: str) -> dict[str, Any]:
    return {server: getattr(used, name) for server, used in usage.items()}


def _sum(numbers: Any) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


# ------------------------------------------------------------------------------------------ connections


def settled_close_wait(pids: Mapping[str, int]) -> dict[str, int | None]:
    """Connections in CLOSE_WAIT of each server's tree, after the servers had time to close them."""
    found = close_wait(pids)
    deadline = time.monotonic() + SETTLE_S
    while any(found.values()) and time.monotonic() < deadline:
        time.sleep(POLL_S)
        found = close_wait(pids)
    return found


def close_wait(pids: Mapping[str, int]) -> dict[str, int | None]:
    """TCP connections in CLOSE_WAIT that the process tree of each server holds now; None where they cannot be read."""
    inodes = {row[9] for row in ports.sockets(ports.CLOSE_WAIT)}
    return {name: _held(pid, inodes) if inodes else 0 for name, pid in pids.items()}


def _held(root: int, inodes: set[str]) -> int | None:
    """How many of the sockets the tree has open; workers that share one hold it once."""
    held = set()
    for process in members(root):
        try:
            for entry in Path(f"/proc/{process.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    held.add(str(entry.readlink()))
        except PermissionError:
            return None
        except OSError:
            # It has just ended.
            continue
    return sum(f"socket:[{inode}]" in held for inode in inodes)

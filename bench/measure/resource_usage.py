"""The cost of one load for a deployment, sampled during the load, and the state of the deployment after it.

The record includes the observer's own cost: CPU seconds of the whole instrument without the load tool.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import psutil

from bench.machine.processes import Sampler, Usage
from bench.records.trials import Condition, Costs
from bench.serve import connections
from bench.serve.case import Case
from bench.serve.deployment import Running

# The time for a site to answer again after a load.
COME_BACK_S = 5.0
POLL_S = 0.05
WORKERS = "worker_cpu_seconds"


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
        of_each = [item.name for item in fields(Costs) if item.name != WORKERS]
        each: dict[str, Any] = {name: {of: getattr(used, name) for of, used in usage.items()} for name in of_each}
        self.costs = Costs(**each, worker_cpu_seconds=_workers(self._running.case, usage))
        # A database starts and ends processes as requests come; a server's workers are there to stay.
        replaced = [used.replaced for name, used in usage.items() if name in self._running.servers]
        known = [count for count in replaced if count is not None]
        self.note(
            memory_idle_bytes=dict(self._running.memory_idle_bytes),
            restarts=sum(known) if known else None,
            observer_share=round(self._own_s / (lasted * (psutil.cpu_count() or 1)), 5),
        )

    def cpu_seconds(self) -> list[float | None]:
        """CPU seconds of the instrument itself and of each server and service, as far as known."""
        return [self._own_s, *((self.costs and self.costs.cpu_seconds) or {}).values()]

    def look_back(self) -> None:
        """Record the state that the load left behind; waits a moment until the deployment answers."""
        deadline = time.monotonic() + COME_BACK_S
        while not (came_back := self._running.answers()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        if self._connections:
            with self._connections as counted:
                left = counted.left(self._ended)
                self.note(database_connections_left=left, database_connections_limit=counted.limit())
        killed = self._running.oom_kills()
        self.note(
            oom_kills=None if killed is None or self._killed is None else killed - self._killed,
            came_back=came_back,
        )


def _workers(case: Case, usage: Mapping[str, Usage]) -> tuple[float, ...] | None:
    """CPU seconds of as many processes of the application server as it has workers, its helpers left out.

    None where it has none under a master: keep-alive connections stay with the worker that accepted them, and one core
    alone does not show what that costs.
    """
    name = re.escape(case.servers[0].name)
    instances = [of for instance, of in usage.items() if re.fullmatch(rf"{name}(-\d+)?", instance)]
    alone = [of.cpu_seconds or 0.0 for of in instances] if len(instances) > 1 else []
    used = alone or [seconds for of in instances for seconds in of.below]
    workers = sorted(used, reverse=True)[: int(case.settings["processes"])]
    return tuple(workers) if len(workers) > 1 else None

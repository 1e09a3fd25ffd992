"""Load from several hosts: one start, a share of one schedule each, and the figures of all as of one load tool.

In an open loop, process i modulo the number of processes makes request i, and processes are distributed over the hosts
in turn; in a closed loop, connections are distributed. Latencies are differences of one clock, on the host of the
request; only the start needs the clocks of all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench import paths
from bench.errors import BenchError
from bench.measure.load import Figures, Job
from bench.measure.load.engine import Engine, encoded
from bench.measure.load.openloop.counts import together
from bench.measure.load.openloop.processes import FORK_S
from bench.serve.production.inventory import Host
from bench.verify.hosts import reach
from bench.verify.hosts.reach import TIMEOUT_S, Clock
from bench.verify.hosts.ssh import Program
from bench.words import plural

# Time from readiness of all hosts to the start: for the last one to receive the start and to start its processes.
LEAD_S = 0.5
# For the last responses to be added up and sent here.
GRACE_S = 30.0
REMOTE = Path(__file__).with_name("loaders_remote.py")
ENGINE = paths.PACKAGE / "measure" / "load" / "openloop"
MIN_PYTHON = [3, 10]


@dataclass(frozen=True)
class LoadShare:
    """The share of one host in a load.

    cores   number of processes
    counts  their counts (bench.measure.load.openloop.counts)
    cpu_s   processor seconds on the host
    """

    host: Host
    clock: Clock
    cores: int
    counts: dict[str, Any]
    cpu_s: float

    def figures(self, tool: Engine) -> Figures:
        """The figures of this host only."""
        return figures(tool, [self])


def make(hosts: Sequence[Host], job: Job, ready: Callable[[], None] = lambda: None) -> list[LoadShare]:
    """Make the load of a job from these hosts; raises BenchError with the name of a host that fails.

    `ready` is called when all hosts are ready, right before the start.
    """
    with ThreadPoolExecutor(len(hosts)) as pool, ExitStack() as ends:
        loaders = [ends.enter_context(Loader(host)) for host in hosts]
        list(pool.map(Loader.greet, loaders))
        # As many on each host, so that their shares are alike.
        each = cores_used(job, min(loader.cores for loader in loaders), len(hosts))
        owns = [tuple(range(number, each * len(hosts), len(hosts))) for number in range(len(hosts))]
        jobs = [asdict(replace(job, threads=each * len(hosts), own=own)) for own in owns]
        list(pool.map(Loader.prepare, loaders, jobs))
        ready()
        begins = time.time() + LEAD_S + FORK_S * each
        for loader in loaders:
            loader.begin(begins)
        limit_s = begins - time.time() + job.seconds + job.timeout_s + GRACE_S
        found = list(pool.map(lambda loader: loader.counts(limit_s), loaders))
    return [
        LoadShare(loader.host, loader.clock, each, said["counts"], said["cpu_s"])
        for loader, said in zip(loaders, found, strict=True)
    ]


def figures(tool: Engine, shares: Sequence[LoadShare]) -> Figures:
    """The figures of all shares together, as if from one load tool."""
    return tool.parse(json.dumps(encoded(together([share.counts for share in shares]))), "")


def cores_used(job: Job, cores: int, hosts: int) -> int:
    """Number of processes on each host; raises BenchError if there are fewer connections than hosts."""
    require_connections(job.connections, hosts)
    return min(cores, job.connections // hosts)


def require_connections(connections: int, hosts: int) -> None:
    """Raise BenchError if there are fewer connections than load hosts."""
    if connections < hosts:
        few = f"{plural(connections, 'connection')} for {hosts} load hosts"
        raise BenchError(f"{few}; use at least one for each, or fewer load hosts")


class Loader(Program):
    """A load host while the context lasts; raises BenchError, with the host's name, on any failure.

    clock  offset of its clock, after `greet`
    cores  number of processes at the same time, after `greet`
    """

    def __init__(self, host: Host):
        super().__init__(host, REMOTE)
        self.clock = Clock(0.0, 0.0)
        self.cores = 1

    def greet(self) -> None:
        """Learn the host's clock and cores."""
        said = self.answer("cannot be reached", TIMEOUT_S)
        if said["python"] < MIN_PYTHON:
            version, wanted = (".".join(map(str, numbers)) for numbers in (said["python"], MIN_PYTHON))
            raise BenchError(f"{self.host.name}: its Python is {version}; load needs Python {wanted} or a later one")
        self.cores = said["cores"]
        self.clock = reach.clock_of(self._time)

    def prepare(self, job: dict[str, Any]) -> None:
        """Send the load tool and its job, and wait until the host is ready."""
        self.tell({"modules": _modules(), "job": job})
        self.answer("cannot make load", TIMEOUT_S)

    def begin(self, at: float) -> None:
        """Start the load at the given time by this machine's clock, in seconds."""
        self.tell({"begins": at + self.clock.ahead_ms / 1000})

    def counts(self, limit_s: float) -> dict[str, Any]:
        """The counts and processor seconds of the finished load."""
        found: dict[str, Any] = self.answer("the load ended early", limit_s)
        return found

    def _time(self) -> int:
        self.tell("time")
        there: int = self.answer("does not say the time", TIMEOUT_S)
        return there


def _modules() -> dict[str, str]:
    """The modules of the load tool by name, and their packages."""
    found = dict.fromkeys(("bench", "bench.measure", "bench.measure.load"), "")
    for path in sorted(ENGINE.glob("*.py")):
        if path.stem != "__main__":  # which needs more than Python
            name = "" if path.stem == "__init__" else f".{path.stem}"
            found[f"bench.measure.load.openloop{name}"] = path.read_text("utf-8")
    return found

"""Load from several hosts: one start, a share of one schedule each, and the figures of all as of one load tool.

Ansible starts the load tool on each host (trials.yml). In an open loop, process i modulo the number of processes makes
request i, and processes are distributed over the hosts in turn; in a closed loop, connections are distributed.
Latencies are differences of one clock, on the host of the request; only the start needs the clocks of all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from bench.errors import BenchError
from bench.measure.hosts import archive, on_host
from bench.measure.hosts.play import Plays, TaskResult
from bench.measure.load import Figures, LoadJob, Tool
from bench.measure.load.engine import encoded
from bench.measure.load.openloop.counts import together
from bench.serve.production.inventory import DB, LOAD, WEB, Host, Inventory, front_of
from bench.verify.hosts import reach
from bench.verify.hosts.host_costs import HostCosts
from bench.verify.hosts.reach import Clock, HostState
from bench.words import plural

PLAYBOOK = Path(__file__).with_name("trials.yml")
# A task of each trial.
MAKE = "Make the load"
# Least time to start the program on all hosts.
LEAD_S = 0.3
# Of a play, beside the limits of its tasks.
PLAY_S = 120
# For a slow host to get ready, and for its last responses to be added up and brought here.
BESIDE_S = 60


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


@dataclass(frozen=True)
class HostsLoaded:
    """A load from several hosts: the share of each load host, and the costs of each host by name."""

    shares: list[LoadShare]
    costs: dict[str, HostCosts]


class Loaders(Plays):
    """The hosts of an inventory while the context lasts: those of group `load` make loads."""

    def __init__(self, inventory: Inventory) -> None:
        super().__init__(PLAYBOOK, inventory)

    def make(
        self,
        job: LoadJob,
        folder: Path,
        warm_up_s: float = 0.0,
        access_log: str = "",
        ready: Callable[[], None] = lambda: None,
    ) -> HostsLoaded:
        """Warm up, and make the load of a job.

        folder      for Ansible's output
        access_log  the path of the front's, for each web host's share of the requests
        ready       called when the hosts get ready, before the warm-up

        Raises BenchError with the name of a load host that fails. Another host that is missing stops nothing.
        """
        hosts = self._inventory.of(LOAD)
        require_connections(job.connections, len(hosts))
        states = {state.host.name: state for state in reach.probe_hosts(self._inventory)}
        # As many on each host, so that their shares are alike.
        each = cores_used(job, min(_cores(states[host.name]) for host in hosts), len(hosts))
        job = replace(job, threads=each * len(hosts))
        whole_s = math.ceil(warm_up_s)
        of_hosts = {}
        for host in self._inventory.hosts:
            of_hosts[host.name] = _of_host(host, self._inventory, states[host.name], job.threads, access_log)
        program = archive.write(folder, {"job": asdict(job), "warm_up_s": whole_s, "hosts": of_hosts})
        lead_s = LEAD_S + whole_s + on_host.PAUSE_S
        limit_s = math.ceil(lead_s + job.seconds + job.timeout_s + BESIDE_S)
        variables = {"archive": str(program.absolute()), "lead_s": lead_s, "limit_s": limit_s}

        def begun(task: str) -> None:
            if task == MAKE:
                ready()

        try:
            results = self.play(variables, folder / "play.out", PLAY_S + 2 * limit_s, begun)
        finally:
            program.unlink()
        return _loaded(self._inventory, states, each, results)


def figures(tool: Tool, shares: Sequence[LoadShare]) -> Figures:
    """The figures of all shares together, as if from one load tool."""
    return tool.parse(json.dumps(encoded(together([share.counts for share in shares]))), "")


def cores_used(job: LoadJob, cores: int, hosts: int) -> int:
    """Number of processes on each host."""
    return min(cores, job.connections // hosts)


def require_connections(connections: int, hosts: int) -> None:
    """Raise BenchError if there are fewer connections than load hosts."""
    if connections < hosts:
        few = f"{plural(connections, 'connection')} for {hosts} load hosts"
        raise BenchError(f"{few}; use at least one for each, or fewer load hosts")


def _cores(state: HostState) -> int:
    """Cores of a load host; raises BenchError if it cannot make load."""
    if state.cannot_load:
        raise BenchError(f"{state.host.name}: {state.cannot_load}")
    return state.cores


def _of_host(host: Host, inventory: Inventory, state: HostState, processes: int, access_log: str) -> dict[str, Any]:
    """The archive's entry of a host: its clock, its processes, and the settings of `host_usage.HostUsage`."""
    hosts, own, ahead_ms = inventory.of(LOAD), [], 0.0
    if host in hosts:
        own = list(range(hosts.index(host), processes, len(hosts)))
    if state.clock:
        ahead_ms = state.clock.ahead_ms
    if host != front_of(inventory):
        access_log = ""
    return {
        "ahead_ms": ahead_ms,
        "processes": own,
        "usage": {
            "address": host.address,
            "cores": host.cores,
            "link_bits_per_second": host.link_mbit and host.link_mbit * 1e6,
            "database": DB in host.groups,
            "access_log": access_log,
        },
    }


def _loaded(inventory: Inventory, states: dict[str, HostState], cores: int, results: list[TaskResult]) -> HostsLoaded:
    """The shares and costs in the results of the play; raises BenchError for the first load host that failed."""
    load_hosts = inventory.of(LOAD)
    loading = {host.name for host in load_hosts}
    why, loads = {}, {}
    for result in results:
        if result.failure and result.host in loading:
            when = "cannot make load"
            if result.task == MAKE:
                when = "the load ended early"
            raise BenchError(f"{result.host}: {when}: {result.failure}")
        if result.failure:
            why[result.host] = result.failure
        elif result.task == MAKE:
            loads[result.host] = _unpacked(result)
    shares = []
    for host in load_hosts:
        clock, of_host = states[host.name].clock, loads.get(host.name)
        if clock is None or of_host is None:
            raise BenchError(f"{host.name}: cannot make load: Ansible did not come to that task")
        shares.append(LoadShare(host, clock, cores, of_host["counts"], of_host["cpu_s"]))
    return HostsLoaded(shares, _costs(inventory, {name: of_host["usage"] for name, of_host in loads.items()}, why))


def _unpacked(result: TaskResult) -> dict[str, Any]:
    """The result of a host's load; raises BenchError if something else was printed last."""
    last = result.stdout.splitlines()[-1:] or [""]
    try:
        return on_host.unpacked(last[0])
    except ValueError:
        raise BenchError(f"{result.host}: its last line is {last[0][:80]!r}, not the result of the load") from None


def _costs(inventory: Inventory, usages: dict[str, dict[str, Any]], why: dict[str, str]) -> dict[str, HostCosts]:
    """The costs of each host; `why` has the reasons for missing ones."""
    requests: dict[str, int] = {}
    for usage in usages.values():
        requests |= usage.pop("by_address") or {}
    costs = {}
    for host in inventory.hosts:
        usage = usages.get(host.name) or {"not_sampled": why.get(host.name, "no result")}
        costs[host.name] = msgspec.convert(usage, HostCosts)
    # Each web host's share of the requests, if the front counts them.
    web = inventory.of(WEB)
    total = sum(requests.get(host.address, 0) for host in web)
    if not total:
        return costs
    for host in web:
        count = requests.get(host.address, 0)
        costs[host.name] = replace(costs[host.name], requests=count, requests_share=round(count / total, 4))
    return costs

"""Sample the costs of each host under load, over one ssh connection each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from bench.errors import BenchError
from bench.serve.production.inventory import DB, WEB, Inventory, front_of
from bench.verify.hosts.costs import HostCosts
from bench.verify.hosts.ssh import Program

SCRIPT = Path(__file__).with_name("sample_host.py")
# Time limit for connecting, and for each response.
ANSWER_S = 20.0
# Time limit of the remote program: a controller whose machine has gone closes nothing.
LIMIT_S = 3600.0


@contextmanager
def sampling(inventory: Inventory, access_log: str = "", limit_s: float = LIMIT_S) -> Iterator[Sampler]:
    """Start samplers on all hosts; the remote programs end with the block, or with this process however it ends.

    access_log  the path of the front's access log, for each web host's share of the requests
    limit_s     time limit in any case
    """
    with ExitStack() as cleanup:
        # Access logs and PostgreSQL need root.
        programs = [cleanup.enter_context(Program(host, SCRIPT, as_root=True)) for host in inventory.hosts]
        sampler = Sampler(inventory, programs)
        asked = {
            host.name: {
                "address": host.address,
                "database": DB in host.groups,
                "access_log": access_log if host == front_of(inventory) else "",
                "link_bits_per_second": host.link_mbit and host.link_mbit * 1e6,
                "cores": host.cores,
                "limit_s": limit_s,
            }
            for host in inventory.hosts
        }
        sampler.answers(asked)
        yield sampler


class Sampler:
    """Samples the hosts from `start` to `stop`, any number of times. A missing host stops nothing."""

    def __init__(self, inventory: Inventory, programs: list[Program]):
        self._inventory = inventory
        self._programs = {program.host.name: program for program in programs}

    def start(self) -> None:
        """Begin, right before the load: returns when all hosts are sampled."""
        self.answers(dict.fromkeys(self._programs, "start"))

    def stop(self) -> dict[str, HostCosts]:
        """Stop, right after the load; returns costs since the last `start` by host name."""
        answers = self.answers(dict.fromkeys(self._programs, "stop"))
        by_address: dict[str, int] = {}
        for answer in answers.values():
            by_address |= answer.pop("by_address", None) or {}
        gone = {name: {"not_sampled": program.lost} for name, program in self._programs.items()}
        found = msgspec.convert(gone | answers, dict[str, HostCosts])
        # Each web host's share of the requests, if the front counts them.
        requests = {host.name: by_address.get(host.address, 0) for host in self._inventory.of(WEB)}
        for name, count in requests.items() if any(requests.values()) else ():
            share = round(count / sum(requests.values()), 4)
            found[name] = replace(found[name], requests=count, requests_share=share)
        return found

    def answers(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Send a request to each host by name; returns the responses, without missing hosts."""
        for name, what in asked.items():
            self._programs[name].tell(what)
        found = {}
        for name, program in self._programs.items():
            with suppress(BenchError):
                if not program.lost:
                    found[name] = program.answer("not sampled", ANSWER_S)
        return found

"""What each host of an inventory uses while load is made, sampled there over one ssh connection each."""

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
# Until a host has connected, and until it has answered.
ANSWER_S = 20.0
# After which a host ends by itself: a controller whose machine has gone closes nothing.
LIMIT_S = 3600.0


@contextmanager
def sampling(inventory: Inventory, access_log: str = "", limit_s: float = LIMIT_S) -> Iterator[Sampler]:
    """What samples all hosts; the programs on them end with the block, or with this process however it ends.

    access_log  the path of the front's access log, from which each web host's share of the requests comes
    limit_s     after which they end in any case
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
    """Samples the hosts from `start` to `stop`, as often as wanted. A host that is gone stops nothing."""

    def __init__(self, inventory: Inventory, programs: list[Program]):
        self._inventory = inventory
        self._programs = {program.host.name: program for program in programs}

    def start(self) -> None:
        """Begin, right before the load: returns when all hosts are sampled."""
        self.answers(dict.fromkeys(self._programs, "start"))

    def stop(self) -> dict[str, HostCosts]:
        """End, right after the load: what each host used since the last `start`, by its name."""
        answers = self.answers(dict.fromkeys(self._programs, "stop"))
        by_address: dict[str, int] = {}
        for answer in answers.values():
            by_address |= answer.pop("by_address", None) or {}
        gone = {name: {"not_sampled": program.lost} for name, program in self._programs.items()}
        found = msgspec.convert(gone | answers, dict[str, HostCosts])
        # Each web host's share of the requests, where the front counts them.
        requests = {host.name: by_address.get(host.address, 0) for host in self._inventory.of(WEB)}
        for name, count in requests.items() if any(requests.values()) else ():
            share = round(count / sum(requests.values()), 4)
            found[name] = replace(found[name], requests=count, requests_share=share)
        return found

    def answers(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Ask each host by its name; the answers, without those of hosts that are gone."""
        for name, what in asked.items():
            self._programs[name].tell(what)
        found = {}
        for name, program in self._programs.items():
            with suppress(BenchError):
                if not program.lost:
                    found[name] = program.answer("not sampled", ANSWER_S)
        return found

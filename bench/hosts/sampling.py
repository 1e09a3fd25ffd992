"""What each host of an inventory uses while load is made, sampled there over one ssh connection each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from bench.hosts.ssh import Program
from bench.production.inventory import DB, WEB, Host, Inventory, front_of
from bench.records.hosts import HostCosts

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
    front = front_of(inventory)
    with ExitStack() as cleanup:
        sampler = Sampler(inventory, [cleanup.enter_context(_Talk(host)) for host in inventory.hosts])
        for talk in sampler.talks:
            host = talk.host
            talk.tell(
                {
                    "address": host.address,
                    "database": DB in host.groups,
                    "access_log": access_log if host == front else "",
                    "link_bits_per_second": host.link_mbit and host.link_mbit * 1e6,
                    "cores": host.cores,
                    "limit_s": limit_s,
                }
            )
        sampler.answers()
        yield sampler


class _Talk(Program):
    """The connection to a host; `lost` says why there is none any more."""

    def __init__(self, host: Host):
        # Access logs and PostgreSQL need root.
        super().__init__(host, SCRIPT, as_root=True)
        self.lost = ""

    def read(self, deadline: float) -> bytes:
        """The next line of its answer; empty when the host is gone, or has not answered until then and is given up."""
        if self.lost:
            return b""
        line = self.line(max(0.0, deadline - time.monotonic()))
        if not line:
            self.lost = self.why(ANSWER_S)
        return line


class Sampler:
    """Samples the hosts from `start` to `stop`, as often as wanted. A host that is gone stops nothing."""

    def __init__(self, inventory: Inventory, talks: list[_Talk]):
        self.talks = talks
        self._inventory = inventory

    def start(self) -> None:
        """Begin, right before the load: returns when all hosts are sampled."""
        self.answers(b"start\n")

    def stop(self) -> dict[str, HostCosts]:
        """End, right after the load: what each host used since the last `start`, by its name."""
        found: dict[str, HostCosts] = {}
        by_address: dict[str, int] = {}
        for talk, line in zip(self.talks, self.answers(b"stop\n"), strict=True):
            answer: dict[str, Any] = {"not_sampled": talk.lost}
            try:
                if line:
                    answer = msgspec.json.decode(line, type=dict[str, Any])
                by_address |= answer.pop("by_address", None) or {}
                found[talk.host.name] = msgspec.convert(answer, HostCosts)
            except msgspec.DecodeError:
                talk.lost = f"its answer cannot be read: {line[:60].decode('utf-8', 'replace').strip()}"
                talk.kill()
                found[talk.host.name] = HostCosts(not_sampled=talk.lost)
        # Each web host's share of the requests, where the front counts them.
        requests = {host.name: by_address.get(host.address, 0) for host in self._inventory.of(WEB)}
        for name, count in requests.items() if any(requests.values()) else ():
            share = round(count / sum(requests.values()), 4)
            found[name] = replace(found[name], requests=count, requests_share=share)
        return found

    def answers(self, word: bytes = b"") -> list[bytes]:
        """Send a word to all hosts; the answer of each, empty of those that are gone."""
        for talk in self.talks:
            talk.send(word)
        deadline = time.monotonic() + ANSWER_S
        return [talk.read(deadline) for talk in self.talks]

"""What each host of an inventory uses while load is made, sampled there over one ssh connection each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

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
    with ExitStack() as cleanup:
        asked = [_asked(inventory, host, access_log) | {"limit_s": limit_s} for host in inventory.hosts]
        talks = [cleanup.enter_context(_Talk(host, words)) for host, words in zip(inventory.hosts, asked, strict=True)]
        deadline = time.monotonic() + ANSWER_S
        for talk in talks:
            talk.read(deadline)
        yield Sampler(inventory, talks)


class Sampler:
    """Samples the hosts from `start` to `stop`, as often as wanted. A host that is gone stops nothing."""

    def __init__(self, inventory: Inventory, talks: list[_Talk]):
        self._inventory = inventory
        self._talks = talks

    def start(self) -> None:
        """Begin, right before the load: returns when all hosts are sampled."""
        for talk in self._talks:
            talk.send(b"start\n")
        deadline = time.monotonic() + ANSWER_S
        for talk in self._talks:
            talk.read(deadline)

    def stop(self) -> dict[str, HostCosts]:
        """End, right after the load: what each host used since the last `start`, by its name."""
        for talk in self._talks:
            talk.send(b"stop\n")
        deadline = time.monotonic() + ANSWER_S
        found: dict[str, HostCosts] = {}
        by_address: dict[str, int] | None = None
        for talk in self._talks:
            found[talk.host.name], addresses = talk.result(deadline)
            by_address = addresses if addresses is not None else by_address
        return self._shared(found, by_address)

    def _shared(self, found: dict[str, HostCosts], by_address: dict[str, int] | None) -> dict[str, HostCosts]:
        """The same with each web host's share of the requests, where the front counts them."""
        web = self._inventory.of(WEB)
        if by_address is None or not (every := sum(by_address.get(host.address, 0) for host in web)):
            return found
        for host in web:
            requests = by_address.get(host.address, 0)
            found[host.name] = replace(found[host.name], requests=requests, requests_share=round(requests / every, 4))
        return found


class _Talk(Program):
    """The connection to a host; `lost` says why there is none any more."""

    def __init__(self, host: Host, asked: dict[str, Any]):
        # Access logs and PostgreSQL need root.
        super().__init__(host, SCRIPT, as_root=True)
        self._asked = asked
        self.lost = ""

    def __enter__(self) -> Self:
        super().__enter__()
        self.tell(self._asked)
        return self

    def read(self, deadline: float) -> bytes:
        """The next line of its answer; empty when the host is gone, or has not answered until then and is given up."""
        if self.lost:
            return b""
        line = self.line(max(0.0, deadline - time.monotonic()))
        if not line:
            self.lost = self.why(ANSWER_S)
        return line

    def result(self, deadline: float) -> tuple[HostCosts, dict[str, int] | None]:
        """What it has sampled, and the requests that its access log has by the address that answered them."""
        if line := self.read(deadline):
            try:
                answer = msgspec.json.decode(line, type=dict[str, Any])
                addresses = answer.pop("by_address", None)
                return msgspec.convert(answer, HostCosts), addresses
            except msgspec.DecodeError:
                self.lost = f"its answer cannot be read: {line[:60].decode('utf-8', 'replace').strip()}"
                self.kill()
        return HostCosts(not_sampled=self.lost), None


def _asked(inventory: Inventory, host: Host, access_log: str) -> dict[str, Any]:
    """What the program on the host is to look at."""
    return {
        "address": host.address,
        "database": DB in host.groups,
        "access_log": access_log if host == front_of(inventory) else "",
        "link_bits_per_second": host.link_mbit and host.link_mbit * 1e6,
        "cores": host.cores,
    }

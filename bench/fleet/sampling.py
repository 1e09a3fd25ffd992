"""What each host of an inventory uses while load is made, sampled there over one ssh connection each."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from bench.fleet.inventory import DB, FRONT, WEB, Host, Inventory
from bench.results.hosts import HostCosts

SCRIPT = Path(__file__).with_name("sample_host.py")
COMMAND = SCRIPT.with_suffix(".sh")
# Until a host has connected, and until it has answered.
CONNECT_S, ANSWER_S = 20.0, 20.0


@contextmanager
def sampling(inventory: Inventory, access_log: str = "") -> Iterator[Sampler]:
    """What samples all hosts; the programs on them end with the block, or with this process however it ends.

    access_log  the path of the front's access log, from which each web host's share of the requests comes
    """
    with ExitStack() as cleanup:
        talks = [cleanup.enter_context(_talk(host, _asked(inventory, host, access_log))) for host in inventory.hosts]
        deadline = time.monotonic() + CONNECT_S
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
            talk.say("start")
        deadline = time.monotonic() + ANSWER_S
        for talk in self._talks:
            talk.read(deadline)

    def stop(self) -> dict[str, HostCosts]:
        """End, right after the load: what each host used since the last `start`, by its name."""
        for talk in self._talks:
            talk.say("stop")
        deadline = time.monotonic() + ANSWER_S
        found: dict[str, HostCosts] = {}
        by_address: dict[str, int] | None = None
        for talk in self._talks:
            answer = talk.read(deadline)
            if answer is None:
                found[talk.host.name] = HostCosts(not_sampled=talk.lost)
                continue
            told: dict[str, Any] = json.loads(answer)
            addresses = told.pop("by_address")
            by_address = addresses if addresses is not None else by_address
            found[talk.host.name] = msgspec.convert(told, HostCosts)
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


class _Talk:
    """The connection to a host; `lost` says why there is none any more."""

    def __init__(self, host: Host, process: subprocess.Popen[str]):
        self.host = host
        self.process = process
        self.lost = ""

    def say(self, word: str) -> None:
        """Send a word; a host that is gone shows when its answer is read."""
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{word}\n")
            self.process.stdin.flush()

    def read(self, deadline: float) -> str | None:
        """The next line of its answer; None when the host is gone, or has not answered until then and is given up."""
        assert self.process.stdout
        if self.lost:
            return None
        late = threading.Timer(max(0.0, deadline - time.monotonic()), self.process.kill)
        late.start()
        try:
            line = self.process.stdout.readline()
        finally:
            late.cancel()
        if not line:
            self.lost = self._why()
        return line or None

    def _why(self) -> str:
        self.process.kill()
        assert self.process.stderr
        said = [line.strip() for line in self.process.stderr.read().splitlines() if line.strip()]
        return said[-1].removeprefix("ssh: ") if said else "no answer in time"


def _asked(inventory: Inventory, host: Host, access_log: str) -> dict[str, Any]:
    """What the program on the host is to look at."""
    front = next(iter(inventory.of(FRONT)), inventory.of(WEB)[0])
    return {
        "address": host.address,
        "database": DB in host.groups,
        "access_log": access_log if host == front else "",
        "link_bits_per_second": host.link_mbit and host.link_mbit * 1e6,
    }


@contextmanager
def _talk(host: Host, asked: dict[str, Any]) -> Iterator[_Talk]:
    words = {"script": SCRIPT.read_text("utf-8"), "asked": json.dumps(asked)}
    script = COMMAND.read_text("utf-8").format(**{name: shlex.quote(word) for name, word in words.items()})
    pipe = subprocess.PIPE
    process = subprocess.Popen(host.argv(script), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        yield _Talk(host, process)
    finally:
        # The end of its input ends it there, and ssh with it; one that hangs is killed.
        late = threading.Timer(ANSWER_S, process.kill)
        late.start()
        process.communicate()
        late.cancel()

"""What a host of an inventory lacks: seen over one connection each, by ssh with the words that Ansible gives it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.serve.production.inventory import LOAD, Host, Inventory
from bench.verify.hosts.ssh import Connection

ROUND_TRIPS = 20
# Beyond it the times of several hosts do not fit together.
MAX_OFFSET_MS = 50.0
# All of the talk with a host, its connection among it.
TIMEOUT_S = 20.0
SCRIPT = Path(__file__).with_name("facts.sh")


@dataclass(frozen=True)
class Clock:
    """How far a host's clock is ahead of this machine's, and by how much that may be wrong, in milliseconds."""

    ahead_ms: float
    error_ms: float

    @property
    def wrong(self) -> str:
        """`80 ms ahead` and what to do, when it differs by more than MAX_OFFSET_MS; else empty."""
        if abs(self.ahead_ms) <= MAX_OFFSET_MS:
            return ""
        return f"{abs(self.ahead_ms):.0f} ms {'ahead' if self.ahead_ms > 0 else 'behind'}: apt-get install chrony"


@dataclass(frozen=True)
class HostState:
    """A host, its clock if it could be asked, and what it lacks: a line each, with what to do."""

    host: Host
    clock: Clock | None
    lacks: tuple[str, ...]


def probe_hosts(inventory: Inventory) -> list[HostState]:
    """Ask all hosts at the same time; returns what was found in the order of the inventory."""
    with ThreadPoolExecutor(len(inventory.hosts)) as pool:
        return list(pool.map(_look_at, inventory.hosts))


def clock_of(ask: Callable[[], int]) -> Clock:
    """The clock of a host; `ask` returns its time in nanoseconds."""
    trips = []
    for _ in range(ROUND_TRIPS):
        sent = time.time_ns()
        there = ask()
        trips.append((sent, there, time.time_ns()))
    return offset(trips)


def offset(trips: Iterable[tuple[int, int, int]]) -> Clock:
    """The clock by the shortest of several round trips: when it was sent, the time there, when that came; nanoseconds.

    A shorter trip leaves less room for error, whichever of its two ways was the slow one.
    """
    sent, there, came = min(trips, key=lambda trip: trip[2] - trip[0])
    return Clock((there - (sent + came) / 2) / 1e6, (came - sent) / 2 / 1e6)


def _look_at(host: Host) -> HostState:
    """What the host lacks. It is asked until TIMEOUT_S, and the connection ends with that."""
    with Connection(host, SCRIPT.read_text("utf-8")) as connection:
        try:
            clock, lacks = _asked(host, connection)
        except ValueError:
            clock, lacks = None, (f"cannot be reached: {connection.why(TIMEOUT_S)}",)
    return HostState(host, clock, lacks)


def _asked(host: Host, connection: Connection) -> tuple[Clock, tuple[str, ...]]:
    """The clock and what is lacking; raises ValueError when the host does not answer."""
    deadline = time.monotonic() + TIMEOUT_S

    def answer() -> bytes:
        return connection.line(max(0.0, deadline - time.monotonic()))

    def ask() -> int:
        connection.send(b"\n")
        return int(answer())

    has_python, is_root, has_systemd = (word == b"yes" for word in answer().split())
    clock = clock_of(ask)
    lacks = [] if has_python else ["no Python 3, which Ansible needs: install it"]
    if host.groups != (LOAD,):
        lacks += [] if is_root else ["no root: connect as root, or allow sudo without a password"]
        lacks += [] if has_systemd else ["no systemd, which runs the units"]
    lacks += [f"its clock is {clock.wrong}"] if clock.wrong else []
    return clock, tuple(lacks)

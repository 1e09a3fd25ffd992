"""Missing requirements of hosts in an inventory: checked over one connection each, by ssh with Ansible's arguments."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.serve.production.inventory import LOAD, Host, Inventory
from bench.verify.hosts.ssh import SshConnection

ROUND_TRIPS = 20
# Beyond it the times of several hosts do not fit together.
MAX_OFFSET_MS = 50.0
# Time limit of a host's checks, including its connection.
TIMEOUT_S = 20.0
SCRIPT = Path(__file__).with_name("facts.sh")
# Of the load tool.
MIN_PYTHON = (3, 10)


@dataclass(frozen=True)
class Clock:
    """Offset of a host's clock against this machine's, and its possible error, in milliseconds."""

    ahead_ms: float
    error_ms: float

    @property
    def wrong(self) -> str:
        """`80 ms ahead` and the remedy, if the offset exceeds MAX_OFFSET_MS; else empty."""
        if abs(self.ahead_ms) <= MAX_OFFSET_MS:
            return ""
        direction = "behind"
        if self.ahead_ms > 0:
            direction = "ahead"
        return f"{abs(self.ahead_ms):.0f} ms {direction}: apt-get install chrony"


@dataclass(frozen=True)
class HostState:
    """A host, its clock if known, and its missing requirements: a line each, with a remedy.

    cores        number of simultaneous processes
    cannot_load  reason against load from the host; empty without one
    """

    host: Host
    clock: Clock | None
    lacks: tuple[str, ...]
    cores: int = 1
    cannot_load: str = ""


def probe_hosts(inventory: Inventory) -> list[HostState]:
    """Probe all hosts at the same time; returns their states in the order of the inventory."""
    with ThreadPoolExecutor(len(inventory.hosts)) as pool:
        return list(pool.map(_inspected, inventory.hosts))


def clock_of(read_clock: Callable[[], int]) -> Clock:
    """The clock of a host, from its time in nanoseconds."""
    trips = []
    for _ in range(ROUND_TRIPS):
        sent = time.time_ns()
        there = read_clock()
        trips.append((sent, there, time.time_ns()))
    return offset(trips)


def offset(trips: Iterable[tuple[int, int, int]]) -> Clock:
    """The clock by the shortest of several round trips: time of sending, remote time, time of receipt; nanoseconds.

    A shorter trip leaves less room for error, whichever direction was slow.
    """
    sent, there, came = min(trips, key=lambda trip: trip[2] - trip[0])
    return Clock((there - (sent + came) / 2) / 1e6, (came - sent) / 2 / 1e6)


def _inspected(host: Host) -> HostState:
    """The state of a host. The connection ends after TIMEOUT_S."""
    with SshConnection(host, SCRIPT.read_text("utf-8")) as connection:
        try:
            return _state(host, connection)
        except ValueError:
            gone = f"cannot be reached: {connection.why(TIMEOUT_S)}"
            return HostState(host, None, (gone,), cannot_load=gone)


def _state(host: Host, connection: SshConnection) -> HostState:
    """The state of a host; raises ValueError without a response."""
    deadline = time.monotonic() + TIMEOUT_S

    def read_line() -> bytes:
        return connection.line(max(0.0, deadline - time.monotonic()))

    def read_time() -> int:
        connection.send(b"\n")
        return int(read_line())

    python, cores, root, systemd = read_line().decode().split()
    clock = clock_of(read_time)
    cannot_load = _cannot_load(python)
    serves = host.groups != (LOAD,)
    lacks = []
    if python == "no":
        lacks.append("no Python 3, which Ansible needs: install it")
    elif LOAD in host.groups and cannot_load:
        lacks.append(cannot_load)
    if serves and root == "no":
        lacks.append("no root: connect as root, or allow sudo without a password")
    if serves and systemd == "no":
        lacks.append("no systemd, which runs the units")
    if clock.wrong:
        lacks.append(f"its clock is {clock.wrong}")
    return HostState(host, clock, tuple(lacks), int(cores), cannot_load)


def _cannot_load(python: str) -> str:
    """The reason against load from a host with this version of Python; empty without one."""
    wanted = ".".join(map(str, MIN_PYTHON))
    if python == "no":
        return f"no Python 3; load needs Python {wanted} or a later one"
    if tuple(int(part) for part in python.split(".")) < MIN_PYTHON:
        return f"its Python is {python}; load needs Python {wanted} or a later one"
    return ""

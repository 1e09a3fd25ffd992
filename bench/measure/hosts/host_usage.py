"""Usage of a host in the time of a load: of the control groups of the kit's units and of PostgreSQL, and of its link.

Runs on the host, from the archive (`archive`): standard library only. Unreadable figures are unknown: None.
https://docs.kernel.org/admin-guide/cgroup-v2.html
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bench.verify.hosts import upstreams

CGROUPS = Path("/sys/fs/cgroup")
# All units of the site share the first one; Debian's PostgreSQL has the second one.
UNITS = CGROUPS / "benchapp.slice"
GROUPS = (UNITS, CGROUPS / "system.slice" / "system-postgresql.slice")
INTERVAL_S = 1.0
# For the front to write its last lines.
LOG_S = 0.2
# The kernel reports a speed of a container's interface that no link has.
CONTAINER = any(Path(path).exists() for path in ("/run/systemd/container", "/run/.containerenv", "/.dockerenv"))
CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();\n"
)


def text(path: Path) -> str:
    """A file's text; empty if unreadable."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def number(path: Path, name: str = "") -> int | None:
    """The number in a file of a control group, on the line that begins with `name`; None without one."""
    match = re.search(rf"^{name} *(\d+)$", text(path), re.MULTILINE)
    if not match:
        return None
    return int(match[1])


def cpu_us() -> int | None:
    """Processor time of the groups so far, in microseconds."""
    return _sum(number(group / "cpu.stat", "usage_usec") for group in GROUPS)


def memory_bytes() -> int | None:
    """Memory of the groups, without files that the kernel would drop first."""
    return _sum(_memory_of(group) for group in GROUPS)


def _memory_of(group: Path) -> int | None:
    current = number(group / "memory.current")
    inactive = number(group / "memory.stat", "inactive_file")
    if current is None or inactive is None:
        return current
    return max(0, current - inactive)


def _sum(numbers: Iterable[int | None]) -> int | None:
    """The sum of the known numbers; None if all are unknown."""
    known = [item for item in numbers if item is not None]
    if not known:
        return None
    return sum(known)


def _larger(one: int | None, other: int | None) -> int | None:
    """The larger of two numbers, as far as known."""
    return max((item for item in (one, other) if item is not None), default=None)


def memory_limit() -> int | None:
    """Memory of the host, or the limit of the kit's units."""
    known = []
    if match := re.search(r"^MemTotal: +(\d+) kB$", text(Path("/proc/meminfo")), re.MULTILINE):
        known.append(int(match[1]) * 1024)
    if limit := number(UNITS / "memory.max"):
        known.append(limit)
    return min(known, default=None)


def cores(of_inventory: float | None) -> float | None:
    """Usable processor cores: of the inventory or the host, or as limited for the kit's units."""
    most = of_inventory or os.cpu_count()
    quota, _, period = text(UNITS / "cpu.max").partition(" ")
    if most and quota.isdigit():
        return min(most, int(quota) / int(period))
    return most


class Traffic(NamedTuple):
    """Bytes that a link has received and sent until a time (time.monotonic); None if unknown."""

    at: float
    received: int | None
    sent: int | None

    def since(self, before: Traffic) -> tuple[int | None, int | None]:
        """Bytes received and sent since then."""
        if self.received is None or self.sent is None or before.received is None or before.sent is None:
            return None, None
        return self.received - before.received, self.sent - before.sent


class Link:
    """The network interface with an address, and its rate in bits a second, if known."""

    def __init__(self, address: str, rate: float | None) -> None:
        self.name = _interface(address)
        self.rate = rate or self._speed()

    def _speed(self) -> float | None:
        if not self.name or CONTAINER:
            return None
        # -1 means that the kernel does not know the speed.
        speed = number(Path("/sys/class/net") / self.name / "speed")
        if not speed:
            return None
        return speed * 1e6

    def traffic(self) -> Traffic:
        """The traffic so far."""
        now = time.monotonic()
        if not self.name:
            return Traffic(now, None, None)
        # Unlike /sys, this file belongs to the network namespace of this process.
        counts = dict(re.findall(r"(?m)^ *(\S+):(.*)$", text(Path("/proc/net/dev"))))[self.name].split()
        return Traffic(now, int(counts[0]), int(counts[8]))


def _interface(address: str) -> str:
    """The name of the network interface with this address; empty if unknown."""
    argv = ["ip", "-o", "-4", "addr", "show", "to", f"{address}/32"]
    try:
        nothing = subprocess.DEVNULL
        printed = subprocess.run(argv, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, check=False).stdout
    except OSError:
        return ""
    if not printed:
        return ""
    return printed.decode().split()[1].split("@")[0]


class PostgresConnections:
    """Counts the connections of PostgreSQL, by a connection that does not count."""

    def __init__(self) -> None:
        as_owner = []
        if os.geteuid() == 0:
            as_owner = ["runuser", "-u", "postgres", "--"]
        argv = [*as_owner, "psql", "-XAtq", "-d", "postgres"]
        self._psql: Any = None
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        with contextlib.suppress(OSError):
            self._psql = subprocess.Popen(argv, cwd="/", bufsize=0, stdin=pipe, stdout=pipe, stderr=nowhere)

    def count(self) -> int | None:
        """Current number of connections; None if unknown."""
        try:
            self._psql.stdin.write(CONNECTIONS.encode())
            return int(self._psql.stdout.readline())
        except (AttributeError, OSError, ValueError):
            return None

    def close(self) -> None:
        """End the connection."""
        if self._psql:
            self._psql.stdin.close()
            self._psql.wait()


class HostUsage:
    """Usage from `begin` to `result`.

    settings  address, cores and link_bits_per_second of the inventory; `database`: whether to count its connections;
              `access_log` of the front, or empty
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._cores = cores(settings["cores"])
        self._link = Link(settings["address"], settings["link_bits_per_second"])
        self._database = None
        if settings["database"]:
            self._database = PostgresConnections()
        self._log_path = settings["access_log"]
        self._memory_peak: int | None = None
        self._link_peak: float | None = None
        self._connections_peak: int | None = None

    def begin(self) -> None:
        """Begin, right before the load."""
        self._sample()
        self._log = None
        if self._log_path:
            self._log = upstreams.NewLines(self._log_path)
        self._cpu = cpu_us()
        self._first = self._last = self._link.traffic()

    def watch(self, until: float) -> None:
        """Sample at intervals until the given time (time.monotonic)."""
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(INTERVAL_S, left))
            # The last sample belongs to `result`.
            if until - time.monotonic() > INTERVAL_S / 2:
                self._sample()
                self._note_link()

    def result(self) -> dict[str, Any]:
        """All figures, by the names of `HostCosts`; requests by the address of a web host."""
        ended, cpu = self._link.traffic(), cpu_us()
        received, sent = ended.since(self._first)
        self._note_link()
        self._sample()
        if self._database:
            self._database.close()
        by_address = None
        if self._log:
            time.sleep(LOG_S)
            by_address = self._log.by_address()
        cpu_seconds = None
        if cpu is not None and self._cpu is not None:
            cpu_seconds = round((cpu - self._cpu) / 1e6, 2)
        return {
            "sampled_s": round(ended.at - self._first.at, 3),
            "cores": self._cores,
            "cpu_seconds": cpu_seconds,
            "memory_bytes": memory_limit(),
            "memory_peak_bytes": self._memory_peak,
            "received_bytes": received,
            "sent_bytes": sent,
            "link_bits_per_second": self._link.rate,
            "link_peak_share": self._link_peak,
            "database_connections_peak": self._connections_peak,
            "by_address": by_address,
        }

    def _sample(self) -> None:
        """Note the memory and the connections."""
        self._memory_peak = _larger(self._memory_peak, memory_bytes())
        if self._database:
            self._connections_peak = _larger(self._connections_peak, self._database.count())

    def _note_link(self) -> None:
        """Note the traffic of the link since the last time."""
        now = self._link.traffic()
        lasted = now.at - self._last.at
        # Over a shorter time, one burst would fill the link.
        if lasted < INTERVAL_S / 2:
            return
        received, sent = now.since(self._last)
        if self._link.rate and received is not None and sent is not None:
            share = max(received, sent) * 8 / lasted / self._link.rate
            self._link_peak = max(self._link_peak or 0.0, round(share, 4))
        self._last = now

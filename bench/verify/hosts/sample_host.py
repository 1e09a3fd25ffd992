"""Run on a host of an inventory by its own Python: sample costs between the lines `start` and `stop` of standard input.

Sent as text, so without imports of this package. Lines are JSON; the first one has the settings. The program ends with
its standard input, and at the latest after `limit_s`. The response to `start` comes when sampling, the response to
`stop` has the samples; an unreadable figure is null. https://man7.org/linux/man-pages/man5/proc.5.html
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

INTERVAL_S = 1.0
# The largest share of one core that summing up the memory of processes may take.
MAX_SHARE = 0.01
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
# In a container, /proc has totals of the whole machine, but lists only the container's processes.
CONTAINER = any(Path(path).exists() for path in ("/run/systemd/container", "/run/.containerenv", "/.dockerenv"))
# The limit of CPU time that `render --size` puts on all units: microseconds, or `max`, in a period of microseconds.
SLICE = Path("/sys/fs/cgroup/benchapp.slice/cpu.max")
CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();\n"
)
# The last field of a line of the access log, quoted: the addresses of requested applications, one after another.
UPSTREAM = re.compile(rb'"([^"]*)"$')
ADDRESS = re.compile(rb"([0-9.]+):[0-9]+$")


def text(path: Path) -> str:
    """A file's text; empty if unreadable, such as for a process that has just ended."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def cpu_seconds() -> float:
    """User and system time of all programs since the host booted, including ended ones."""
    if not CONTAINER:
        user, nice, system, _, _, irq, softirq = map(int, text(PROC / "stat").split()[1:8])
        return (user + nice + system + irq + softirq) / TICKS_PER_S
    # Behind the name in parentheses: own time, and time of ended children.
    stats = filter(None, map(text, PROC.glob("[0-9]*/stat")))
    return sum(sum(map(int, stat.rpartition(")")[2].split()[11:15])) for stat in stats) / TICKS_PER_S


def memory() -> tuple[int, int | None]:
    """Bytes in use, and the host's total; None for a container, which has no separate total."""
    if CONTAINER:
        rollups = map(text, PROC.glob("[0-9]*/smaps_rollup"))
        return sum(int(size) for rollup in rollups for size in re.findall(r"\nPss: +(\d+)", rollup)) * 1024, None
    sizes = dict(re.findall(r"(\w+): +(\d+) kB", text(PROC / "meminfo")))
    return (int(sizes["MemTotal"]) - int(sizes["MemAvailable"])) * 1024, int(sizes["MemTotal"]) * 1024


def interface(address: str) -> str:
    """The name of the network interface with this address; empty if unknown."""
    argv = ["ip", "-o", "-4", "addr", "show", "to", f"{address}/32"]
    try:
        said = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    except OSError:
        return ""
    return said.decode().split()[1].split("@")[0] if said else ""


def cores(of_inventory: float | None) -> float | None:
    """Usable processor cores: of the inventory or the host, or as limited by the units' slice."""
    most = of_inventory or os.cpu_count()
    quota, _, period = text(SLICE).partition(" ")
    return min(most, int(quota) / int(period)) if most and quota.isdigit() else most


class Database:
    """Counts the connections of PostgreSQL, by a connection that does not count."""

    def __init__(self) -> None:
        as_owner = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        argv, pipe = [*as_owner, "psql", "-XAtq", "-d", "postgres"], subprocess.PIPE
        self.psql: Any = None
        with contextlib.suppress(OSError):
            self.psql = subprocess.Popen(argv, cwd="/", bufsize=0, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def count(self) -> int | None:
        """Current number of connections; None if unknown."""
        try:
            self.psql.stdin.write(CONNECTIONS.encode())
            return int(self.psql.stdout.readline())
        except (AttributeError, OSError, ValueError):
            return None


class Log:
    """New requests in an access log."""

    def __init__(self, path: str):
        self.path = Path(path)
        self.first = self._state()

    def _state(self) -> os.stat_result | None:
        try:
            return self.path.stat()
        except OSError:
            return None

    def by_address(self) -> dict[str, int] | None:
        """Number of requests by application; None for a log without addresses, or rotated meanwhile."""
        first, now = self.first, self._state()
        if not first or not now or now.st_ino != first.st_ino or now.st_size < first.st_size:
            return None
        found: Counter[str] = Counter()
        names_addresses = False
        with self.path.open("rb") as log:
            log.seek(first.st_size)
            for line in log:
                field = UPSTREAM.search(line.rstrip())
                names_addresses = names_addresses or field is not None
                # Of several, the last one responded.
                if field and (address := ADDRESS.search(field[1])):
                    found[address[1].decode()] += 1
        return dict(found) if names_addresses else None


class Sampler:
    """Samples from one `start` to its `stop`; the first sample is taken at once."""

    def __init__(self, asked: dict[str, Any], net: str, database: Database | None):
        self.net, self.database = net, database
        self.cores = cores(asked["cores"])
        self.rate: float | None = asked["link_bits_per_second"] or self._speed()
        self.log = Log(asked["access_log"]) if asked["access_log"] else None
        self.memory_peak = 0
        self.memory_total: int | None = None
        self.memory_cost_s = 0.0
        self.link_peak: float | None = None
        self.connections_peak: int | None = None
        self.sample(whole=True)
        # Since here, and since the last sample: seconds, bytes received and sent.
        self.first = self.last = (time.monotonic(), *self._bytes())
        self.cpu = cpu_seconds()

    def _speed(self) -> float | None:
        # A container may see the machine's interfaces in /sys. -1 means that the kernel does not know the speed.
        said = text(Path(f"/sys/class/net/{self.net}/speed")) if self.net and not CONTAINER else ""
        return int(said) * 1e6 if said and int(said) > 0 else None

    def _bytes(self) -> tuple[int, int]:
        if not self.net:
            return 0, 0
        # Unlike /sys, this file belongs to the network namespace of this program.
        counts = dict(re.findall(r"(?m)^ *(\S+):(.*)$", text(PROC / "net/dev")))[self.net].split()
        return int(counts[0]), int(counts[8])

    def sample(self, whole: bool = False) -> None:
        """Count connections, and measure memory; memory only at a cheap interval, except for the first and last
        sample."""
        if self.database and (count := self.database.count()) is not None:
            self.connections_peak = max(self.connections_peak or 0, count)
        if whole or self.memory_cost_s <= MAX_SHARE * (time.monotonic() - self.first[0]):
            before = time.process_time()
            used, self.memory_total = memory()
            self.memory_cost_s += time.process_time() - before
            self.memory_peak = max(self.memory_peak, used)

    def note_link(self) -> None:
        """Note how full the link was since the last time."""
        now = (time.monotonic(), *self._bytes())
        # Over a shorter time, one burst would fill the link.
        if (lasted := now[0] - self.last[0]) < INTERVAL_S / 2:
            return
        if self.net and self.rate:
            most = max(now[1] - self.last[1], now[2] - self.last[2])
            self.link_peak = max(self.link_peak or 0.0, most * 8 / lasted / self.rate)
        self.last = now

    def result(self) -> dict[str, Any]:
        """All figures; costs are counted before the last samples are taken."""
        ended, cpu, (received, sent) = time.monotonic(), cpu_seconds(), self._bytes()
        self.note_link()
        self.sample(whole=True)
        return {
            "sampled_s": round(ended - self.first[0], 3),
            "cores": self.cores,
            "cpu_seconds": round(max(0.0, cpu - self.cpu), 2),
            "memory_bytes": self.memory_total,
            "memory_peak_bytes": self.memory_peak,
            "received_bytes": received - self.first[1] if self.net else None,
            "sent_bytes": sent - self.first[2] if self.net else None,
            "link_bits_per_second": self.rate,
            "link_peak_share": None if self.link_peak is None else round(self.link_peak, 4),
            "database_connections_peak": self.connections_peak,
            "by_address": self.log.by_address() if self.log else None,
        }


def main() -> None:
    """Respond until the end of standard input; nothing is sampled before `start` and after `stop`."""
    asked = json.loads(sys.stdin.buffer.readline())
    signal.alarm(max(1, int(asked["limit_s"])))
    net = interface(asked["address"])
    database = Database() if asked["database"] else None
    sampler: Sampler | None = None
    print(json.dumps("ready"), flush=True)
    while True:
        due = max(0.0, INTERVAL_S - (time.monotonic() - sampler.last[0])) if sampler else None
        if sampler and not select.select([sys.stdin], [], [], due)[0]:
            sampler.note_link()
            sampler.sample()
            continue
        said = os.read(sys.stdin.fileno(), 100).decode()
        if not said:
            return
        for word in map(json.loads, said.split()):
            if word == "start":
                sampler = Sampler(asked, net, database)
                print(json.dumps("started"), flush=True)
            elif sampler:
                print(json.dumps(sampler.result()), flush=True)
                sampler = None


if __name__ == "__main__":
    main()

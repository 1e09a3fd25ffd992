"""The cost of servers and services under load: memory, CPU time and processes of their trees.

Memory is the proportional set size (PSS): pages that processes share are counted once, split among them, so
that the sum over forked workers is true. The kernel computes it page by page, which is costly: about once a
second is enough, and less often where a sample takes longer than a hundredth of that. A figure that cannot be read
(another user's processes, a kernel without PSS) is None, never 0.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

INTERVAL_S = 1.0
# The largest share of one core that sampling may take: a dearer sample delays the next one.
MAX_SHARE = 0.01
PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# With fewer samples there is no slope.
MIN_SAMPLES_FOR_SLOPE = 4
# Samples that are recorded of a tree: a trial of hours needs no more for its curve.
MAX_SAMPLES = 600


def thinned(samples: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """At most MAX_SAMPLES of them: evenly spread, with the first and the last."""
    if len(samples) <= MAX_SAMPLES:
        return tuple(samples)
    step = (len(samples) - 1) / (MAX_SAMPLES - 1)
    return tuple(samples[round(number * step)] for number in range(MAX_SAMPLES))


@dataclass(frozen=True)
class Usage:
    """What one server or service used between start and stop of the sampler.

    memory                    (seconds since the start, PSS in bytes) of its whole process tree; empty when not measured
    memory_peak_bytes         the largest of these, or None
    cpu_seconds               user and system time of all processes that were in its tree, or None
    processes                 the most processes seen at once, or None when there were none to see
    threads                   the most threads seen at once in all of these, or None
    replaced                  processes that ended and were replaced in their tree, as far as samples show
    memory_slope_bytes_per_s  how fast the PSS grew: the median slope between samples, or None with too few of them
    """

    memory: tuple[tuple[float, int], ...]
    memory_peak_bytes: int | None
    cpu_seconds: float | None
    processes: int | None
    threads: int | None = None
    replaced: int | None = None
    memory_slope_bytes_per_s: float | None = None


class Sampler:
    """Samples process trees in a thread of its own, and at the start and the end.

    `roots` are the process ids of the trees' roots by name, `interval_s` the time from one sample to the
    next.
    """

    def __init__(self, roots: Mapping[str, int], interval_s: float = INTERVAL_S):
        self._interval_s = interval_s
        self._trees = {name: _Tree(pid) for name, pid in roots.items()}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._began = 0.0

    def start(self) -> None:
        """Take the first sample and continue in the background."""
        self._began = time.monotonic()
        self._sample()
        self._thread.start()

    def stop(self) -> dict[str, Usage]:
        """Take the last sample and return the usage. Safe to call without start."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._sample()
        return {name: tree.usage() for name, tree in self._trees.items()}

    def _run(self) -> None:
        # Due times are fixed, so that the time a sample takes does not add up.
        due = self._began + self._interval_s
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            cost = self._sample()
            due = max(due + max(self._interval_s, cost / MAX_SHARE), time.monotonic())

    def _sample(self) -> float:
        """Sample every tree; returns the CPU seconds that this took."""
        began = time.thread_time()
        machine = _Machine()
        for tree in self._trees.values():
            tree.sample(time.monotonic() - self._began, machine)
        return time.thread_time() - began


# The kernel reuses process numbers. The number and the start, in ticks since boot, identify one process.
Key = tuple[int, int]


@dataclass(frozen=True)
class Stat:
    """What /proc/PID/stat says of a process; `own_s` and `of_children_s` are seconds of user and system time."""

    key: Key
    own_s: float
    of_children_s: float
    threads: int


@dataclass
class Times:
    """The times of processes, sample after sample."""

    first: dict[Key, Stat] | None = None
    last: dict[Key, Stat] = field(default_factory=dict)
    seen: dict[Key, Stat] = field(default_factory=dict)

    def add(self, found: dict[Key, Stat]) -> None:
        """Add a sample: all of the processes that live now."""
        if self.first is None:
            self.first = found
        self.last = found
        self.seen |= found

    def used_s(self) -> float:
        """CPU seconds from the first sample to the last: the larger of two counts, each of which can miss something.

        The times of living processes, with the children they waited for, miss a process whose parent never waits. The
        times of every process ever seen miss the time that a process used after its last sample.
        """
        first = self.first or {}
        inherited = _total(self.last) - _total(first) if self.last else 0.0
        followed = sum(it.own_s - (first[key].own_s if key in first else 0.0) for key, it in self.seen.items())
        return max(inherited, followed)

    def replaced(self) -> int:
        """Processes that ended and were replaced. One that ends for good, or an additional one, replaces none."""
        ended = self.seen.keys() - self.last.keys()
        began = self.seen.keys() - (self.first or {}).keys()
        return min(len(ended), len(began))


@dataclass
class _Tree:
    """One process tree, as seen so far."""

    root: int
    memory: list[tuple[float, int]] = field(default_factory=list)
    processes: int = 0
    threads: int = 0
    times: Times = field(default_factory=Times)

    def sample(self, at_s: float, machine: _Machine) -> None:
        """Add what the tree uses now."""
        members = machine.tree(self.root)
        sizes = [_pss_bytes(pid) for pid in members]
        known = [size for size in sizes if size is not None]
        # All processes must be readable: a part of the tree is not its size. A process that has just ended has size 0.
        if members and len(known) == len(sizes):
            self.memory.append((round(at_s, 3), sum(known)))
        found = {it.key: it for pid in members if (it := stat(pid)) is not None}
        self.processes = max(self.processes, len(found))
        self.threads = max(self.threads, sum(it.threads for it in found.values()))
        self.times.add(found)

    def usage(self) -> Usage:
        """What was used from the first sample to the last."""
        return Usage(
            memory=thinned(self.memory),
            memory_peak_bytes=max((size for _, size in self.memory), default=None),
            cpu_seconds=round(self.times.used_s(), 3) if self.times.first else None,
            processes=self.processes or None,
            threads=self.threads or None,
            replaced=self.times.replaced() if self.times.first else None,
            memory_slope_bytes_per_s=slope(self.memory),
        )


def slope(samples: Iterable[tuple[float, int]]) -> float | None:
    """How fast a size grows, in its unit a second: the median of the slopes between every two samples (Theil-Sen).

    One wrong sample does not bend it. None with fewer than MIN_SAMPLES_FOR_SLOPE samples.
    """
    points = list(samples)
    if len(points) < MIN_SAMPLES_FOR_SLOPE:
        return None
    slopes = [
        (size - earlier) / (at - before)
        for number, (at, size) in enumerate(points)
        for before, earlier in points[:number]
        if at > before
    ]
    return round(statistics.median(slopes), 1) if slopes else None


def _total(found: Mapping[Key, Stat]) -> float:
    return sum(it.own_s + it.of_children_s for it in found.values())


def members(root: int) -> list[int]:
    """The processes of a tree now: its root, if it lives, and all below it."""
    return _Machine().tree(root)


def cpu_seconds(root: int) -> float:
    """User and system time of a process tree until now, with that of the children it has waited for."""
    return _total({it.key: it for pid in members(root) if (it := stat(pid)) is not None})


def machine_busy_s() -> float | None:
    """Seconds for which the machine's cores ran processes, or its host other machines; None when it does not report it.

    Interrupts have no owner and do not count.
    """
    try:
        times = psutil.cpu_times()
    except (OSError, RuntimeError):
        return None
    return times.user + getattr(times, "nice", 0.0) + times.system + getattr(times, "steal", 0.0)


def memory_bytes(root: int) -> int | None:
    """PSS of a process tree now, or None when a part of it cannot be read."""
    sizes = [_pss_bytes(pid) for pid in members(root)]
    return None if not sizes or None in sizes else sum(size for size in sizes if size)


class _Machine:
    """The machine's processes at one moment.

    Where the kernel lists the children of a process (CONFIG_PROC_CHILDREN), only the trees are read; elsewhere every
    process is read once.
    """

    def __init__(self) -> None:
        self._by_parent: dict[int, list[int]] | None = None

    def tree(self, root: int) -> list[int]:
        """The root of a tree, if it lives, and all below it."""
        if not (PROC / str(root)).is_dir():
            return []
        members = [root]
        for pid in members:
            members.extend(self._children(pid))
        return members

    def _children(self, pid: int) -> list[int]:
        if self._by_parent is not None:
            return self._by_parent.get(pid, [])
        found: list[int] = []
        # A child belongs to the thread that started it.
        for thread in _listed(PROC / str(pid) / "task"):
            try:
                found += map(int, (thread / "children").read_bytes().split())
            except FileNotFoundError:
                if thread.is_dir():
                    self._by_parent = _by_parent()
                    return self._by_parent.get(pid, [])
            except OSError:
                continue
        return found


def _listed(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []


def _by_parent() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for process in psutil.process_iter(["ppid"]):
        found.setdefault(process.info["ppid"], []).append(process.pid)
    return found


def stat(pid: int) -> Stat | None:
    """Times and threads of a process (proc(5), /proc/PID/stat), None when it has ended."""
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name stands in parentheses and may hold anything; what follows it begins with the third field.
    fields = text[text.rindex(b")") + 2 :].split()
    user, system, of_children_user, of_children_system = (int(fields[number]) / TICKS_PER_S for number in range(11, 15))
    return Stat(
        key=(pid, int(fields[19])),
        own_s=user + system,
        of_children_s=of_children_user + of_children_system,
        threads=int(fields[17]),
    )


def _pss_bytes(pid: int) -> int | None:
    """PSS of one process; 0 when it has ended, None when it may not or cannot be read."""
    folder = PROC / str(pid)
    try:
        text = (folder / "smaps_rollup").read_text()
    except ProcessLookupError:
        return 0
    except FileNotFoundError:
        # A kernel without this file has the directory all the same.
        return None if folder.exists() or not folder.parent.is_dir() else 0
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return None

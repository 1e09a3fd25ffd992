"""The cost of servers and services under load (memory, CPU time, processes), and the interference of all others.

Memory is the proportional set size (PSS): pages shared by processes are counted once, split among them, so that the sum
over forked workers is true. The kernel computes PSS page by page, which is costly: about once a second is enough, and
less often if a sample takes longer than a hundredth of the interval. An unreadable figure (another user's processes, a
kernel without PSS) stays unknown: None, never 0.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

INTERVAL_S = 1.0
# The largest share of one core that sampling may take: a dearer sample delays the next one.
MAX_SHARE = 0.01
# Exists if the kernel lists the children of a process (CONFIG_PROC_CHILDREN).
CHILDREN = Path("/proc/thread-self/children")
# With fewer samples there is no slope.
MIN_SAMPLES_FOR_SLOPE = 4
# Seconds for which the other processes of the machine are observed, and how many of them are named.
OBSERVED_S = 1.0
MAX_NAMED = 3
MIN_NAMED = 0.02
# Samples that are recorded of a tree: a trial of hours needs no more for its curve.
MAX_SAMPLES = 600


@dataclass(frozen=True)
class Usage:
    """Resource usage of one server or service between start and stop of the sampler.

    memory                    (seconds since the start, PSS in bytes) of the whole process tree; empty when not measured
    memory_peak_bytes         the largest of these, or None
    cpu_seconds               user and system time of all processes of the tree, or None
    processes                 the most processes at once, or None when there were none to see
    replaced                  processes that ended and were replaced in the tree, as far as samples show
    memory_slope_bytes_per_s  the growth of PSS: the median slope between samples, or None with too few samples
    below                     CPU seconds of each process below the root, the busiest first
    """

    memory: tuple[tuple[float, int], ...]
    memory_peak_bytes: int | None
    cpu_seconds: float | None
    processes: int | None
    replaced: int | None = None
    memory_slope_bytes_per_s: float | None = None
    below: tuple[float, ...] = ()


class Sampler:
    """Samples process trees in a thread, and at the start and the end.

    `roots` are the process ids of the trees' roots by name, `interval_s` the time from one sample to the next. Memory
    is the expensive part of a sample, and can be left out.
    """

    def __init__(self, roots: Mapping[str, int], interval_s: float = INTERVAL_S, memory: bool = True):
        self._interval_s = interval_s
        self._memory = memory
        self._trees = {name: _Tree(pid) for name, pid in roots.items()}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._began = 0.0

    def __enter__(self) -> Sampler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

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
        """Sample every tree; returns the CPU seconds of the sample itself."""
        began = time.thread_time()
        for tree in self._trees.values():
            tree.sample(time.monotonic() - self._began, self._memory)
        return time.thread_time() - began


# Processes -> their times so far: their own, and those of the children they have waited for.
_Times = dict[psutil.Process, Any]


def _times(processes: Iterable[psutil.Process]) -> _Times:
    """The CPU times of the processes that still run."""
    times = {}
    for process in processes:
        with contextlib.suppress(psutil.Error):
            times[process] = process.cpu_times()
    return times


def _own_s(times: Any) -> float:
    """Seconds of user and system time of a process, without its children."""
    return float(times.user + times.system)


def _total_s(times: _Times) -> float:
    """Seconds of processes, and of the children that they have waited for."""
    total_s = 0.0
    for of_process in times.values():
        total_s += _own_s(of_process) + of_process.children_user + of_process.children_system
    return total_s


class _Tree:
    """One process tree, as seen so far. A process with a killed parent stays, such as a worker without its master.

    A psutil.Process is identified by its number and its start: the kernel reuses process numbers.
    """

    def __init__(self, root: int):
        self._root = root
        self._memory: list[tuple[float, int]] = []
        self._processes = 0
        self._first: _Times = {}
        self._last: _Times = {}
        self._all: _Times = {}

    def sample(self, at_s: float, memory: bool) -> None:
        """Add the tree's present usage."""
        processes = members(self._root)
        processes += [process for process in self._last.keys() - set(processes) if process.is_running()]
        if memory and (size := _pss_bytes(processes)) is not None:
            self._memory.append((round(at_s, 3), size))
        self._last = _times(processes)
        if not self._all:
            self._first = self._last
        self._all |= self._last
        self._processes = max(self._processes, len(self._last))

    def usage(self) -> Usage:
        """The usage from the first sample to the last."""
        first, last, seen = self._first, self._last, self._all
        each = {process: _own_s(times) for process, times in seen.items()}
        for process, times in first.items():
            each[process] -= _own_s(times)
        below = [round(used_s, 3) for process, used_s in each.items() if process.pid != self._root]
        # Of two counts each can miss something. That of every process ever seen misses what it used after its last
        # sample; that of the living ones, with the children they waited for, a process whose parent never waits.
        inherited_s, cpu_s, replaced = 0.0, None, None
        if last:
            inherited_s = _total_s(last) - _total_s(first)
        if seen:
            cpu_s = round(max(inherited_s, sum(each.values())), 3)
            # One that ends for good, or an additional one, replaces none.
            replaced = min(len(seen.keys() - last.keys()), len(seen.keys() - first.keys()))
        return Usage(
            memory=thinned(self._memory),
            memory_peak_bytes=max((size for _, size in self._memory), default=None),
            cpu_seconds=cpu_s,
            processes=self._processes or None,
            replaced=replaced,
            memory_slope_bytes_per_s=slope(self._memory),
            below=tuple(sorted(below, reverse=True)),
        )


class Interference:
    """The share of all cores that processes outside a measurement take, from the creation of this object on."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy_s = machine_busy_s()

    def share(self, ours_s: Iterable[float | None]) -> float | None:
        """The share until now; `ours_s` are CPU seconds of the measurement's own processes, this one included.

        None if the machine does not report the share, or one of these is not known.
        """
        ours_s = list(ours_s)
        known = [seconds for seconds in ours_s if seconds is not None]
        elapsed = (time.monotonic() - self._began) * (psutil.cpu_count() or 1)
        busy_s = machine_busy_s()
        if busy_s is None or self._busy_s is None or len(known) < len(ours_s) or not elapsed:
            return None
        return round(min(1.0, max(0.0, (busy_s - self._busy_s - sum(known)) / elapsed)), 4)


@dataclass(frozen=True)
class MachineLoad:
    """Current CPU usage of other processes on the machine.

    share  of all cores; None if the machine does not report the share
    words  the share, and the busiest visible processes
    """

    share: float | None
    words: str

    @classmethod
    def of(cls, share: float | None, others: Mapping[tuple[int, str], float]) -> MachineLoad:
        """From the share of all others, and the share of every visible process, by number and name."""
        busiest = sorted(others.items(), key=lambda item: -item[1])[:MAX_NAMED]
        named = [f"{name}, process {pid}: {part:.0%}" for (pid, name), part in busiest if part >= MIN_NAMED]
        words = f"other processes take {share or 0:.0%} of this machine"
        return cls(share, f"{words} ({'; '.join(named) or 'none that can be seen from here'})")


def machine_load(seconds: float = OBSERVED_S) -> MachineLoad:
    """Observe the processes of others, without this process and its children, for some seconds."""
    interference, before, began = Interference(), _times(psutil.process_iter()), time.monotonic()
    time.sleep(seconds)
    after, cores_s = _times(psutil.process_iter(["name"])), (time.monotonic() - began) * (psutil.cpu_count() or 1)
    ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    ours_s, others = 0.0, {}
    for process in after.keys() & before.keys():
        used_s = _own_s(after[process]) - _own_s(before[process])
        if process.pid in ours:
            ours_s += used_s
        else:
            others[process.pid, process.info["name"]] = used_s / cores_s
    return MachineLoad.of(interference.share([ours_s]), others)


def machine_busy_s() -> float | None:
    """Seconds for which the machine's cores ran processes, or its host other machines; None if the machine does not
    say.

    Interrupts have no owner and do not count.
    """
    try:
        times = psutil.cpu_times()
    except (OSError, RuntimeError):
        return None
    return times.user + getattr(times, "nice", 0.0) + times.system + getattr(times, "steal", 0.0)


def members(root: int) -> list[psutil.Process]:
    """The present processes of a tree: its root, if alive, and all below."""
    processes: list[psutil.Process] = []
    pids = [root]
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            processes.append(psutil.Process(pid))
            if not CHILDREN.exists():
                return [*processes, *processes[0].children(recursive=True)]
            # psutil reads all processes of the machine to find children, which costs ten times as much and more.
            for path in _listed(Path(f"/proc/{pid}/task")):
                with contextlib.suppress(OSError):
                    pids += map(int, (path / "children").read_bytes().split())
    return processes


def _listed(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []


def cpu_seconds(root: int) -> float:
    """User and system time of a process tree until now, with ended children."""
    return _total_s(_times(members(root)))


def memory_bytes(root: int) -> int | None:
    """PSS of a process tree now, or None if a part is unreadable."""
    return _pss_bytes(members(root))


def slope(samples: Iterable[tuple[float, int]]) -> float | None:
    """The growth of a size, in its unit a second: the median of the slopes between every two samples (Theil-Sen).

    One wrong sample has no effect. None with fewer than MIN_SAMPLES_FOR_SLOPE samples.
    """
    points = list(samples)
    if len(points) < MIN_SAMPLES_FOR_SLOPE:
        return None
    pairs = itertools.combinations(points, 2)
    slopes = [(size - earlier) / (at - before) for (before, earlier), (at, size) in pairs if at > before]
    if not slopes:
        return None
    return round(statistics.median(slopes), 1)


def thinned(samples: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """At most MAX_SAMPLES of these: evenly spread, with the first and the last."""
    if len(samples) <= MAX_SAMPLES:
        return tuple(samples)
    step = (len(samples) - 1) / (MAX_SAMPLES - 1)
    return tuple(samples[round(number * step)] for number in range(MAX_SAMPLES))


def _pss_bytes(processes: Iterable[psutil.Process]) -> int | None:
    """PSS of these processes; None without processes, or if one is unreadable: a part of a tree is not its size."""
    sizes = []
    for process in processes:
        try:
            sizes.append(process.memory_full_info().pss)
        except psutil.NoSuchProcess:
            # It has just ended.
            sizes.append(0)
        except (psutil.AccessDenied, OSError, AttributeError):
            return None
    if not sizes:
        return None
    return sum(sizes)

"""What servers and services cost while they are under load: memory, processor time and processes of their trees.

Memory is the proportional set size (PSS): pages that processes share are counted once, split among them, so
that the sum over forked workers is true. The kernel computes it page by page, which is costly: about once a
second is enough. What may not be read (another user's processes, a kernel without it) is None, never 0.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

INTERVAL_S = 1.0


@dataclass(frozen=True)
class Usage:
    """What one server or service used between start and stop of the sampler.

    memory             (seconds since the start, PSS in bytes) of its whole process tree; empty when not
    measured memory_peak_bytes  the largest of these, or None cpu_seconds        user and system time of all
    processes that were in its tree, or None processes          the most processes seen at once, or None when
    there were none to see
    """

    memory: tuple[tuple[float, int], ...]
    memory_peak_bytes: int | None
    cpu_seconds: float | None
    processes: int | None


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
        # Processor seconds that sampling itself cost.
        self.cost_seconds = 0.0

    def start(self) -> None:
        """Take the first sample and go on in the background."""
        self._began = time.monotonic()
        self._sample()
        self._thread.start()

    def stop(self) -> dict[str, Usage]:
        """Take the last sample and give back what was used. Safe to call when start was not reached."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._sample()
        return {name: tree.usage() for name, tree in self._trees.items()}

    def _run(self) -> None:
        # Due times are fixed, so that the time a sample takes does not add up.
        due = self._began + self._interval_s
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self._sample()
            due = max(due + self._interval_s, time.monotonic())

    def _sample(self) -> None:
        began = time.thread_time()
        children = _children()
        for tree in self._trees.values():
            tree.sample(time.monotonic() - self._began, children)
        self.cost_seconds += time.thread_time() - began


@dataclass
class _Tree:
    """One process tree, as seen so far."""

    root: int
    memory: list[tuple[float, int]] = field(default_factory=list)
    processes: int = 0
    # Seconds of user and system time by process: (own, of its children that ended and were waited for).
    first: dict[tuple[int, float], tuple[float, float]] | None = None
    last: dict[tuple[int, float], tuple[float, float]] = field(default_factory=dict)
    seen: dict[tuple[int, float], tuple[float, float]] = field(default_factory=dict)

    def sample(self, at_s: float, children: Mapping[int, list[psutil.Process]]) -> None:
        """Add what the tree uses now."""
        members = _members(self.root, children)
        self.processes = max(self.processes, len(members))
        sizes = [_pss_bytes(process.pid) for process in members]
        known = [size for size in sizes if size is not None]
        # A part of a tree is not its size: all must be readable. Processes that ended meanwhile are size 0.
        if members and len(known) == len(sizes):
            self.memory.append((round(at_s, 3), sum(known)))
        times = _times(members)
        if self.first is None:
            self.first = times
        self.last = times
        self.seen |= times

    def usage(self) -> Usage:
        """What was used from the first sample to the last."""
        return Usage(
            memory=tuple(self.memory),
            memory_peak_bytes=max((size for _, size in self.memory), default=None),
            cpu_seconds=self._cpu_seconds(),
            processes=self.processes or None,
        )

    def _cpu_seconds(self) -> float | None:
        """Two counts that can each miss something and never count too much, hence the larger.

        Times of the living with those of the children they waited for miss a process whose parent never waits
        for it; times of every process ever seen miss what a process used after it was last seen.
        """
        first = self.first or {}
        if not first:
            return None
        inherited = _total(self.last) - _total(first) if self.last else 0.0
        followed = sum(own - first.get(key, (0.0, 0.0))[0] for key, (own, _) in self.seen.items())
        return round(max(inherited, followed), 3)


def _total(times: Mapping[tuple[int, float], tuple[float, float]]) -> float:
    return sum(own + of_children for own, of_children in times.values())


def _children() -> dict[int, list[psutil.Process]]:
    """Every process of the machine by its parent, in one look."""
    found: dict[int, list[psutil.Process]] = {}
    for process in psutil.process_iter(["ppid"]):
        found.setdefault(process.info["ppid"], []).append(process)
    return found


def _members(root: int, children: Mapping[int, Iterable[psutil.Process]]) -> list[psutil.Process]:
    """The root of a tree, if it lives, and all below it."""
    try:
        members = [psutil.Process(root)]
    except psutil.NoSuchProcess:
        return []
    for process in members:
        members.extend(children.get(process.pid, ()))
    return members


def _times(members: Iterable[psutil.Process]) -> dict[tuple[int, float], tuple[float, float]]:
    times = {}
    for process in members:
        try:
            used = process.cpu_times()
            key = (process.pid, process.create_time())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        of_children = getattr(used, "children_user", 0.0) + getattr(used, "children_system", 0.0)
        times[key] = (used.user + used.system, of_children)
    return times


def _pss_bytes(pid: int) -> int | None:
    """PSS of one process; 0 when it has ended, None when it may not or cannot be read."""
    folder = Path("/proc") / str(pid)
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

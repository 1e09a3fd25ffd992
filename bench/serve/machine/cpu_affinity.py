"""Pin the load tool, the stack and its services to separate processor cores, so that none takes time from another.

With fewer than four cores that would take too much from the stack, so nothing is pinned.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import psutil

CORES_FOR_ALL = 4
LOAD, STACK, SERVICES = "load", "stack", "services"

Cores = Mapping[str, tuple[int, ...]]


def affinity() -> tuple[int, ...]:
    """The numbers of the processor cores this process may use, which can be fewer than the machine has."""
    return tuple(sorted(os.sched_getaffinity(0)))


def cores(available: Iterable[int]) -> dict[str, tuple[int, ...]] | None:
    """Cores of load, stack and services out of the available ones; None if nothing is pinned."""
    free = tuple(sorted(available))
    if len(free) < CORES_FOR_ALL:
        return None
    share = len(free) // 4
    return {LOAD: free[-share:], SERVICES: free[-2 * share : -share], STACK: free[: -2 * share]}


@contextlib.contextmanager
def pinned(pinned: Cores | None, part: str) -> Iterator[None]:
    """Pin the programs that this thread starts inside the block to the cores of a part."""
    if pinned is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, pinned[part])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def move(pinned: Cores | None, part: str, roots: Iterable[int]) -> None:
    """Move running process trees, all their threads, to the cores of a part."""
    if pinned is None:
        return
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(root)
            for member in (process, *process.children(recursive=True)):
                _move(member.pid, pinned[part])


def _move(pid: int, cores: tuple[int, ...]) -> None:
    with contextlib.suppress(OSError):
        for task in (Path("/proc") / str(pid) / "task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(task.name), cores)

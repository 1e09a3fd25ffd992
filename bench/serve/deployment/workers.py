"""The number of processes of `processes = auto`: as many as the processors and the memory have room for.

Synchronous workers wait for the database half of their time, so each processor has two; one more waits with the next
request.
"""

from __future__ import annotations

import math

import psutil

from bench.serve.catalog.sizes import Size
from bench.serve.machine import cgroups, cpu_affinity
from bench.words import MIB

# The needs of the web server, the master and the services beside the workers.
BESIDE_MB = 48
# The rest is for the page cache and for requests above the average.
SHARE = 0.8
# Of the memory of a machine that runs other programs, too.
SHARE_OF_MACHINE = 0.5
# The memory of a worker in MiB, if the kernel does not say.
USUAL_WORKER_MB = 60.0


def memory_here_mb() -> float:
    """The most MiB that the workers can have here: of this machine's control group, or of the machine."""
    _, memory_bytes = cgroups.own_limits()
    return (memory_bytes or psutil.virtual_memory().total) / MIB - BESIDE_MB


def _room(size: Size) -> tuple[float, float, str]:
    """Processors and MiB of memory for the processes, and the owner of these limits, in words.

    Without limits of a size, those of this machine's control group, or of half the machine.
    """
    if size.is_limited:
        return size.cpus, size.burstable_mb * SHARE, f"size {size.name}"
    limit, memory_bytes = cgroups.own_limits()
    processors = min(limit or math.inf, len(cpu_affinity.affinity()))
    if memory_bytes is None:
        return processors, psutil.virtual_memory().total / MIB * SHARE_OF_MACHINE, "this machine"
    return processors, memory_bytes / MIB * SHARE, "this control group"


def fitting(size: Size, worker_mb: float, threads: int) -> tuple[int, str]:
    """The number of processes with so many threads each that have room in a size, and why."""
    processors, memory_mb, owner = _room(size)
    by_processors = max(1, round(processors))
    if threads == 1:
        by_processors = math.ceil(2 * processors + 1)
    by_memory = int((memory_mb - BESIDE_MB) / worker_mb)
    number = max(1, min(by_processors, by_memory))
    limit = "processors"
    if by_memory < by_processors:
        limit = "memory"
    suit = f"{processors:g} processors suit"
    if processors == 1:
        suit = "1 processor suits"
    return number, (
        f"processes=auto: {number}, limited by the {limit} of {owner}: {suit} {by_processors}, "
        f"{memory_mb:.0f} MiB hold {max(0, by_memory)} of {worker_mb:.0f} MiB each"
    )

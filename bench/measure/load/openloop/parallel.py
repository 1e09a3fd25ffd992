"""The processes of a load: all of a job, or the part of one machine."""

from __future__ import annotations

import gc
import multiprocessing
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from bench.measure.load.openloop.counts import together
from bench.measure.load.openloop.job import LoadJob
from bench.measure.load.openloop.loop import ClosedLoop
from bench.measure.load.openloop.open import OpenLoop

# Time to fork a process; all begin together after it.
FORK_S = 0.05


def make(job: LoadJob) -> dict[str, Any]:
    """Make the load; returns the sum of the counts of this machine's processes."""
    numbers, fork = job.numbers, multiprocessing.get_context("fork")
    begins = time.monotonic() + FORK_S * len(numbers)
    if job.begins is not None:
        begins = time.monotonic() + job.begins - time.time()
    gc.disable()
    if len(numbers) == 1:
        return together([_part(job, numbers[0], begins)])
    children = []
    for number in numbers:
        read, write = fork.Pipe(duplex=False)
        # Daemons end with this process if interrupted, or if another daemon fails.
        child = fork.Process(target=_send, args=(write, job, number, begins), daemon=True)
        child.start()
        write.close()
        children.append((child, read))
    parts = []
    for child, read in children:
        try:
            parts.append(read.recv())
        except EOFError:
            sys.exit("a process of the load tool failed")
        # Only the CPU time of a child that was waited for is known.
        child.join()
    return together(parts)


def _part(job: LoadJob, number: int, begins: float) -> dict[str, Any]:
    """Make the load of one process; returns its counts."""
    kind: type[ClosedLoop | OpenLoop] = OpenLoop
    if job.rate is None:
        kind = ClosedLoop
    loop = kind(job, number, begins)
    loop.counts.late_s = round(max(0.0, time.monotonic() - begins), 6)
    return loop.run().packed()


def _send(pipe: Connection, job: LoadJob, number: int, begins: float) -> None:
    pipe.send(_part(job, number, begins))

"""The processes of a load: all of a job's, or those that one of several machines makes."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from typing import Any

from bench.load.openloop.counts import together
from bench.load.openloop.job import Job
from bench.load.openloop.loop import ClosedLoop
from bench.load.openloop.open import OpenLoop

# Time to fork a process; all begin together after it.
FORK_S = 0.05


def make(job: Job) -> dict[str, Any]:
    """Make the load; returns the sum of the counts of this machine's processes."""
    numbers = job.numbers
    begins = time.monotonic() + FORK_S * len(numbers)
    if job.begins is not None:
        begins = time.monotonic() + job.begins - time.time()
    gc.disable()
    if len(numbers) == 1:
        return together([_part(job, numbers[0], begins)])
    return together(_wait([_fork(job, number, begins) for number in numbers]))


def _part(job: Job, number: int, begins: float) -> dict[str, Any]:
    """Make the load of one process; returns its counts."""
    loop = (ClosedLoop if job.rate is None else OpenLoop)(job, number, begins)
    loop.counts.late_s = round(max(0.0, time.monotonic() - begins), 6)
    return loop.run().packed()


def _fork(job: Job, number: int, begins: float) -> tuple[int, int]:
    """A process that makes its part of the load: its id, and the pipe that its counts will come from."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    os.close(read)
    status = 1
    try:
        part = _part(job, number, begins)
        with os.fdopen(write, "w") as file:
            json.dump(part, file)
        status = 0
    finally:
        os._exit(status)


def _wait(children: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """The counts of all processes, which are killed when one fails or the load is interrupted."""
    left = {pid for pid, _ in children}
    parts = []
    try:
        for pid, read in children:
            with os.fdopen(read) as file:
                text = file.read()
            left.discard(pid)
            if os.waitpid(pid, 0)[1]:
                sys.exit("a process of the load tool failed")
            parts.append(json.loads(text))
        return parts
    finally:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

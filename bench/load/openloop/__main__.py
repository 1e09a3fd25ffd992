"""python -m bench.load.openloop JOB.json: HTTP load at a fixed rate, or as fast as the answers come.

JOB.json holds the fields of bench.load.openloop.job.EngineJob: with a rate an open loop, without one a closed loop.
Progress goes to stderr, the figures to stdout as one JSON object.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from bench.load.openloop import VERSION
from bench.load.openloop.closed import ClosedLoop
from bench.load.openloop.counts import together
from bench.load.openloop.job import EngineJob
from bench.load.openloop.open import OpenLoop

# Time to fork a process; all begin together after it.
FORK_S = 0.05


def main() -> int:
    """Make the load of a job; returns 0 when it was made, whatever the answers were."""
    parser = argparse.ArgumentParser(prog="openloop", description=__doc__)
    parser.add_argument("job", type=Path, help="the job as JSON")
    parser.add_argument("--version", action="version", version=f"openloop {VERSION}")
    job = EngineJob.read(parser.parse_args().job)
    begins = time.monotonic() + FORK_S * job.processes
    gc.disable()
    if job.processes == 1:
        parts = [_part(job, 0, begins)]
    else:
        parts = _wait([_fork(job, number, begins) for number in range(job.processes)])
    print(json.dumps(together(parts)))
    return 0


def _part(job: EngineJob, number: int, begins: float) -> dict[str, Any]:
    """Make the load of one process; returns its counts."""
    loop = ClosedLoop if job.rate is None else OpenLoop
    return loop(job, number, begins).run().packed()


def _fork(job: EngineJob, number: int, begins: float) -> tuple[int, int]:
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


if __name__ == "__main__":
    sys.exit(main())

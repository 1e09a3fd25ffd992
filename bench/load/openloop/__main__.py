"""python -m bench.load.openloop JOB.json: requests at a fixed rate, latency from the moment each was due.

JOB.json holds url, paths, rate (requests/s), seconds, timeout_s, keep_alive, connections (the most that may be open)
and processes. Progress goes to stderr, the figures to stdout as one JSON object.

Request number i is due i / rate seconds after the start. It leaves then, on an idle connection or a new one; how late
it left is recorded too, and a request that found no connection until the end counts as dropped. After the last due
time the answers under way are waited for.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from pathlib import Path

from bench.figures import histogram
from bench.load.openloop import VERSION
from bench.load.openloop.loop import Loop, Outcome


def main() -> int:
    """Make the load of a job; returns 0 when it was made, whatever the answers were."""
    parser = argparse.ArgumentParser(prog="openloop", description=__doc__)
    parser.add_argument("job", type=Path, help="the job as JSON")
    parser.add_argument("--version", action="version", version=f"openloop {VERSION}")
    job = json.loads(parser.parse_args().job.read_text("utf-8"))
    processes = job["processes"]
    begins = time.monotonic() + 0.05 * processes
    gc.disable()
    if processes == 1:
        outcomes = [Loop(job, 0, begins).run()]
    else:
        outcomes = _together([_forked(job, number, begins) for number in range(processes)])
    print(json.dumps(_figures(outcomes)))
    return 0


def _forked(job: dict, number: int, begins: float) -> tuple[int, int]:
    """A process that makes every n-th request; its id and where its outcome will come from."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    os.close(read)
    status = 1
    try:
        outcome = Loop(job, number, begins).run()
        with os.fdopen(write, "w") as file:
            json.dump(outcome.packed(), file)
        status = 0
    finally:
        os._exit(status)


def _together(parts: list[tuple[int, int]]) -> list[Outcome]:
    """The outcomes of all processes. Exits when one of them failed."""
    texts = []
    for _, read in parts:
        with os.fdopen(read) as file:
            texts.append(file.read())
    if sum(os.waitpid(pid, 0)[1] for pid, _ in parts):
        sys.exit("a process of the load tool failed")
    return [Outcome.unpacked(json.loads(text)) for text in texts]


def _figures(parts: list[Outcome]) -> dict:
    total = parts[0]
    for part in parts[1:]:
        total.add(part)
    return {
        "seconds": total.seconds,
        "answers": total.latency.total_count,
        "due": total.due,
        "dropped": total.dropped,
        "bytes": total.received,
        "statuses": {str(status): count for status, count in sorted(total.statuses.items())},
        "thirds": total.thirds,
        "connect": total.connect,
        "read": total.read,
        "timeout": total.timeout,
        "resized": total.resized,
        "max_us": total.longest_us,
        "latency": histogram.encode(total.latency),
        "delay": histogram.encode(total.delay),
        "opened": total.opened,
    }


if __name__ == "__main__":
    sys.exit(main())

"""The program of the archive on each host (`archive`): warm up, make the host's share of a load, and note its usage.

    ARCHIVE HOST BEGINS

BEGINS is the start of the load by the controller's clock, in seconds since 1970; the warm-up ends before. The last line
of the output is the result in JSON, packed. Standard library only.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import resource
import signal
import sys
import time
import zlib
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from bench.measure.hosts.host_usage import HostUsage
from bench.measure.load.openloop import parallel
from bench.measure.load.openloop.job import LoadJob

TRIAL = "trial.json"
# Beyond the last response: a controller whose machine has gone ends nothing.
GRACE_S = 30
# For the last responses of the warm-up.
PAUSE_S = 0.3


def main(argv: list[str]) -> None:
    """Do what the command says, for the trial in the archive."""
    archive, host, begins = argv
    trial = json.loads(ZipFile(archive).read(TRIAL))
    # Nothing stays on a host, however this ends. The folder was made for this file.
    with contextlib.suppress(OSError):
        Path(archive).unlink()
        Path(archive).parent.rmdir()
    own = trial["hosts"][host]
    here = float(begins) + own["ahead_ms"] / 1000
    warm_up_s = trial["warm_up_s"]
    if own["processes"] and warm_up_s:
        _make_load(trial, own, seconds=warm_up_s, times=(), begins=here - PAUSE_S - warm_up_s)
    packed = zlib.compress(json.dumps(_load(trial, own, here)).encode())
    print(base64.b64encode(packed).decode())


def unpacked(line: str) -> dict[str, Any]:
    """The result of a load from the line that the program printed; raises ValueError for another line."""
    try:
        result: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(line, validate=True)))
    except zlib.error as error:
        raise ValueError(str(error)) from None
    return result


def _load(trial: dict[str, Any], own: dict[str, Any], begins: float) -> dict[str, Any]:
    """Counts, processor seconds and usage of the host; no counts without a share in the load."""
    fork = get_context("fork")
    read, write = fork.Pipe(duplex=False)
    ends = begins + trial["job"]["seconds"]
    watching = fork.Process(target=_watch, args=(write, own["usage"], begins, ends), daemon=True)
    watching.start()
    counts, used_s = None, 0.0
    if own["processes"]:
        before = _cpu_seconds()
        counts = _make_load(trial, own, begins=begins)
        # Without the time of the process that watches, which was not waited for yet.
        used_s = round(_cpu_seconds() - before, 3)
    return {"counts": counts, "cpu_s": used_s, "usage": read.recv()}


def _make_load(trial: dict[str, Any], own: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The counts of the host's processes."""
    job = LoadJob(**{**trial["job"], "own": own["processes"], **changes})
    lead_s = max(0.0, (job.begins or 0.0) - time.time())
    # SIGALRM ends the program, and its processes end with it.
    signal.alarm(int(lead_s) + job.seconds + job.timeout_s + GRACE_S)
    # Each connection is an open file.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return parallel.make(job)


def _watch(pipe: Connection, settings: dict[str, Any], begins: float, ends: float) -> None:
    """Send the usage of the host from `begins` to `ends`, in seconds since 1970."""
    offset = time.monotonic() - time.time()
    usage = HostUsage(settings)
    time.sleep(max(0.0, begins - time.time()))
    usage.begin()
    usage.watch(ends + offset)
    pipe.send(usage.result())


def _cpu_seconds() -> float:
    """Of this process, and of its ended children."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main(sys.argv)

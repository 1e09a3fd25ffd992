"""The worker processes of a deployment's servers, killed while the site serves."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Container

import psutil

from bench.verify.context import Context
from bench.verify.finding import NotTried
from bench.verify.wire import BadAnswer

# How soon the site must answer again, and how many times in a row: as often as it may have workers.
BACK_S = 10.0
ANSWERS = 8
PAUSE_S = 0.02
# The longest time until a master asks for the status of a killed worker.
GONE_S = 1.0
NO_WORKERS = "no server here has worker processes under a master"
# Some masters give up when the new worker dies at its start.
NOT_BACK = f"the site does not come back within {BACK_S:g} s after its workers are killed"


def servers_of(context: Context) -> list[str]:
    """The names of the servers of the deployment, the innermost first."""
    return [server.name for server in context.own.case.servers]


def kill_workers(context: Context, servers: Container[str]) -> int:
    """Kill the worker processes of these servers with SIGKILL, and wait until they are gone; returns how many."""
    killed = []
    for name, pid in context.own.pids.items():
        if re.sub(r"-\d+$", "", name) in servers:
            with contextlib.suppress(psutil.Error):
                killed += psutil.Process(pid).children(recursive=True)
    for worker in killed:
        with contextlib.suppress(psutil.Error):
            worker.kill()
    psutil.wait_procs(killed, timeout=GONE_S)
    return len(killed)


def must_kill_application(context: Context) -> None:
    """Kill the workers of the application server; raises NotTried where it has none."""
    if not kill_workers(context, servers_of(context)[:1]):
        raise NotTried(NO_WORKERS)


def is_back(context: Context) -> bool:
    """Wait until the site answers again; returns whether it does in time."""
    return seconds_until(context, context.site.url("health"), ANSWERS) is not None


def seconds_until(context: Context, path: str, times: int = 1) -> float | None:
    """How long it takes until a page is answered with 200 so many times in a row; None when that takes too long."""
    begun, answers = time.monotonic(), 0
    while answers < times:
        if time.monotonic() - begun > BACK_S:
            return None
        try:
            answers = answers + 1 if context.get(path).status == 200 else 0
        except (BadAnswer, OSError):
            answers = 0
            time.sleep(PAUSE_S)
    return time.monotonic() - begun

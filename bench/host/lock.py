"""A lock that one process of the machine can hold at a time."""

from __future__ import annotations

import fcntl
import os
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil

from bench.errors import BenchError

POLL_S = 0.1
WAIT_S = 600.0
# Characters of another process's command line that a message shows.
MAX_COMMAND = 80


@contextmanager
def exclusive(path: Path, what: str, timeout_s: float = WAIT_S) -> Iterator[IO[str]]:
    """Hold the lock of the file `path`, made if need be; yields the open file.

    A second process waits at most `timeout_s` seconds and prints one line with `what` and the holder.
    The kernel releases the lock when the process has ended, and every child that got the file.
    Raises BenchError when the time is up.
    """
    try:
        handle = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+")
    except OSError as error:
        raise BenchError(f"{path}: cannot be locked: {error.strerror}; make it writable for this user") from None
    with handle:
        _acquire(handle, what, timeout_s)
        handle.truncate()
        print(os.getpid(), file=handle, flush=True)
        yield handle


def _acquire(handle: IO[str], what: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    waiting = False
    while not _acquired(handle):
        if time.monotonic() > deadline:
            raise BenchError(f"{what} is still in use by {_holder(handle)} after {timeout_s:g} s; stop that first")
        if not waiting:
            waiting = True
            user = _holder(handle)
            print(f"{what} is in use by {user}; waiting for it up to {timeout_s:g} s", file=sys.stderr, flush=True)
        time.sleep(POLL_S)


def _acquired(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(handle: IO[str]) -> str:
    """The process that holds the lock, in words."""
    handle.seek(0)
    text = handle.read().strip()
    try:
        command = " ".join(psutil.Process(int(text)).cmdline())
        return f"process {text} ({textwrap.shorten(command, MAX_COMMAND, placeholder='...')})"
    except (ValueError, psutil.Error):
        return "an orphan of a process that has ended"
    finally:
        handle.seek(0)

"""A lock that either one process of the machine can hold, or several can share."""

from __future__ import annotations

import contextlib
import fcntl
import os
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil

from bench import printer
from bench.errors import BenchError, GlobalFault

POLL_S = 0.1
WAIT_S = 600.0
# Characters of another process's command line that a message shows.
MAX_COMMAND = 80


@contextlib.contextmanager
def exclusive(path: Path, what: str, timeout_s: float = WAIT_S) -> Iterator[IO[str]]:
    """Hold the lock of the file `path` exclusively; yields the open file, made if need be.

    A process that has to wait prints one line with `what` and the holders, and waits at most `timeout_s` seconds. The
    kernel releases the lock when the process and every child with the file have ended. Raises GlobalFault when the time
    is up.
    """
    with _opened(path) as handle:
        _acquire(handle, fcntl.LOCK_EX, what, timeout_s)
        handle.truncate()
        print(os.getpid(), file=handle, flush=True)
        yield handle


@contextlib.contextmanager
def shared(path: Path, what: str, timeout_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of the file `path` together with other sharers; else like `exclusive`."""
    with _opened(path) as handle:
        _acquire(handle, fcntl.LOCK_SH, what, timeout_s)
        print(os.getpid(), file=handle, flush=True)
        yield


def _opened(path: Path) -> IO[str]:
    """The locked file. Holders append their process numbers."""
    try:
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644), "r+")
    except OSError as error:
        raise BenchError(f"{path}: cannot be locked: {error.strerror}; make it writable for this user") from None


def _acquire(handle: IO[str], operation: int, what: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    waiting = False
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, operation | fcntl.LOCK_NB)
            return
        if time.monotonic() > deadline:
            raise GlobalFault(f"{what} is still in use by {_holders(handle)} after {timeout_s:g} s; stop that first")
        if not waiting:
            waiting = True
            users = _holders(handle)
            printer.aside(f"{what} is in use by {users}; waiting for it up to {timeout_s:g} s")
        time.sleep(POLL_S)


def _holders(handle: IO[str]) -> str:
    """The processes that hold the lock, in words. Some numbers in the file are of processes that have ended."""
    handle.seek(0)
    numbers = dict.fromkeys(handle.read().split())
    handle.seek(0)
    return " and ".join(filter(None, map(_process, numbers))) or "an orphan of a process that has ended"


def _process(number: str) -> str:
    """A process in words, empty for an ended one and this one."""
    if number == str(os.getpid()):
        return ""
    try:
        command = " ".join(psutil.Process(int(number)).cmdline())
    except (ValueError, psutil.Error):
        return ""
    return f"process {number} ({textwrap.shorten(command, MAX_COMMAND, placeholder='...')})"

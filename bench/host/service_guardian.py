"""Keeps a service running for as long as anybody uses it: `python keeper.py LOCK SIGNAL COMMAND...`.

Who uses the service holds a shared lock on the file LOCK. The kernel takes a lock away when the process that holds it
ends, however it ends, so that nobody has to be trusted to say goodbye. The keeper waits for the lock for itself alone:
once it has it, nobody is left, and it stops the service with SIGNAL. It ends with the service, and so does its working
directory, where the sockets were. A file of its own without imports of this package, so that it starts in an instant
and waits without waking.
"""

from __future__ import annotations

import contextlib
import fcntl
import signal
import subprocess
import sys
from pathlib import Path

# A database may have much to write out before it ends.
STOP_TIMEOUT_S = 20


class _Ended(Exception):
    """The service has ended, or the keeper is told to."""


def _ended(signum: int, frame: object) -> None:
    raise _Ended


def keep(lock: str, stop_signal: str, command: list[str]) -> int:
    """Run `command` until nobody holds `lock`; returns its exit status."""
    service = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _ended)
        with Path(lock).open() as users:
            if service.poll() is None:
                fcntl.flock(users, fcntl.LOCK_EX)
            return _stop(service, stop_signal)
    except _Ended:
        return _stop(service, stop_signal)


def _stop(service: subprocess.Popen, stop_signal: str) -> int:
    """Stop the service, while the lock keeps newcomers waiting."""
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL if number == signal.SIGCHLD else signal.SIG_IGN)
    if service.poll() is None:
        service.send_signal(getattr(signal, f"SIG{stop_signal}"))
    try:
        return service.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        service.kill()
        return service.wait()
    finally:
        # Not when something is in it: that is for the next who starts the service to see.
        with contextlib.suppress(OSError):
            Path.cwd().rmdir()


if __name__ == "__main__":
    sys.exit(keep(sys.argv[1], sys.argv[2], sys.argv[3:]))

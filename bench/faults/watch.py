"""The processes of a deployment's servers that end while something is done to it."""

from __future__ import annotations

import contextlib
import threading

import psutil

from bench.serve.deployment import Running

POLL_S = 0.1


class Workers(threading.Thread):
    """Counts the processes of the servers that end while it watches, beside their masters.

    ended  how many have ended
    """

    def __init__(self, running: Running):
        super().__init__(name="workers", daemon=True)
        self.ended = 0
        self._running = running
        self._seen = self._now()
        self._over = threading.Event()

    def __enter__(self) -> Workers:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        self._count()

    def run(self) -> None:
        """Watch until the end of the block."""
        while not self._over.wait(POLL_S):
            self._count()

    def _count(self) -> None:
        now = self._now()
        self.ended += len(self._seen - now)
        self._seen = now

    def _now(self) -> set[psutil.Process]:
        found: set[psutil.Process] = set()
        for server in self._running.chain.servers:
            with contextlib.suppress(psutil.Error):
                children = psutil.Process(server.pid).children(recursive=True)
                found |= {child for child in children if _lives(child)}
        return found


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False

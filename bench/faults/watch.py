"""The processes of a deployment's servers that end while something is done to it."""

from __future__ import annotations

import contextlib

import psutil

from bench.serve.deployment import Running


class Workers:
    """Counts the processes of the servers that have ended, beside their masters; `look` often enough."""

    def __init__(self, running: Running):
        self.ended = 0
        self._running = running
        self._seen = self._now()

    def look(self) -> int:
        """Count those that have ended since the last look; how many there are in all."""
        now = self._now()
        self.ended += len(self._seen - now)
        self._seen = now
        return self.ended

    def _now(self) -> set[psutil.Process]:
        found: set[psutil.Process] = set()
        for server in self._running.chain.servers:
            with contextlib.suppress(psutil.Error):
                found.update(filter(_lives, psutil.Process(server.pid).children(recursive=True)))
        return found


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False

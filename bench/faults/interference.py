"""The CPU time that other processes took while a fault was watched, whichever of ours died meanwhile."""

from __future__ import annotations

import os
import threading
import time

import psutil

from bench.machine import processes

# What a process uses after its last sample is taken for that of others, should its parent have been killed.
INTERVAL_S = 0.2


class OthersShare(threading.Thread):
    """What the machine uses from entry to exit, beside this process with all its descendants, dead ones too.

    A descendant stays one when its parent is killed, as a worker without its master.

    share  of all cores, known at the exit
    """

    def __init__(self) -> None:
        super().__init__(name="others", daemon=True)
        self.share = 0.0
        self._end = threading.Event()
        self._times = processes.Times()

    def __enter__(self) -> OthersShare:
        self._began, self._busy_s = time.monotonic(), processes.machine_busy_s() or 0.0
        self._look()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self.join()
        self._look()
        elapsed = (time.monotonic() - self._began) * (psutil.cpu_count() or 1)
        others = (processes.machine_busy_s() or 0.0) - self._busy_s - self._times.used_s()
        self.share = round(min(1.0, max(0.0, others / elapsed)), 4)

    def run(self) -> None:
        """Look at our processes at intervals until the exit."""
        while not self._end.wait(INTERVAL_S):
            self._look()

    def _look(self) -> None:
        ours = set(processes.members(os.getpid()))
        before = self._times.last
        found = [it for pid in {*ours, *(pid for pid, _ in before)} if (it := processes.stat(pid)) is not None]
        # The kernel reuses process numbers.
        self._times.add({it.key: it for it in found if it.key[0] in ours or it.key in before})

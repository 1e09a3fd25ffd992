"""The closed loop: each connection sends its next request when its answer has come."""

from __future__ import annotations

import itertools
import time

from bench.load.openloop.connection import Connection
from bench.load.openloop.counts import Counts
from bench.load.openloop.job import Job
from bench.load.openloop.loop import CHECK_INTERVAL_S, Loop


class ClosedLoop(Loop):
    """As many requests under way as the process has connections, until the time is up.

    The connections of a process draw their paths from one list in turn; processes begin at different places of it, so
    that they do not request the same page at the same time. Latency begins when a request is sent, or when its
    connection is opened where it needs a new one. Requests under way at the end count nowhere. After a failure the
    connection is opened again after CHECK_INTERVAL_S at most, so that a refusing server is not flooded.
    """

    def __init__(self, job: Job, number: int, begins: float) -> None:
        super().__init__(job, number, begins)
        first, count = number * len(job.paths) // job.processes, len(job.paths)
        self._pages = itertools.cycle([(first + i) % count for i in range(count)])

    def run(self) -> Counts:
        """Keep the connections busy until the end."""
        time.sleep(max(0.0, self._begins - time.monotonic()))
        # A process that gets its core late has its full time all the same.
        self._begins = next_check = time.monotonic()
        self._ends = self._begins + self._job.seconds
        while (now := time.monotonic()) < self._ends:
            if now >= next_check:
                self._give_up(now)
                self._report(now)
                for _ in range(self._limit - len(self._by_fd)):
                    self._open(next(self._pages), time.monotonic())
                next_check = now + CHECK_INTERVAL_S
            self._handle(min(next_check, self._ends) - now)
        self._give_up(self._ends)
        return self._finish(self._job.seconds)

    def _answered(self, connection: Connection, now: float) -> None:
        if now < self._ends:
            super()._answered(connection, now)

    def _free(self, connection: Connection, now: float) -> None:
        if connection.ready:
            self._send(connection, next(self._pages), now)
        else:
            self._open(next(self._pages), now)

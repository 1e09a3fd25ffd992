"""The open loop: requests leave on a schedule, whatever the server does."""

from __future__ import annotations

import re
import select
import signal
import time
from collections import deque

from bench.measure.load.openloop.connection import LoadConnection
from bench.measure.load.openloop.counts import Counts
from bench.measure.load.openloop.job import LoadJob
from bench.measure.load.openloop.loop import CHECK_INTERVAL_S, Failure, Loop


class OpenLoop(Loop):
    """Request i of the job is due i / rate seconds after the start, or at its time; of n processes each sends every
    n-th.

    A due request is sent on an idle connection or a new one. At the limit of connections, the request waits, and is
    dropped after the timeout. Latency begins at the due time. If the job requests a log, SIGINT ends the load early: no
    more requests are sent, and the responses are awaited.
    """

    def __init__(self, job: LoadJob, number: int, begins: float) -> None:
        super().__init__(job, number, begins)
        self._rate = job.rate or 1
        count = len(job.times) or self._rate * job.seconds
        self._total = len(range(number, count, job.processes))
        self._idle: deque[LoadConnection] = deque()
        # Page and due time of requests that found no connection.
        self._waiting: deque[tuple[int, float]] = deque()
        self._done = self._sent = 0
        self._last = begins
        self._mark: re.Pattern[bytes] | None = None
        if job.mark:
            # The groups in a body are the page's own information.
            self._mark = re.compile(job.mark.encode(), re.DOTALL)
            signal.signal(signal.SIGINT, lambda *_: self._end_early())

    def run(self) -> Counts:
        """Send each request at its due time and wait for the responses."""
        next_check = self._begins + CHECK_INTERVAL_S
        while self._done < self._total:
            now = time.monotonic()
            while self._sent < self._total and (due := self._due(self._sent)) <= now:
                page = (self._number + self._sent * self._job.processes) % len(self._job.paths)
                self._sent += 1
                self._leave(page, due)
            if now >= next_check:
                self._give_up(now)
                self._check_parent()
                next_check = now + CHECK_INTERVAL_S
                if now > self._ends + self._job.timeout_s + 1:
                    break
            wake = next_check
            if self._sent < self._total:
                wake = min(next_check, self._due(self._sent))
            # epoll itself counts in whole milliseconds; select, on the epoll descriptor, in microseconds.
            if select.select((self._epoll,), (), (), max(0.0, wake - time.monotonic()))[0]:
                self._handle(0)
        while self._waiting:
            self._drop(time.monotonic())
        self.counts.due = self._total
        job = self._job
        length = float(job.seconds)
        if not job.times:
            length = min(length, self._total * job.processes / self._rate)
        return self._finish(max(length, self._last - self._begins))

    def _end_early(self) -> None:
        self._total, self._ends = self._sent, time.monotonic()

    def _due(self, sent: int) -> float:
        index = self._number + sent * self._job.processes
        if self._job.times:
            return self._begins + self._job.times[index]
        return self._begins + index / self._rate

    def _leave(self, page: int, due: float) -> None:
        """Send a due request on an idle connection or a new one, or let it wait for a connection."""
        while self._idle:
            connection = self._idle.popleft()
            if connection.ready:
                self._note_delay(due)
                self._send(connection, page, due)
                return
        self._waiting.append((page, due))
        self._open_waiting()

    def _open_waiting(self) -> None:
        """Send waiting requests on new connections, up to the limit."""
        while self._waiting and len(self._by_fd) < self._limit:
            page, due = self._waiting.popleft()
            self._note_delay(due)
            self._open(page, due)

    def _note_delay(self, due: float) -> None:
        self.counts.delay[max(1, int((time.monotonic() - due) * 1e6))] += 1

    def _free(self, connection: LoadConnection, now: float) -> None:
        self._done += 1
        self._last = now
        if not connection.ready:
            self._open_waiting()
        elif self._waiting:
            page, due = self._waiting.popleft()
            self._note_delay(due)
            self._send(connection, page, due)
        else:
            self._idle.append(connection)

    def _broken(self, connection: LoadConnection) -> None:
        """Resend the request on a new connection if the server closed an idle one as the request was sent."""
        if connection.fresh or connection.response.status:
            super()._broken(connection)
        else:
            self._close(connection)
            self._open(connection.page, connection.since, connection.again + 1)

    def _failed(self, connection: LoadConnection, kind: Failure) -> None:
        super()._failed(connection, kind)
        self._done += 1
        self._log(connection, time.monotonic(), kind)

    def _drop(self, now: float) -> None:
        """Give up the request with the longest wait for a connection."""
        page, due = self._waiting.popleft()
        self.counts.dropped += 1
        self._done += 1
        if self._mark:
            end = round(now, 6)
            self.counts.visits.append([round(due, 6), end, end, page, False, 0, 0, "dropped", 0, []])

    def _complete(self, connection: LoadConnection, now: float) -> None:
        self._log(connection, now)
        super()._complete(connection, now)

    def _log(self, connection: LoadConnection, now: float, failure: str = "") -> None:
        """Log a finished or failed request for `visits.Visit`, if the job requests a log."""
        if self._mark is None:
            return
        response, times = connection.response, (connection.since, connection.left, now)
        status, mark = 0, []
        if not failure:
            status = response.status
            if match := self._mark.search(b"".join(response.pieces or ())):
                mark = [group.decode("utf-8", "replace") for group in match.groups()]
        visit = [*(round(at, 6) for at in times), connection.page, not connection.fresh, connection.again]
        self.counts.visits.append([*visit, status, failure, response.size, mark])

    def _give_up(self, now: float) -> None:
        super()._give_up(now)
        while self._waiting and now - self._waiting[0][1] > self._job.timeout_s:
            self._drop(now)
        self._open_waiting()

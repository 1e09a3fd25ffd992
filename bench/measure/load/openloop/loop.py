"""The common part of both loops: connections, events and counts; and the closed loop, in which each connection sends
its next request after a response."""

from __future__ import annotations

import itertools
import os
import select
import ssl
import sys
import time
from abc import ABC, abstractmethod
from typing import Literal

from bench.measure.load.openloop.connection import LoadConnection, ResponseError
from bench.measure.load.openloop.counts import VARYING_BYTES, Counts
from bench.measure.load.openloop.job import LoadJob

READ = select.EPOLLIN | select.EPOLLRDHUP
WRITE = select.EPOLLOUT
# Time between two searches for requests that timed out.
CHECK_INTERVAL_S = 0.1

Failure = Literal["connect", "read", "timeout"]


class Loop(ABC):
    """The part of one process, `number`, in the load of a job that begins at `begins` (time.monotonic)."""

    def __init__(self, job: LoadJob, number: int, begins: float) -> None:
        self.counts = Counts()
        self._job = job
        self._number = number
        self._name = job.name
        self._begins = begins
        self._ends = begins + job.seconds
        self._limit = job.share(number)
        self._epoll = select.epoll()
        self._by_fd: dict[int, LoadConnection] = {}
        self._sizes: dict[int, int] = {}
        self._parent = os.getppid()

    @abstractmethod
    def run(self) -> Counts:
        """Make the load; returns the counts."""

    @abstractmethod
    def _free(self, connection: LoadConnection, now: float) -> None:
        """Free the connection after a response, or close a connection that is not `ready`."""

    def _broken(self, connection: LoadConnection) -> None:
        """Close a connection that ended before its response was complete."""
        self._close(connection)
        self._failed(connection, "read")

    def _failed(self, connection: LoadConnection, kind: Failure) -> None:
        """Count the failed request of a connection."""
        setattr(self.counts, kind, getattr(self.counts, kind) + 1)

    def _open(self, page: int, since: float, again: int = 0) -> None:
        """Send a request on a new connection, once open; `again` is the number of earlier attempts."""
        connection = LoadConnection(self._job.tls, self._name, bool(self._job.mark))
        connection.begin(self._job.requests[page], page, since, again)
        try:
            connection.connect(self._job.address)
        except OSError:
            self._failed(connection, "connect")
            return
        self._by_fd[connection.sock.fileno()] = connection
        self._epoll.register(connection.sock.fileno(), READ | WRITE)
        self.counts.opened += 1

    def _send(self, connection: LoadConnection, page: int, since: float) -> None:
        """Send a request on a free connection."""
        connection.begin(self._job.requests[page], page, since)
        self._write(connection, READ)

    def _close(self, connection: LoadConnection) -> None:
        self._by_fd.pop(connection.sock.fileno(), None)
        connection.ready = connection.busy = False
        connection.sock.close()

    def _handle(self, wait_s: float) -> None:
        """Handle all events of the connections, waiting `wait_s` for the first; 0 does not wait."""
        for fd, events in self._epoll.poll(wait_s):
            connection = self._by_fd.get(fd)
            if connection is None:
                continue
            if not connection.ready:
                self._connect(connection)
                continue
            if events & WRITE and connection.unsent:
                self._write(connection, READ | WRITE)
            if events & ~WRITE and connection.ready:
                self._read(connection)

    def _connect(self, connection: LoadConnection) -> None:
        fd = connection.sock.fileno()
        try:
            connection.connected()
        except ssl.SSLWantReadError:
            self._epoll.modify(fd, READ)
        except ssl.SSLWantWriteError:
            self._epoll.modify(fd, READ | WRITE)
        except OSError:
            self._close(connection)
            self._failed(connection, "connect")
        else:
            self._write(connection, READ | WRITE)

    def _write(self, connection: LoadConnection, watched: int) -> None:
        """Send the rest of the request; `watched` are the events registered with epoll so far."""
        try:
            connection.send()
        except OSError:
            self._broken(connection)
            return
        wanted = READ
        if connection.unsent:
            wanted = READ | WRITE
        if wanted != watched:
            self._epoll.modify(connection.sock.fileno(), wanted)

    def _read(self, connection: LoadConnection) -> None:
        response = connection.response
        try:
            data = connection.receive()
            if data is None:
                return
            self.counts.bytes += len(data)
            is_complete = False
            if connection.busy and data:
                is_complete = response.feed(data)
            elif connection.busy:
                is_complete = response.ended()
        except (ResponseError, ValueError, OSError):
            is_complete, data = False, b""
        if not connection.busy:
            # The server has ended an idle connection.
            self._close(connection)
            return
        if is_complete:
            self._complete(connection, time.monotonic())
        elif not data:
            self._broken(connection)

    def _complete(self, connection: LoadConnection, now: float) -> None:
        response, counts, job = connection.response, self.counts, self._job
        counts.answers += 1
        counts.statuses[response.status] += 1
        counts.note(max(1, int((now - connection.since) * 1e6)), (now - self._begins) / job.seconds)
        first = self._sizes.setdefault(connection.page, response.size)
        if abs(response.size - first) > VARYING_BYTES:
            counts.resized += 1
        connection.fresh = connection.busy = False
        if response.closes or not job.keep_alive:
            self._close(connection)
        self._free(connection, now)

    def _give_up(self, now: float) -> None:
        """Fail requests beyond their timeout."""
        for connection in list(self._by_fd.values()):
            if connection.busy and now - connection.since > self._job.timeout_s:
                self._close(connection)
                self._failed(connection, "timeout")

    def _check_parent(self) -> None:
        """Exit when the parent is gone."""
        if os.getppid() != self._parent:
            sys.exit("the load tool's parent has ended")

    def _finish(self, seconds: float) -> Counts:
        self.counts.seconds = round(seconds, 6)
        for connection in list(self._by_fd.values()):
            self._close(connection)
        return self.counts


class ClosedLoop(Loop):
    """One request at a time on each connection of the process, until the time is up.

    The connections of a process draw paths from one list in turn; processes begin at different places, to avoid
    requesting the same page at the same time. Latency begins with sending a request, or with opening a new connection.
    Unfinished requests at the end are not counted. After a failure the connection is opened again within
    CHECK_INTERVAL_S, to avoid flooding a refusing server.
    """

    def __init__(self, job: LoadJob, number: int, begins: float) -> None:
        super().__init__(job, number, begins)
        first, count = number * len(job.paths) // job.processes, len(job.paths)
        self._pages = itertools.cycle([(first + i) % count for i in range(count)])

    def run(self) -> Counts:
        """Keep the connections busy until the end."""
        time.sleep(max(0.0, self._begins - time.monotonic()))
        # A process that gets its core late still has its full time.
        self._begins = next_check = time.monotonic()
        self._ends = self._begins + self._job.seconds
        while (now := time.monotonic()) < self._ends:
            if now >= next_check:
                self._give_up(now)
                self._check_parent()
                for _ in range(self._limit - len(self._by_fd)):
                    self._open(next(self._pages), time.monotonic())
                next_check = now + CHECK_INTERVAL_S
            self._handle(min(next_check, self._ends) - now)
        self._give_up(self._ends)
        return self._finish(self._job.seconds)

    def _complete(self, connection: LoadConnection, now: float) -> None:
        if now < self._ends:
            super()._complete(connection, now)

    def _free(self, connection: LoadConnection, now: float) -> None:
        if connection.ready:
            self._send(connection, next(self._pages), now)
        else:
            self._open(next(self._pages), now)

"""The loop of one process of the load tool: due requests leave, answers are read, both are timed."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from hdrh.histogram import HdrHistogram

from bench.figures import histogram
from bench.load.openloop.answer import Answer, AnswerError

READ = select.EPOLLIN | select.EPOLLRDHUP
WRITE = select.EPOLLOUT
PIECE = 262144
# How often, in seconds, unanswered requests are looked for and progress is told.
GLANCE_S = 0.1
TOLD_S = 1.0


@dataclass
class Outcome:
    """What one process did, and the sum over several."""

    seconds: float = 0.0
    due: int = 0
    dropped: int = 0
    received: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    thirds: list[int] = field(default_factory=lambda: [0, 0, 0])
    connect: int = 0
    read: int = 0
    timeout: int = 0
    resized: int = 0
    opened: int = 0
    longest_us: int = 0
    latency: HdrHistogram = field(default_factory=histogram.new)
    delay: HdrHistogram = field(default_factory=histogram.new)

    def add(self, other: Outcome) -> None:
        """Add what another process did in the same time."""
        self.seconds = max(self.seconds, other.seconds)
        self.longest_us = max(self.longest_us, other.longest_us)
        for name in ("due", "dropped", "received", "connect", "read", "timeout", "resized", "opened"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.statuses.update(other.statuses)
        self.thirds = [mine + its for mine, its in zip(self.thirds, other.thirds, strict=True)]
        self.latency.add(other.latency)
        self.delay.add(other.delay)

    def packed(self) -> dict:
        """As JSON can hold it."""
        return vars(self) | {"latency": histogram.encode(self.latency), "delay": histogram.encode(self.delay)}

    @classmethod
    def unpacked(cls, content: dict) -> Outcome:
        """What `packed` made JSON of."""
        statuses = Counter({int(status): count for status, count in content["statuses"].items()})
        both = {name: histogram.merged([content[name]]) for name in ("latency", "delay")}
        return cls(**{**content, **both, "statuses": statuses})


class Connection:
    """A connection and the request on it: `due` is when that one should have left, `page` which one it is."""

    __slots__ = ("answer", "busy", "due", "fresh", "page", "ready", "sock", "unsent")

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.ready = False
        self.busy = True
        self.fresh = True
        self.due = 0.0
        self.page = 0
        self.unsent = b""
        self.answer = Answer()


class Loop:
    """Every n-th request of a job, beginning with `number`, where n is the job's number of processes."""

    def __init__(self, job: dict, number: int, begins: float):
        parts = urlsplit(job["url"])
        self._address = (parts.hostname, parts.port)
        self._tls = ssl._create_unverified_context() if parts.scheme == "https" else None
        end = "\r\n" if job["keep_alive"] else "\r\nConnection: close\r\n"
        self._requests = [f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}{end}\r\n".encode() for path in job["paths"]]
        self._keep_alive = job["keep_alive"]
        self._timeout_s = job["timeout_s"]
        self._most = max(1, job["connections"] // job["processes"])
        self._step, self._number = job["processes"], number
        self._interval_s = 1 / job["rate"]
        self._seconds = job["seconds"]
        self._begins = begins
        all_due = round(job["rate"] * job["seconds"])
        self._due = len(range(number, all_due, self._step))
        self._epoll = select.epoll()
        self._by_fd: dict[int, Connection] = {}
        self._idle: deque[Connection] = deque()
        self._waiting: deque[tuple[float, int]] = deque()
        self._sizes: dict[int, int] = {}
        self._done = 0
        self._told = 0
        self._last = begins
        self.outcome = Outcome(due=self._due)

    def run(self) -> Outcome:
        """Send what is due until all was, and wait for the answers."""
        sent, glance = 0, self._begins + GLANCE_S
        until = self._begins + self._seconds
        while self._done < self._due:
            now = time.monotonic()
            while sent < self._due and (due := self._time_of(sent)) <= now:
                self._leave(due, (self._number + sent * self._step) % len(self._requests))
                sent += 1
            if now >= glance:
                self._give_up_late(now)
                self._tell(now)
                glance = now + GLANCE_S
                if now > until + self._timeout_s + 1:
                    break
            wake = min(glance, self._time_of(sent)) if sent < self._due else glance
            # epoll itself counts in whole milliseconds; select, on the epoll descriptor, in microseconds.
            if select.select((self._epoll,), (), (), max(0.0, wake - time.monotonic()))[0]:
                for fd, events in self._epoll.poll(0):
                    if connection := self._by_fd.get(fd):
                        self._happened(connection, events)
        return self._finished()

    def _time_of(self, sent: int) -> float:
        return self._begins + (self._number + sent * self._step) * self._interval_s

    def _finished(self) -> Outcome:
        self.outcome.dropped += len(self._waiting)
        self.outcome.seconds = round(max(self._seconds, self._last - self._begins), 6)
        for connection in list(self._by_fd.values()):
            self._close(connection)
        return self.outcome

    # ------------------------------------------------------------------------------------- requests

    def _leave(self, due: float, page: int) -> None:
        """A request is due: send it on an idle connection or a new one, or let it wait for one."""
        while self._idle:
            connection = self._idle.popleft()
            if connection.ready:
                self._begin(connection, due, page)
                return
        if len(self._by_fd) < self._most:
            self._open(due, page)
        else:
            self._waiting.append((due, page))

    def _begin(self, connection: Connection, due: float, page: int, again: bool = False) -> None:
        connection.due, connection.page, connection.busy = due, page, True
        connection.answer = Answer()
        connection.unsent = self._requests[page]
        if not again:
            self.outcome.delay.record_value(max(1, int((time.monotonic() - due) * 1e6)))
        if connection.ready:
            self._write(connection)

    def _open(self, due: float, page: int, again: bool = False) -> None:
        sock = socket.socket()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(BlockingIOError):
            try:
                sock.connect(self._address)
            except BlockingIOError:
                raise
            except OSError:
                self._failed("connect")
                sock.close()
                return
        if self._tls:
            sock = self._tls.wrap_socket(sock, do_handshake_on_connect=False, server_hostname=self._address[0])
        connection = Connection(sock)
        self._by_fd[sock.fileno()] = connection
        self._epoll.register(sock.fileno(), READ | WRITE)
        self.outcome.opened += 1
        self._begin(connection, due, page, again)

    def _failed(self, what: str) -> None:
        """A request came to nothing: `connect`, `read` or `timeout`."""
        setattr(self.outcome, what, getattr(self.outcome, what) + 1)
        self._done += 1

    # --------------------------------------------------------------------------------- what happens

    def _happened(self, connection: Connection, events: int) -> None:
        if not connection.ready:
            self._connected(connection)
            return
        if events & WRITE and connection.unsent:
            self._write(connection)
        if events & ~WRITE:
            self._read(connection)

    def _connected(self, connection: Connection) -> None:
        """A new connection can be used, or its handshake goes on, or it could not be made."""
        error = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        try:
            if error:
                raise OSError(error, "")
            if self._tls:
                connection.sock.do_handshake()
        except ssl.SSLWantReadError:
            self._epoll.modify(connection.sock.fileno(), READ)
        except ssl.SSLWantWriteError:
            self._epoll.modify(connection.sock.fileno(), READ | WRITE)
        except OSError:
            self._close(connection)
            self._failed("connect")
        else:
            connection.ready = True
            self._epoll.modify(connection.sock.fileno(), READ)
            self._write(connection)

    def _write(self, connection: Connection) -> None:
        try:
            sent = connection.sock.send(connection.unsent)
        except (BlockingIOError, ssl.SSLWantWriteError):
            sent = 0
        except OSError:
            self._broken(connection)
            return
        before, connection.unsent = connection.unsent, connection.unsent[sent:]
        if connection.unsent:
            self._epoll.modify(connection.sock.fileno(), READ | WRITE)
        elif sent < len(before) or len(before) < len(self._requests[connection.page]):
            self._epoll.modify(connection.sock.fileno(), READ)

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(PIECE)
            while self._tls and data and connection.sock.pending():
                data += connection.sock.recv(PIECE)
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except OSError:
            data = b""
        if not connection.busy:
            # An idle connection that the server has ended.
            self._close(connection)
            return
        if not data:
            if connection.answer.ended():
                self._answered(connection)
            else:
                self._broken(connection)
            return
        self.outcome.received += len(data)
        try:
            whole = connection.answer.feed(data)
        except (AnswerError, ValueError):
            self._close(connection)
            self._failed("read")
            return
        if whole:
            self._answered(connection)

    def _broken(self, connection: Connection) -> None:
        """The connection ended before its answer. One that was idle may have ended before the request came: again."""
        self._close(connection)
        if connection.fresh or connection.answer.status:
            self._failed("read")
        else:
            self._open(connection.due, connection.page, again=True)

    def _answered(self, connection: Connection) -> None:
        now = time.monotonic()
        outcome, answer = self.outcome, connection.answer
        latency_us = max(1, int((now - connection.due) * 1e6))
        outcome.latency.record_value(latency_us)
        outcome.longest_us = max(outcome.longest_us, latency_us)
        outcome.statuses[answer.status] += 1
        third = int((now - self._begins) * 3 / self._seconds)
        if third < 3:
            outcome.thirds[third] += 1
        if self._sizes.setdefault(connection.page, answer.size) != answer.size:
            outcome.resized += 1
        self._done += 1
        self._last = now
        connection.fresh = False
        if answer.closes or not self._keep_alive:
            self._close(connection)
            if self._waiting:
                self._open(*self._waiting.popleft())
        elif self._waiting:
            self._begin(connection, *self._waiting.popleft())
        else:
            connection.busy = False
            self._idle.append(connection)

    def _close(self, connection: Connection) -> None:
        self._by_fd.pop(connection.sock.fileno(), None)
        connection.ready = False
        connection.sock.close()

    def _give_up_late(self, now: float) -> None:
        """Requests whose answer did not come in time, by the moment they were due."""
        for connection in list(self._by_fd.values()):
            if connection.busy and now - connection.due > self._timeout_s:
                self._close(connection)
                self._failed("timeout")
        while self._waiting and now - self._waiting[0][0] > self._timeout_s:
            self._waiting.popleft()
            self.outcome.dropped += 1
            self._done += 1
        # Places that failed requests have left free.
        while self._waiting and len(self._by_fd) < self._most:
            self._open(*self._waiting.popleft())

    def _tell(self, now: float) -> None:
        """A line a second: seconds since the start, answers so far, and whose."""
        second = int((now - self._begins) / TOLD_S)
        if second > self._told:
            self._told = second
            said = f"progress {now - self._begins:.1f} {self.outcome.latency.total_count} {self._number}"
            print(said, file=sys.stderr, flush=True)

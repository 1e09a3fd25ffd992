"""Many clients: who keep requesting pages while something happens, all at once, or during one slow rendering."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from bench.serve.machine import http
from bench.serve.machine.http import BadResponse, ConnectionClosed
from bench.verify.context import Context
from bench.verify.expect import Expectation
from bench.verify.mismatch import Finding, Mismatch
from bench.verify.rows import PAUSE_S, PageAfterWrite, PendingPage, Row, Writer, words
from bench.verify.wire import Connection, PageResponse

MAX_MISMATCHES = 3
RETRY_S = 0.01
CONNECT_S = 5.0
# Of many clients each waits for the others; servers give a request up after as long, too (request_timeout_s).
CROWD_S = 30.0
# The longest wait for a rendering to reach a gate.
GATE_S = 4.0
RACES = 8
NO_RACE = f"in {RACES} attempts no write went through while a rendering was on its way"


class Clients:
    """Clients that request `paths` in turn, each on a keep-alive connection.

    right     what each response must be
    tolerant  accept a missing or partial response and a 5xx, because a server is being killed
    pause_s   how long each client waits between two requests
    """

    def __init__(
        self,
        context: Context,
        paths: Iterable[str],
        count: int,
        *right: Expectation,
        tolerant: bool = False,
        pause_s: float = 0.0,
    ):
        self.context, self.paths, self.right, self.tolerant = context, list(paths), right, tolerant
        self.pause_s = pause_s
        self.wrong: list[Finding] = []
        self.responses = 0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._read, args=(number,), daemon=True) for number in range(count)]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _read(self, number: int) -> None:
        turns = itertools.islice(itertools.cycle(self.paths), number % len(self.paths), None)
        connection: Connection | None = None
        # At least once: on a busy machine some begin late.
        reading = True
        while reading:
            path, reused = next(turns), connection is not None
            try:
                connection = connection or Connection(self.context.target, CROWD_S)
                response = connection.exchange("GET", path)
                if self.tolerant and response.status >= 500:
                    self._note([])
                else:
                    self._note(self.context.judge(response, *self.right))
                self._stop.wait(self.pause_s)
            except (BadResponse, OSError) as error:
                response = None
                # A server may close a keep-alive connection just as the next request arrives.
                if not (self.tolerant or (reused and isinstance(error, (ConnectionClosed, ConnectionError)))):
                    self._note([Mismatch(f"GET {path}: a complete response", str(error))])
                self._stop.wait(RETRY_S)
            if connection and not (response and response.keeps_open):
                connection.close()
                connection = None
            reading = not self._stop.is_set()
        if connection:
            connection.close()

    def _note(self, wrong: Iterable[Finding]) -> None:
        findings = list(wrong)
        with self._lock:
            self.responses += 1
            self.wrong += findings[: MAX_MISMATCHES - len(self.wrong)]


def at_once(context: Context, path: str, clients: int) -> list[PageResponse]:
    """Connect all clients before the first request is sent; returns their responses."""
    barrier = threading.Barrier(clients, timeout=CONNECT_S)

    def request(_: int) -> PageResponse:
        try:
            with Connection(context.target) as connection:
                # On a busy machine one may not connect in time; the others then go on without it.
                with contextlib.suppress(threading.BrokenBarrierError):
                    barrier.wait()
                return connection.exchange("GET", path)
        except OSError:
            barrier.abort()
            raise

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(request, range(clients)))


class Slow:
    """A rendering that has read a row's title when the block begins, and responds when the block ends.

    view     `gated` waits before the response, `halting` in the middle of its body
    """

    def __init__(self, context: Context, writer: Writer, row: Row, view: str = "gated", headers: http.Headers = ()):
        self.context, self.writer, self.row = context, writer, row
        self.path = f"{row.probe_page}{view}/{secrets.token_hex(8)}/"
        self.headers = headers
        self.requests: list[Future[PageResponse]] = []
        self.reached = False
        self._pool = ThreadPoolExecutor(2)

    def __enter__(self) -> Slow:
        self.writer.gate(self.row, "close")
        self._request()
        deadline = time.monotonic() + GATE_S
        # A response that has come already never waits at the gate.
        while not self.reached and not self.requests[0].done() and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            self.reached = bool(self.writer.gate(self.row, "look"))
        return self

    @property
    def under_way(self) -> bool:
        """True if the rendering has read the row and is still going on."""
        return self.reached and not self.requests[0].done()

    def _request(self) -> None:
        self.requests.append(self._pool.submit(self.context.get, self.path, self.headers))

    def request_again(self) -> Future[PageResponse]:
        """Another client requests the page during the first rendering."""
        self._request()
        # Time for the request to arrive; a later one must get the new page too.
        time.sleep(PAUSE_S)
        return self.requests[-1]

    def __exit__(self, *exc_info: object) -> None:
        # A site with killed workers may not respond; then nothing waits at the gate.
        with contextlib.suppress(BadResponse, OSError):
            self.writer.gate(self.row, "open")
        self._pool.shutdown()


def race(
    context: Context, writer: Writer, row: Row, what: str, others: int = 0
) -> tuple[PageAfterWrite, list[PageResponse]] | None:
    """Write while a rendering has read the row already; None if no write was in time.

    Returns the page expected now, and the responses to `others` clients who sent requests between the write and the end
    of the rendering. The write may reach the worker that is rendering, so several attempts are made.
    """
    for _ in range(RACES):
        with Slow(context, writer, row) as slow:
            row, old = writer.write(row, what), row
            in_time = slow.under_way
            late = [slow.request_again() for _ in range(others)]
        if in_time:
            right = PageAfterWrite(slow.path, words(row.title), words(old.title))
            return right, [future.result() for future in late if not future.exception()]
    return None


def after_race(right: PageAfterWrite, bound_s: float) -> PendingPage:
    return PendingPage(right, time.monotonic(), bound_s, "a write during a slow rendering")

"""Clients that keep requesting pages while something happens to the site."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable

from bench.verify.context import Context
from bench.verify.finding import Mismatch
from bench.verify.wire import Answer, BadAnswer, Closed, Connection

# A Mismatch when the answer to a GET of that path is wrong.
Judge = Callable[[str, Answer], Mismatch | None]
MAX_MISMATCHES = 3
RETRY_S = 0.01


class Clients:
    """Clients that request `paths` in turn, each on a keep-alive connection.

    tolerant  an incomplete answer is not a mismatch, because the server is being killed
    pause_s   how long each client waits between two requests
    """

    def __init__(
        self,
        context: Context,
        paths: Iterable[str],
        judge: Judge,
        count: int,
        *,
        tolerant: bool = False,
        pause_s: float = 0.0,
    ):
        self.context, self.paths, self.judge, self.tolerant = context, list(paths), judge, tolerant
        self.pause_s = pause_s
        self.wrong: list[Mismatch] = []
        self.answers = 0
        self.slowest_s = 0.0
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
        turn = itertools.cycle(self.paths[number % len(self.paths) :] + self.paths[: number % len(self.paths)])
        connection: Connection | None = None
        while not self._stop.is_set():
            path, begun = next(turn), time.monotonic()
            reused = connection is not None
            try:
                connection = connection or Connection(self.context.target)
                answer = connection.exchange("GET", path)
            except (BadAnswer, OSError) as error:
                _close(connection)
                connection = None
                # A server may close a keep-alive connection just as the next request arrives.
                if not (self.tolerant or (reused and isinstance(error, (Closed, ConnectionError)))):
                    self._note(begun, Mismatch(f"GET {path}: a complete answer", str(error)))
                self._stop.wait(RETRY_S)
                continue
            self._note(begun, self.judge(path, answer))
            if not answer.keeps_open:
                _close(connection)
                connection = None
            if self.pause_s:
                self._stop.wait(self.pause_s)
        _close(connection)

    def _note(self, begun: float, wrong: Mismatch | None) -> None:
        with self._lock:
            self.answers += 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
            if wrong and len(self.wrong) < MAX_MISMATCHES:
                self.wrong.append(wrong)


def _close(connection: Connection | None) -> None:
    if connection:
        connection.close()

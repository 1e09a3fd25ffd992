"""Many clients who go on asking while something happens to the site."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable

from bench.verify.outcome import Mismatch
from bench.verify.suite import Context
from bench.verify.wire import Answer, BadAnswer, Closed, Connection

# A Mismatch when the answer to a request of that path, sent at that time, is wrong.
Judge = Callable[[str, float, Answer], Mismatch | None]
SHOWN = 3
PAUSE_S = 0.01


class Readers:
    """Clients that ask for `paths` in turn, each on a connection that it keeps as long as the server does.

    forgiving  an answer that does not come whole is no mistake: the server is being killed meanwhile
    pause_s    how long each waits between two requests
    """

    def __init__(
        self,
        context: Context,
        paths: Iterable[str],
        judge: Judge,
        clients: int,
        *,
        forgiving: bool = False,
        pause_s: float = 0.0,
    ):
        self.context, self.paths, self.judge, self.forgiving = context, list(paths), judge, forgiving
        self.pause_s = pause_s
        self.wrong: list[Mismatch] = []
        self.answers = 0
        self.slowest_s = 0.0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._read, args=(number,), daemon=True) for number in range(clients)]

    def __enter__(self) -> Readers:
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
            kept = connection is not None
            try:
                connection = connection or Connection(self.context.target)
                answer = connection.exchange("GET", path)
            except (BadAnswer, OSError) as error:
                connection = _closed(connection)
                # A server may close a connection that it has kept just as the next request arrives.
                if not (self.forgiving or (kept and isinstance(error, (Closed, ConnectionError)))):
                    self._note(begun, Mismatch(f"GET {path}: a complete answer", str(error)))
                self._stop.wait(PAUSE_S)
                continue
            self._note(begun, self.judge(path, begun, answer))
            if not answer.keeps_open:
                connection = _closed(connection)
            if self.pause_s:
                self._stop.wait(self.pause_s)
        _closed(connection)

    def _note(self, begun: float, wrong: Mismatch | None) -> None:
        with self._lock:
            self.answers += 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
            if wrong and len(self.wrong) < SHOWN:
                self.wrong.append(wrong)


def _closed(connection: Connection | None) -> None:
    if connection:
        connection.close()

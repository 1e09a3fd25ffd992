"""A client that sends malformed requests at a bounded pace, and what came back."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench.faults.malformed import Malformed
from bench.verify import wire
from bench.verify.wire import BadAnswer, Connection, Target

THREADS = 16
POLL_S = 0.1
# A refusal takes milliseconds; on a busy machine it may wait its turn.
PATIENCE_S = 2.0
# Refusals in words of their own: the method or the coding, and the version, are not known.
NOT_FAILURES = (501, 505)


@dataclass
class Answers:
    """What malformed requests got.

    statuses  of the answers, how many of each
    refused   connections that were closed without an answer
    silent    requests without an answer within PATIENCE_S
    unopened  connections that could not be opened
    server_errors  requests whose answer was 5xx, by what was wrong with them; 501 and 505 are refusals
    """

    statuses: Counter[int] = field(default_factory=Counter)
    refused: int = 0
    silent: int = 0
    unopened: int = 0
    server_errors: Counter[str] = field(default_factory=Counter)

    @property
    def sent(self) -> int:
        return self.statuses.total() + self.refused + self.silent + self.unopened

    def note(self, what: Malformed, status: int) -> None:
        """An answer has come."""
        self.statuses[status] += 1
        if status >= 500 and status not in NOT_FAILURES:
            self.server_errors[what.kind] += 1


def send_all(
    target: Target,
    requests: Iterator[Malformed],
    per_second: float,
    limit_s: float,
    meanwhile: Callable[[], None] = lambda: None,
) -> Answers:
    """Send the requests, each on a connection of its own and no faster than `per_second`, for `limit_s` at most.

    meanwhile  called again and again until all are sent, in the thread of the caller
    """
    answers, lock = Answers(), threading.Lock()
    begun = time.monotonic()
    turns = zip(itertools.count(), requests, strict=False)

    def work() -> None:
        while True:
            with lock:
                number, request = next(turns, (0, None))
            due = begun + number / per_second
            if request is None or max(due, time.monotonic()) > begun + limit_s:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            _send(target, request, answers, lock)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        meanwhile()
        threads[0].join(POLL_S)
        time.sleep(0 if threads[0].is_alive() else POLL_S)
    return answers


def _send(target: Target, request: Malformed, answers: Answers, lock: threading.Lock) -> None:
    status, kind = None, "refused"
    try:
        with Connection(target, timeout_s=PATIENCE_S) as connection:
            status = _status(connection, request)
    except ConnectionRefusedError:
        kind = "unopened"
    except wire.Closed:
        pass
    except (BadAnswer, TimeoutError):
        kind = "silent"
    except OSError:
        pass
    with lock:
        if status is not None:
            answers.note(request, status)
        else:
            setattr(answers, kind, getattr(answers, kind) + 1)


def _status(connection: Connection, request: Malformed) -> int:
    connection.send_anyway(request.data)
    if request.waits and connection.target.scheme != "https":
        with contextlib.suppress(OSError):
            connection.socket.shutdown(socket.SHUT_WR)
    return connection.read().status

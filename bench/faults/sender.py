"""Sends malformed requests at a bounded pace, and says what each got."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait

from bench.faults.malformed import Malformed
from bench.verify import wire
from bench.verify.wire import BadAnswer, Connection, Target

THREADS = 16
POLL_S = 0.1
# A refusal takes milliseconds; on a busy machine it may wait its turn.
PATIENCE_S = 2.0
# What a request got that has no status: closed without an answer, none in time, a connection that cannot be opened.
CLOSED, SILENT, UNOPENED = "closed", "silent", "unopened"

# What is wrong with a request, in words, and what it got: a status, or one of those words.
Got = tuple[str, int | str]


def send(target: Target, request: Malformed) -> int | str:
    """Send one on a connection of its own; what it gets."""
    try:
        with Connection(target, timeout_s=PATIENCE_S) as connection:
            connection.send_anyway(request.data)
            if request.waits and target.scheme != "https":
                with contextlib.suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_WR)
            return connection.read().status
    except ConnectionRefusedError:
        return UNOPENED
    except wire.Closed:
        return CLOSED
    except (BadAnswer, TimeoutError):
        return SILENT
    except OSError:
        return CLOSED


def send_all(
    target: Target,
    requests: Iterator[Malformed],
    per_second: float,
    limit_s: float,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Got]:
    """Send the requests no faster than `per_second`, for `limit_s` at most; what they got.

    meanwhile  called again and again until all are sent, in the thread of the caller
    """
    got: list[Got] = []
    turns, lock, begun, over = enumerate(requests), threading.Lock(), time.monotonic(), threading.Event()

    def work() -> None:
        while not over.is_set():
            with lock:
                number, request = next(turns, (0, None))
            due = begun + number / per_second
            if request is None or max(due, time.monotonic()) > begun + limit_s:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            got.append((request.kind, send(target, request)))

    with ThreadPoolExecutor(THREADS) as pool:
        working = [pool.submit(work) for _ in range(THREADS)]
        try:
            while wait(working, POLL_S).not_done:
                meanwhile()
        finally:
            # Also where a signal comes: nothing is sent after it.
            over.set()
    for each in working:
        each.result()
    return got
